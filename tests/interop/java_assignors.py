"""The assignors of Java's client (``java/Assignors.java``), asked about groups that exist only on paper."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tools.java import java_command
from tools.kafka_jars import classpath

from tests.interop.group_members import Partition

PROGRAM = Path(__file__).resolve().parent / "java" / "Assignors.java"


@dataclass(kw_only=True)
class PaperMember:
    topics: list[str]
    owned: list[Partition] = field(default_factory=list)
    generation: int = -1
    rack: str | None = None
    instance: str | None = None


@dataclass(kw_only=True)
class PaperGroup:
    assignor: str
    #: For each partition of each topic the racks with a replica; "" is a broker that has none.
    topics: Mapping[str, list[list[str]]]
    members: Mapping[str, PaperMember]

    def to_json(self) -> str:
        members = {name: vars(member) for name, member in self.members.items()}
        return json.dumps({"assignor": self.assignor, "topics": self.topics, "members": members})


@dataclass(frozen=True, kw_only=True)
class PaperAnswer:
    assigned: dict[str, list[Partition]]
    user_data: dict[str, bytes | None]


class JavaAssignors:
    """A context manager."""

    def __init__(self, jar_folder: Path) -> None:
        self._command = java_command(classpath(jar_folder), str(PROGRAM))
        self._machine: subprocess.Popen[str] | None = None

    def ask(self, group: PaperGroup) -> PaperAnswer:
        machine = self._machine
        assert machine is not None, "used outside its with block"
        assert machine.stdin is not None
        assert machine.stdout is not None
        machine.stdin.write(group.to_json() + "\n")
        machine.stdin.flush()
        line = machine.stdout.readline()
        assert line, f"the assignors' virtual machine ended over {group}"
        told = json.loads(line)
        return PaperAnswer(
            assigned={
                member: [(topic, number) for topic, number in pairs] for member, pairs in told["assigned"].items()
            },
            user_data={
                member: None if data is None else bytes.fromhex(data) for member, data in told["user_data"].items()
            },
        )

    def __enter__(self) -> Self:
        self._machine = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        machine = self._machine
        assert machine is not None
        machine.kill()
        machine.communicate()
