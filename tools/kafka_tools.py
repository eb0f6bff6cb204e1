"""Kafka's command line tools, run in one warm Java virtual machine (see ``java/ToolServer.java``)."""

from __future__ import annotations

import base64
import contextlib
import selectors
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.java import java_command
from tools.kafka_jars import classpath

_SOURCE = Path(__file__).resolve().parent / "java" / "ToolServer.java"

#: The server looks for what a tool has left to be run at the end of the virtual machine.
_FLAGS = ("-Xmx256m", "--add-opens=java.base/java.lang=ALL-UNNAMED")

TOOL_SECONDS_MAX = 60.0


class ToolFailed(Exception):
    """A tool did not answer in time, or the virtual machine that runs them ended."""


@dataclass(frozen=True, kw_only=True)
class ToolResult:
    exit_code: int
    out: str
    err: str

    def checked(self) -> str:
        """What the tool printed, if it ended well."""
        if self.exit_code:
            raise ToolFailed(f"exit code {self.exit_code}\n{self.out}\n{self.err}")
        return self.out


class KafkaTools:
    """A context manager; ``run`` is one invocation of one tool's ``main``. Tools run one at a time."""

    def __init__(self, jar_folder: Path, *, flags: tuple[str, ...] = (), end_seconds_max: float = 5.0) -> None:
        self._command = java_command(classpath(jar_folder), str(_SOURCE), flags=(*_FLAGS, *flags))
        self._end_seconds_max = end_seconds_max
        self._machine: subprocess.Popen[bytes] | None = None

    def run(self, tool: str, *arguments: str, stdin: bytes = b"", seconds: float = TOOL_SECONDS_MAX) -> ToolResult:
        """``tool`` is a class in Kafka's package of tools; one of the older package ``kafka`` has its full name."""
        machine = self._machine
        assert machine is not None, "used outside its with block"
        assert machine.stdin is not None
        name = tool if tool.startswith("kafka.") else f"org.apache.kafka.tools.{tool}"
        fields = [name.encode(), stdin, *(argument.encode() for argument in arguments)]
        machine.stdin.write(b" ".join(base64.b64encode(field) for field in fields) + b"\n")
        machine.stdin.flush()
        code, out, err = self._answer(machine, time.monotonic() + seconds, name).split(b" ")
        return ToolResult(
            exit_code=int(code),
            out=base64.b64decode(out).decode("utf-8", "replace"),
            err=base64.b64decode(err).decode("utf-8", "replace"),
        )

    def _answer(self, machine: subprocess.Popen[bytes], deadline: float, name: str) -> bytes:
        assert machine.stdout is not None
        line = bytearray()
        with selectors.DefaultSelector() as readable:
            readable.register(machine.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not readable.select(max(0.0, deadline - time.monotonic())):
                    machine.kill()  # nothing else ends a tool that hangs
                    raise ToolFailed(f"{name} did not end in time")
                piece = machine.stdout.read1()  # type: ignore[attr-defined]
                if not piece:
                    raise ToolFailed(f"the tools' virtual machine ended during {name}")
                line += piece
        return bytes(line[:-1])

    def __enter__(self) -> Self:
        self._machine = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        machine = self._machine
        assert machine is not None
        assert machine.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            machine.stdin.close()
        try:
            machine.wait(self._end_seconds_max)
        except subprocess.TimeoutExpired:
            machine.kill()
            machine.wait()
        if machine.stdout is not None:
            machine.stdout.close()
