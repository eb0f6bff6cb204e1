"""The command as a process and inside of this one, and the broker that it talks to."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from ottla import logs
from ottla.cli import connecting
from ottla.cli.main import main
from ottla.testing import InProcessBroker
from ottla.testing.pytest_plugin import ottla_broker, pytest_configure, topic
from tests.shell import without_settings

__all__ = ["ottla_broker", "pytest_configure", "topic"]  # also where the package is not installed

SOURCES = str(Path(__file__).resolve().parents[2] / "src")
SECONDS_MAX = 60


@pytest.fixture(scope="session")
def ottla_properties() -> dict[str, str]:
    """A new group's first member does not wait for others."""
    return {"group.initial.rebalance.delay.ms": "0"}


@dataclass(frozen=True, kw_only=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def environment(**more: str) -> dict[str, str]:
    """This process's, without what would steer the command, and with the sources on the path."""
    return {**without_settings("KAFKA_", "OTTLA_", "PYTHON"), "PYTHONPATH": SOURCES, **more}


Command = Callable[..., Ran]


@pytest.fixture
def in_process(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """`ottla` without a new interpreter: `in_process("topic", "list")`. A traceback fails the test.

    What it is given as `stdin` comes to it by a pipe. What brokers of this process log meanwhile is not its own: that
    is written behind it.
    """
    monkeypatch.setenv("OTTLA_TRACEBACK", "1")
    # A person is told after three seconds; a busy machine may need longer for an answer.
    monkeypatch.setattr(connecting, "REACH_MS_MAX", 60_000)

    def run(*words: str, stdin: bytes | None = None) -> Ran:
        capfd.readouterr()
        with brokers_lines_held_back(), nullcontext() if stdin is None else piped(stdin):
            code = main(list(words))
            out, err = capfd.readouterr()
        return Ran(code=code, out=out, err=err)

    return run


@contextmanager
def brokers_lines_held_back() -> Iterator[None]:
    lines: list[str] = []
    before = logs.configure(sink=lines.append)
    try:
        yield
    finally:
        logs.restore(before)
        sys.stderr.writelines(lines)


@contextmanager
def piped(data: bytes) -> Iterator[None]:
    """Standard input is a pipe, and its other end is closed behind these bytes."""
    reading, writing = os.pipe()

    def write() -> None:
        with suppress(BrokenPipeError), open(writing, "wb") as pipe:
            pipe.write(data)

    writer = threading.Thread(target=write)
    writer.start()
    with pytest.MonkeyPatch.context() as patch, open(reading) as stdin:
        patch.setattr(sys, "stdin", stdin)
        yield
    writer.join()


@pytest.fixture
def ottla(in_process: Command, ottla_broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The same against the broker that the tests share."""
    monkeypatch.setenv("OTTLA_BOOTSTRAP_SERVER", ottla_broker.bootstrap)
    return in_process


@pytest.fixture
def process(ottla_broker: InProcessBroker) -> Command:
    """`ottla` in an interpreter of its own, where that is what is tested: `process("produce", "t", stdin=b"...")`."""

    def run(*words: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> Ran:
        return run_process(words, stdin, {"OTTLA_BOOTSTRAP_SERVER": ottla_broker.bootstrap, **(env or {})})

    return run


def run_process(words: Sequence[str], stdin: bytes = b"", env: dict[str, str] | None = None) -> Ran:
    done = subprocess.run(
        [sys.executable, "-m", "ottla", *words],
        input=stdin,
        capture_output=True,
        env=environment(**(env or {})),
        timeout=SECONDS_MAX,
        check=False,
    )
    return Ran(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())


def run_minding_modes(*words: str) -> Ran:
    """As a user to whom the modes of files mean something: to root without its two capabilities they do."""

    def drop_capabilities() -> None:
        if os.geteuid() == 0:
            for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
                assert ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) == 0  # PR_CAPBSET_DROP

    done = subprocess.run(
        [sys.executable, "-m", "ottla", *words],
        capture_output=True,
        env=environment(),
        timeout=SECONDS_MAX,
        check=False,
        preexec_fn=drop_capabilities,
    )
    return Ran(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())
