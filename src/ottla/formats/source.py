"""Where a format's schemas come from: a file, a registry's subject, or each record's header.

avro:order.avsc                    a file
avro:orders-value                  the latest schema of a subject
avro, avro:registry                records name their schemas; a column has the latest of its topic's subject
protobuf:shop.proto#shop.Order     with a message's name, where a schema has several
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

from ottla.formats.errors import BadRecord, BadSpec
from ottla.formats.registry import registry_for
from ottla.formats.registry.interface import SCHEMA_BYTES_MAX, RegisteredSchema, WrittenSchema
from ottla.formats.settings import FormatSettings
from ottla.formats.subjects import strategy_for, subject_for

#: What a spec says in place of a subject.
REGISTRY: Final = "registry"

Schema = TypeVar("Schema")
#: The schemas that a schema refers to, by the names that it has for them, each behind those that it needs.
Behind = list[tuple[str, WrittenSchema]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaLanguage(Generic[Schema]):
    """What a format knows of its schemas. Its functions are pickled by their names."""

    #: As registries name it.
    kind: str
    suffixes: tuple[str, ...]
    #: From a file's path.
    read: Callable[[str], WrittenSchema]
    #: With what it refers to, and the name behind the spec's #; raises BadSpec.
    parse: Callable[[WrittenSchema, Behind, str | None], Schema]
    #: The name that subjects may have, where it has one.
    name_of: Callable[[Schema], str | None]
    is_registrable: Callable[[WrittenSchema], bool] | None = None


class SchemaSource(Generic[Schema]):
    """Pickled without what it has read, but for the schema that is `pinned`."""

    def __init__(
        self,
        language: SchemaLanguage[Schema],
        what: str,
        settings: FormatSettings,
        pinned: WrittenSchema | None = None,
        pinned_id: int | None = None,
    ) -> None:
        self._language = language
        self._settings = settings
        self._what = what
        self._place, _, message = what.partition("#")
        self._message = message or None
        self._registry = registry_for(settings)
        self._is_file = self._place.endswith(language.suffixes)
        self._pinned = pinned
        #: Of a subject's schema that is pinned; a file's is asked for.
        self._pinned_id = pinned_id
        self._column: Schema | None = None
        self._registered: RegisteredSchema | None = None
        strategy_for(settings.subject_name_strategy)  # one that is none is said at once
        if self._registry is None and (settings.framing == "confluent" or not self._is_file):
            raise BadSpec(f"{language.kind.lower()}:{what or REGISTRY} needs schema.registry.url: a URL, or a folder")
        if self._is_file and pinned is None:
            self._pinned = language.read(self._place)
            self._column = self._parsed(self._pinned)

    def __reduce__(self) -> tuple[Any, ...]:
        return SchemaSource, (self._language, self._what, self._settings, self._pinned, self._pinned_id)

    @property
    def framed(self) -> bool:
        """Whether five bytes stand before each value."""
        framing = self._settings.framing
        return self._registry is not None if framing is None else framing == "confluent"

    def pinned(self) -> SchemaSource[Schema]:
        """The same, with the column's schema as it is now, if it has one."""
        if self._pinned is not None or not (self._names_subject or self._settings.topic is not None):
            return self
        found = self.registered()
        return SchemaSource(self._language, self._what, self._settings, found.schema, found.schema_id)

    def for_topic(self, topic: str) -> SchemaSource[Schema]:
        """The same with another topic; a file is not read again."""
        pinned = self._pinned if self._is_file else None
        made = SchemaSource(self._language, self._what, replace(self._settings, topic=topic), pinned)
        if self._is_file:
            made._column = self._column
        return made

    def parts(self) -> tuple[str, FormatSettings, WrittenSchema | None]:
        """What it is made of, beside the language."""
        return self._what, self._settings, self._pinned

    @property
    def names_its_schema(self) -> bool:
        """Whether the spec says which schema single records are read with; otherwise each record does."""
        return self._is_file or self._place not in {"", REGISTRY} or not self.framed

    @property
    def _names_subject(self) -> bool:
        return self._place not in {"", REGISTRY} or self._settings.subject is not None

    # The reader's schema

    def given_schema(self) -> Schema | None:
        """The reader's schema of single records; None where each is read by its writer's."""
        return self.column_schema() if self.names_its_schema else None

    @property
    def is_at_hand(self) -> bool:
        """Whether `given_schema` waits for nobody."""
        return self._column is not None or not self.names_its_schema

    def column_schema(self) -> Schema:
        """The schema that a column has; raises BadSpec, or what the registry says."""
        if self._column is None:
            self._column = self._parsed(self._written())
        return self._column

    def _written(self) -> WrittenSchema:
        """The column's schema as its author wrote it."""
        return self.registered().schema if self._pinned is None else self._pinned

    def registered(self) -> RegisteredSchema:
        """The latest version of the subject, as it was when it was first asked for."""
        if self._registered is None:
            assert self._registry is not None
            self._registered = self._registry.latest(self.subject(None))
        return self._registered

    def subject(self, record: str | None) -> str:
        if not self._is_file and self._place not in {"", REGISTRY}:
            return self._place
        return subject_for(self._settings, record)

    # Writers' schemas

    def writer_schema(self, schema_id: int) -> Schema:
        """The schema that a record's header names; of plain records the reader's."""
        if not self.framed or self._registry is None:
            return self.column_schema()
        schema = self._registry.by_id(schema_id)
        if schema.kind != self._language.kind:
            raise BadRecord(f"schema {schema_id} is one of {schema.kind.title()}, not of {self._language.kind.title()}")
        return self._language.parse(schema, self._registry.behind(schema), None)

    def id_to_write(self) -> int:
        """The id that goes before values: registered or found under the subject, which is asked for once."""
        assert self._registry is not None
        if not self._is_file:
            return self.registered().schema_id if self._pinned_id is None else self._pinned_id
        subject = self.subject(self._language.name_of(self.column_schema()))
        registrable = self._language.is_registrable
        if registrable is not None and not registrable(self._written()):
            raise BadSpec(
                f"{self._place} needs other files, which a registry keeps under subjects of their own: register all of "
                f"them, and name the subject, {subject!r}, in place of the file"
            )
        ask = self._registry.register if self._settings.auto_register_schemas else self._registry.find
        return ask(subject, self._written())

    def refuses(self, schema_id: int) -> bool:
        return self.framed and self._registry is not None and self._registry.refuses(schema_id)

    def _parsed(self, schema: WrittenSchema) -> Schema:
        if schema.kind != self._language.kind:
            raise BadSpec(
                f"{self._what or REGISTRY}: the schema is one of {schema.kind.title()}, "
                f"not of {self._language.kind.title()}"
            )
        behind = self._registry.behind(schema) if self._registry is not None else []
        return self._language.parse(schema, behind, self._message)


def bytes_of_file(path: str) -> bytes:
    """A schema file's; raises BadSpec."""
    try:
        with open(path, "rb") as file:
            raw = file.read(SCHEMA_BYTES_MAX + 1)
    except OSError as error:
        raise BadSpec(f"the schema file {path} cannot be read: {error.strerror}") from error
    if len(raw) > SCHEMA_BYTES_MAX:
        raise BadSpec(f"the schema file {path} is over {SCHEMA_BYTES_MAX} bytes")
    return raw


def text_of_file(path: str) -> str:
    try:
        return bytes_of_file(path).decode()
    except UnicodeDecodeError:
        raise BadSpec(f"the schema file {path} is no text in UTF-8") from None
