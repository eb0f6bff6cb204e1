"""What a registry is, whatever keeps it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

AVRO: Final = "AVRO"
PROTOBUF: Final = "PROTOBUF"
JSON: Final = "JSON"
KINDS: Final = (AVRO, PROTOBUF, JSON)

#: Confluent's registry takes 1 MiB by its default; what is longer was hardly written by people.
SCHEMA_BYTES_MAX: Final = 4 * 1024 * 1024
INT32_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Another schema that a schema uses under a name."""

    name: str
    subject: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSchema:
    """A schema as its author wrote it."""

    kind: str
    text: str
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSchema:
    """A version of a subject."""

    subject: str
    version: int
    schema_id: int
    schema: WrittenSchema


class SchemaRegistry(ABC):
    """Each method may wait; it raises RegistryUnreachable, SchemaNotFound, SchemaRefused or another RegistryError."""

    #: Where it is, as messages name it.
    place: str

    @abstractmethod
    def by_id(self, schema_id: int) -> WrittenSchema: ...

    @abstractmethod
    def latest(self, subject: str) -> RegisteredSchema: ...

    @abstractmethod
    def version(self, subject: str, version: int) -> RegisteredSchema: ...

    @abstractmethod
    def register(self, subject: str, schema: WrittenSchema) -> int:
        """The id of a schema under a subject, as a new version of it unless it is one already."""

    @abstractmethod
    def find(self, subject: str, schema: WrittenSchema) -> int:
        """The id of a schema that is a version of the subject already."""

    @abstractmethod
    def compatible(self, subject: str, schema: WrittenSchema) -> bool:
        """Whether the subject would take it as its next version."""
