"""Group members of Java's consumer: one virtual machine holds them all (``java/GroupMembers.java``)."""

from __future__ import annotations

import base64
import contextlib
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tools.java import java_command
from tools.kafka_jars import classpath

from tests.interop.clients import SECONDS_MAX
from tests.interop.group_members import HEARTBEAT_MS, SESSION_MS, Member, Partition

PROGRAM = Path(__file__).resolve().parent / "java" / "GroupMembers.java"

_FLAGS = ("-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off")


class JavaMember(Member):
    def __init__(self, name: str, machine: JavaMembers, key: str) -> None:
        super().__init__(name)
        self._machine = machine
        #: Names may come again in another group; this does not.
        self._key = key
        self.ended = threading.Event()

    def leave(self) -> None:
        self._end("leave")

    def stay(self) -> None:
        self._end("stay")

    def _end(self, way: str) -> None:
        self._machine.say(f"{way} {self._key}")
        assert self.ended.wait(SECONDS_MAX), f"{self.name} did not end: {self.failure}"


class JavaMembers:
    """A context manager; ``start`` begins a member."""

    def __init__(self, jar_folder: Path) -> None:
        self._command = java_command(classpath(jar_folder), str(PROGRAM), flags=_FLAGS)
        self._machine: subprocess.Popen[str] | None = None
        self._members: dict[str, JavaMember] = {}
        self._hearing = threading.Thread(target=self._hear, name="java-members", daemon=True)

    def start(self, name: str, bootstrap: str, group: str, topics: Sequence[str], **settings: Any) -> JavaMember:
        key = f"m{len(self._members)}"
        member = self._members[key] = JavaMember(name, self, key)
        named: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": name,
            "auto.offset.reset": "earliest",
            "fetch.max.wait.ms": 100,
            "retry.backoff.ms": 20,
            "metadata.max.age.ms": 500,
        }
        if settings.get("group_protocol") != "consumer":  # there the server decides these
            named |= {
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": HEARTBEAT_MS,
                "partition.assignment.strategy": "org.apache.kafka.clients.consumer.RangeAssignor",
            }
        named |= {key.replace("_", "."): value for key, value in settings.items()}
        self.say(f"start {key} {','.join(topics)} " + " ".join(f"{key}={value}" for key, value in named.items()))
        return member

    def say(self, command: str) -> None:
        assert self._machine is not None, "used outside its with block"
        assert self._machine.stdin is not None
        self._machine.stdin.write(command + "\n")
        self._machine.stdin.flush()

    def _hear(self) -> None:
        assert self._machine is not None
        assert self._machine.stdout is not None
        for line in self._machine.stdout:
            kind, key, *rest = line.rstrip("\n").split(" ")
            member = self._members[key]
            if kind == "record":
                topic, partition, offset, value = rest
                member.read(topic, int(partition), int(offset), base64.b64decode(value))
            elif kind == "ended":
                member.ended.set()
            elif kind == "failed":
                member.failure = " ".join(rest)
                member.ended.set()
            else:
                member.told(kind, map(_partition, filter(None, rest[0].split(","))))

    def __enter__(self) -> Self:
        self._machine = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # the client's log, of which each refused connection is a line
            text=True,
            start_new_session=True,
        )
        self._hearing.start()
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
            machine.wait(5)
        except subprocess.TimeoutExpired:
            machine.kill()
            machine.wait()
        self._hearing.join()


def _partition(named: str) -> Partition:
    topic, _, number = named.rpartition("-")
    return topic, int(number)
