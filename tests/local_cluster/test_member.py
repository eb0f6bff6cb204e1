"""A process of a cluster: real ones, small scripts that do what a broker does to its supervisor."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from ottla.local_cluster.member import PAUSE_S, Member, StartFailed

SERVES = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("starting", file=sys.stderr, flush=True)
print("Ottla is listening on 127.0.0.1:1", flush=True)
sys.stdin.read()
"""
SECONDS_MAX = 60


def run(work: Coroutine[Any, Any, None]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(work, SECONDS_MAX)

    asyncio.run(limited())


def member(script: str, lines: list[tuple[str, bytes]] | None = None) -> Member:
    heard = lines if lines is not None else []
    return Member("one", [sys.executable, "-c", script], lambda name, line: heard.append((name, line)))


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(100 * SECONDS_MAX):
        if holds():
            return
        await asyncio.sleep(0.01)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def gone(pid: int) -> None:
    await until(lambda: is_gone(pid))
    assert is_gone(pid)


def test_its_address_is_known_when_it_can_be_reached_and_its_lines_are_passed_on() -> None:
    async def work() -> None:
        lines: list[tuple[str, bytes]] = []
        one = member(SERVES, lines)
        one.start()
        assert await one.address == "127.0.0.1:1"
        await one.stop()
        assert lines == [("one", b"starting\n")]
        assert one.pid is None

    run(work())


def test_what_is_killed_with_everything_is_not_started_again() -> None:
    async def work() -> None:
        one = member(SERVES)
        one.start()
        await one.address
        pid = one.pid
        assert pid is not None
        one.kill()
        await one.stop()
        await gone(pid)
        assert (one.pid, one.starts) == (None, 1)

    run(work())


def test_what_dies_is_started_again() -> None:
    async def work() -> None:
        one = member(SERVES)
        one.start()
        await one.address
        for starts in (2, 3):
            first = one.pid
            assert first is not None
            one.signal(signal.SIGKILL)
            await gone(first)
            await until(lambda first=first: one.pid not in (None, first))
            await one.serving.wait()
            assert one.starts == starts
        await one.stop()

    run(work())


def test_one_that_ends_before_it_serves_is_not_started_again_and_says_why() -> None:
    async def work() -> None:
        one = member("import sys; print('the disk is on fire', file=sys.stderr); sys.exit(3)")
        one.start()
        with pytest.raises(StartFailed, match="the disk is on fire"):
            await one.address
        await one.stop()
        assert one.starts == 1

    run(work())


def test_a_command_that_is_not_there() -> None:
    async def work() -> None:
        one = Member("one", ["/no/such/program"], lambda *_: None)
        one.start()
        with pytest.raises(StartFailed, match="No such file"):
            await one.address
        await one.stop()

    run(work())


def test_one_that_does_not_stop_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.local_cluster.member.STOP_S_MAX", 0.2)

    async def work() -> None:
        one = member(SERVES.replace("lambda *_: sys.exit(0)", "signal.SIG_IGN"))
        one.start()
        await one.address
        pid = one.pid
        assert pid is not None
        await one.stop()
        await gone(pid)

    run(work())


def test_one_that_waits_to_be_started_again_is_stopped() -> None:
    async def work() -> None:
        one = member(SERVES)
        one.start()
        await one.address
        one.command = ["/no/such/program"]
        one.signal(signal.SIGKILL)
        await until(lambda: one.starts >= 3)
        await one.stop()
        assert one.pid is None

    run(work())


def test_it_ends_with_whoever_started_it(tmp_path: Path) -> None:
    """However that ends: its standard input ends with it."""
    child = tmp_path / "child.py"
    child.write_text(SERVES.replace("print(", "import os; open(sys.argv[1], 'w').write(str(os.getpid())); print(", 1))
    parent = tmp_path / "parent.py"
    parent.write_text(
        "import asyncio, sys\n"
        "from ottla.local_cluster.member import Member\n"
        "async def main():\n"
        "    one = Member('one', [sys.executable, *sys.argv[1:]], lambda *_: None)\n"
        "    one.start()\n"
        "    await one.address\n"
        "    print('up', flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    pid_file = tmp_path / "pid"
    with subprocess.Popen(
        [sys.executable, str(parent), str(child), str(pid_file)], stdout=subprocess.PIPE
    ) as supervisor:
        assert supervisor.stdout is not None
        assert supervisor.stdout.readline() == b"up\n"
        supervisor.kill()
    run(gone(int(pid_file.read_text())))


def test_a_spare_takes_the_place_of_what_died(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ottla.local_cluster.member.SPARE_AFTER_S", 0.0)

    async def work() -> None:
        begins = f"import sys\nif not sys.stdin.readline(): sys.exit(0)\n{SERVES}"
        one = Member("one", [sys.executable, "-c", begins], lambda *_: None, has_spare=True)
        one.start()
        await one.address
        for _ in range(2):
            await until(lambda: one._spare is not None)
            spare = one._spare
            assert spare is not None
            one.signal(signal.SIGKILL)
            await until(lambda spare=spare: one.pid == spare.pid and one.serving.is_set())  # type: ignore[misc]
            assert one.pid == spare.pid
        # One that has died itself takes nobody's place.
        await until(lambda: one._spare is not None)
        assert one._spare is not None
        one._spare.kill()
        await one._spare.wait()
        starts = one.starts
        one.signal(signal.SIGKILL)
        await until(lambda: one.starts > starts and one.serving.is_set())
        await until(lambda: one._spare is not None)
        assert one._spare is not None
        left = one._spare.pid
        await one.stop()
        assert is_gone(left)

    run(work())


def test_a_spare_ends_with_its_supervisor() -> None:
    """Its input ends, and it has touched nothing."""
    words = [sys.executable, "-m", "ottla", "tree", "--dir", "/nowhere", "--begin-with-input", "--end-with-input"]
    assert subprocess.run(words, input=b"", timeout=SECONDS_MAX, check=False).returncode == 0


def test_what_is_killed_while_it_waits_to_be_started_again_is_not() -> None:
    async def work() -> None:
        one = member(SERVES)
        one.start()
        await one.address
        one.signal(signal.SIGKILL)
        await until(lambda: one.pid is None)
        one.kill()
        await asyncio.sleep(3 * PAUSE_S)
        assert one.starts == 1
        await one.stop()

    run(work())


def test_a_stop_that_nobody_waits_for_any_more_is_waited_for_by_the_next() -> None:
    script = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.5), sys.exit(0)))
print("Ottla is listening on 127.0.0.1:1", flush=True)
sys.stdin.read()
"""

    async def work() -> None:
        one = member(script)
        one.start()
        await one.address
        pid = one.pid
        assert pid is not None
        first = asyncio.ensure_future(one.stop())
        await asyncio.sleep(0.1)
        first.cancel()
        await asyncio.wait([first])
        await one.stop()
        assert is_gone(pid)

    run(work())
