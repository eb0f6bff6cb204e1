"""Standard streams that are closed, full or gone: one line that says so, or nothing where nobody can read it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.cli import faults
from ottla.testing import InProcessBroker
from tests.cli.conftest import SECONDS_MAX, Command, Ran, environment, run_minding_modes, run_process
from tests.cli.test_starting import started
from tests.searches import slow


def by_shell(redirection: str, *words: str, stdin: bytes = b"", **env: str) -> Ran:
    """`ottla WORD...` with what a shell does to its streams."""
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", sys.executable, "-m", "ottla", *words],
        input=stdin,
        capture_output=True,
        env=environment(**env),
        timeout=SECONDS_MAX,
        check=False,
    )
    return Ran(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())


VERBS = [
    ("--help",),
    ("--version",),
    ("topic", "--help"),
    ("topic", "list"),
    ("topic", "list", "-o", "json"),
    ("topic", "list", "-o", "yaml"),
    ("completion", "bash"),
    ("consume", "TOPIC", "--from-beginning", "-e"),
    ("consume", "TOPIC", "--from-beginning", "-e", "--group", "g"),
    ("produce", "TOPIC", "-o", "%o"),
    ("log", "dump", "LOG"),
]


@pytest.fixture
def words_of(ottla_broker: InProcessBroker, topic: str, tmp_path: Path) -> dict[str, str]:
    log = tmp_path / "leader-epoch-checkpoint"
    log.write_text("0\n1\n0 0\n")
    return {"TOPIC": topic, "LOG": str(log)}


@pytest.mark.in_turns
@pytest.mark.parametrize(
    ("redirection", "reason"), [(">/dev/full", "No space left on device"), (">&-", "it is closed")]
)
@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_output_that_cannot_be_written_is_said(
    ottla_broker: InProcessBroker, words_of: dict[str, str], words: tuple[str, ...], redirection: str, reason: str
) -> None:
    if words[0] == "consume":
        done = by_shell("", "produce", words_of["TOPIC"], "-b", ottla_broker.bootstrap, stdin=b"one\ntwo\n")
        assert done.code == 0
    named = [words_of.get(word, word) for word in words]
    ran = by_shell(redirection, *named, stdin=b"three\n", OTTLA_BOOTSTRAP_SERVER=ottla_broker.bootstrap)
    assert (ran.code, ran.out) == (faults.FAILED, "")
    assert ran.err == f"ottla: cannot write to standard output: {reason}\n"


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", ">&- 2>&-"])
def test_an_error_that_nobody_can_read_leaves_the_exit_code(redirection: str) -> None:
    ran = by_shell(redirection, "topic", "list", "-b", "127.0.0.1:1")
    assert (ran.code, ran.out) == (faults.UNREACHABLE, "")
    ran = by_shell(redirection, "topc")
    assert (ran.code, ran.out) == (faults.USAGE, "")


def test_input_that_is_closed_is_said(ottla_broker: InProcessBroker, topic: str) -> None:
    ran = by_shell("<&-", "produce", topic, "-b", ottla_broker.bootstrap)
    assert (ran.code, ran.err) == (faults.FAILED, "ottla: standard input cannot be read: it is closed\n")
    ran = by_shell("<&-", "topic", "list", "-b", ottla_broker.bootstrap)
    assert ran.code == 0


UP = ("up", "--port", "0", "--data")


@pytest.mark.parametrize(
    ("redirection", "words"),
    [
        (">&-", UP),
        slow((">/dev/full", UP)),
        ("<&- >&-", UP),
        slow((">&-", ("up", "-n", "2", "--port", "0", "--data"))),
        (">/dev/full", ("tree", "--listen", "127.0.0.1:0", "--dir")),
    ],
    ids=lambda given: given if isinstance(given, str) else " ".join(given[:2]),
)
def test_a_broker_whose_line_nobody_reads_serves_and_ends_with_0(
    tmp_path: Path, redirection: str, words: tuple[str, ...]
) -> None:
    data = tmp_path / "data"
    log = tmp_path / "log"
    command = ["/bin/sh", "-c", f'exec "$@" {redirection} 2>"{log}"', "sh", sys.executable, "-m", "ottla", *words]
    child = subprocess.Popen([*command, str(data)], env=environment())
    try:
        while not log.exists() or "the address could not be written to standard output" not in log.read_text():
            assert child.poll() is None, log.read_text()
        # Its descriptors are its own: nothing of what it writes went where standard output would be.
        assert words[0] == "tree" or os.path.exists(data / "data" / "meta.properties")
        child.terminate()
        assert child.wait(SECONDS_MAX) == 0
    finally:
        child.kill()
        child.wait()
    assert "Traceback" not in log.read_text()


def test_folders_that_cannot_be_read(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)
    inner = str(closed / "file")
    for words, code in (
        (("up", "--port", "0", "--data", str(closed)), faults.FAILED),
        (("broker", "--config", inner), faults.FAILED),
        (("topic", "list", "--command-config", inner), faults.FAILED),
        (("topic", "trim", "--offset-json-file", inner, "-b", "127.0.0.1:1"), faults.FAILED),
        (("group", "reset", "g", "--from-file", inner, "-b", "127.0.0.1:1"), faults.FAILED),
        (("log", "dump", inner), faults.USAGE),
    ):
        ran = run_minding_modes(*words)
        assert (ran.code, ran.out) == (code, ""), ran
        assert "Permission denied" in ran.err
        assert "should not have happened" not in ran.err
        assert ran.err.count("\n") == 1


def test_a_working_directory_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    command = f'cd "{gone}" && rmdir "{gone}" && exec "$@"'
    done = subprocess.run(
        ["/bin/sh", "-c", command, "sh", sys.executable, "-m", "ottla", "up", "--port", "0", "--data", "here"],
        capture_output=True,
        env=environment(),
        timeout=SECONDS_MAX,
        check=False,
    )
    assert done.returncode == faults.FAILED
    assert (
        done.stderr.decode()
        == "ottla: the current folder is gone: change to another, or name folders from the root on\n"
    )


@pytest.mark.parametrize("signal_name", ["SIGHUP", "SIGTERM", "SIGINT"])
def test_a_signal_stops_a_broker_cleanly(tmp_path: Path, signal_name: str) -> None:
    import signal

    with started("up", "--port", "0", "--data", str(tmp_path)) as up:
        up.child.send_signal(getattr(signal, signal_name))
        out, err = up.child.communicate(timeout=SECONDS_MAX)
    assert (up.child.returncode, out) == (0, "")
    assert "broker stopped" in err
    assert (tmp_path / "data" / ".kafka_cleanshutdown").exists()


def test_nohup_is_heeded(tmp_path: Path) -> None:
    """A broker that was started to outlive its terminal ignores SIGHUP, as `nohup` has set it to."""
    import signal

    ignore = "import signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); from ottla.cli.main import main; "
    from tests.cli.test_starting import started_as

    with started_as([sys.executable, "-c", f"{ignore}main(['up', '--port', '0', '--data', {str(tmp_path)!r}])"]) as up:
        up.child.send_signal(signal.SIGHUP)
        assert up.child.stderr is not None
        assert run_process(["topic", "list", "-b", f"127.0.0.1:{up.port}"]).code == 0
        up.child.terminate()
        out, err = up.child.communicate(timeout=SECONDS_MAX)
    assert up.child.returncode == 0, (out, err)


def test_a_terminal_that_has_no_character_for_a_name(process: Command) -> None:
    """As in a container without a locale; JSON stays JSON."""
    group = "ä\N{GRINNING FACE}"
    assert process("topic", "create", "umlauts", "--if-not-exists").code == 0
    assert process("group", "reset", group, "--topic", "umlauts", "--to-earliest", "--yes").code == 0
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    ran = process("group", "list", env=ascii_only)
    assert (ran.code, ran.err) == (0, "")
    assert r"\u00e4\ud83d\ude00" in ran.out
    ran = process("group", "list", "-o", "json", env=ascii_only)
    assert group in {one["group"] for one in json.loads(ran.out)}
