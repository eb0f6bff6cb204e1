"""A server as a child process: started with its output in a file, awaited on its port, ended by its own pid.

Kafka, our broker and the benchmark's null server all run under this, so that each is started, watched, stopped and
killed in exactly the same way.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import resource
import signal
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

HOST = "127.0.0.1"
#: What takes a second, or ten where it is Java, takes minutes where others have the cores.
START_SECONDS_MAX = 180.0
STOP_SECONDS_MAX = 60.0

#: Metadata v1 asking for no topic: the smallest question that a Kafka client's bootstrap asks.
_METADATA_V1 = struct.pack(">hhihi", 3, 1, 1, -1, 0)


class ServerFailed(Exception):
    """The server ended or stayed silent; carries the tail of what it had written."""


#: Below those that the kernel gives to outgoing connections and to programs that ask for any port: it gives none of
#: these away.
_PORTS = range(10_000, 32_000)
#: Locks of ports that a process here has chosen and may have yet to listen on.
_TAKEN = Path(tempfile.gettempdir()) / "ottla-ports"
#: Held until this process ends.
_locks: list[int] = []


def free_port() -> int:
    """A port that nobody listens on, and that nobody else is given as long as this process lives.

    Between the choice and the server's start there is time for others to take it: other processes of a test run, which
    ask here too, and outgoing connections, to which the kernel gives ports at random.
    """
    _TAKEN.mkdir(exist_ok=True)
    for port in random.sample(_PORTS, len(_PORTS)):
        lock = os.open(_TAKEN / str(port), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind((HOST, port))
        except OSError:
            os.close(lock)
            continue
        _locks.append(lock)
        return port
    raise ServerFailed(f"no port from {_PORTS.start} to {_PORTS.stop} is free")


def pause_after(seconds: float) -> float:
    """Between two looks at a server that has been starting for so long: what is measured is off by a hundredth."""
    return min(max(seconds / 100, 0.002), 0.05)


def answers_metadata(port: int, seconds: float = 1.0) -> bool:
    """Whether the server on ``port`` answers Metadata with at least one broker."""
    try:
        with socket.create_connection((HOST, port), timeout=seconds) as connection:
            connection.sendall(struct.pack(">i", len(_METADATA_V1)) + _METADATA_V1)
            head = b""
            while len(head) < 12:
                piece = connection.recv(12 - len(head))
                if not piece:
                    return False
                head += piece
    except OSError:
        return False
    _size, _correlation, brokers = struct.unpack(">iii", head)
    return bool(brokers > 0)


class ServerProcess:
    """One server. ``start`` may be called again after ``stop`` or ``kill``: the same port, the same data."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        port: int,
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.command = list(command)
        self.port = port
        self.log = log
        self.environment = dict(environment or {})
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._child is not None, "the server was not started"
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    def start(self, seconds: float = START_SECONDS_MAX) -> float:
        """Starts it and waits until it answers Metadata; returns how many seconds that took."""
        began = self.launch()
        self.wait_until_answering(began + seconds)
        return time.monotonic() - began

    def launch(self) -> float:
        """Starts it without waiting; returns the monotonic time just before the start."""
        assert not self.running, "the server runs already"
        with self.log.open("ab") as out:
            began = time.monotonic()
            self._child = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment},
                # A terminal's Ctrl-C is for the test run; it then stops its servers itself, in its own order.
                start_new_session=True,
            )
        return began

    def wait_until_answering(self, deadline: float) -> None:
        began = time.monotonic()
        while not answers_metadata(self.port):
            if not self.running:
                raise ServerFailed(f"{self.command[:4]} ended with {self.exit_code()}:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise ServerFailed(f"{self.command[:4]} does not answer on {self.bootstrap}:\n{self.log_tail()}")
            time.sleep(pause_after(time.monotonic() - began))

    def exit_code(self) -> int | None:
        return None if self._child is None else self._child.poll()

    def wait(self) -> int:
        """Until it ends by itself."""
        assert self._child is not None, "the server was not started"
        return self._child.wait()

    def stop(self, seconds: float = STOP_SECONDS_MAX) -> float:
        """SIGTERM, then wait; returns how long it took. A server that does not end in time is killed and reported."""
        if self._child is None:
            return 0.0
        began = time.monotonic()
        with contextlib.suppress(ProcessLookupError):
            self._child.send_signal(signal.SIGTERM)
        try:
            self._child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerFailed(f"{self.command[:4]} did not stop in {seconds} s:\n{self.log_tail()}") from None
        return time.monotonic() - began

    def kill(self) -> None:
        """SIGKILL: what it had not handed to the kernel is gone."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()

    def log_tail(self, size: int = 6000) -> str:
        if not self.log.exists():
            return ""
        with self.log.open("rb") as written:
            written.seek(max(0, self.log.stat().st_size - size))
            return written.read().decode("utf-8", "replace")

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or issubclass(kind, KeyboardInterrupt):
            self.stop()
        else:
            self.kill()


def raise_open_files_limit() -> int:
    """Lets this process, and the servers it starts, open as many files as the system allows; returns that number."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard
