"""Where Avro schemas come from: a file, a registry's subject, or each record's header."""

from __future__ import annotations

from typing import Final

from ottla.formats.avro.schema import AvroSchema, parse_schema
from ottla.formats.errors import BadRecord, BadSpec
from ottla.formats.registry import CachedRegistry, registry_for
from ottla.formats.registry.interface import AVRO, SCHEMA_BYTES_MAX, RegisteredSchema, WrittenSchema
from ottla.formats.settings import FormatSettings
from ottla.formats.subjects import strategy_for, subject_for

#: What a spec says in place of a subject: records name their schemas.
REGISTRY: Final = "registry"


class SchemaSource:
    """Pickled without what it has read, but for the schema that is `pinned`."""

    def __init__(self, what: str, settings: FormatSettings, pinned: WrittenSchema | None = None) -> None:
        self._settings = settings
        self._what = what
        self._registry = registry_for(settings)
        self._is_file = what.endswith(".avsc")
        strategy_for(settings.subject_name_strategy)  # one that is none is said at once
        self._pinned = pinned
        self._given: AvroSchema | None = None
        self._column: AvroSchema | None = None
        self._registered: RegisteredSchema | None = None
        if settings.framing == "confluent" and self._registry is None and not self._is_file:
            raise BadSpec("the header's schema ids need schema.registry.url: a URL, or a folder")
        if not self._is_file and self._registry is None:
            raise BadSpec(f"avro:{what or REGISTRY} needs schema.registry.url: a URL, or a folder")
        if self._is_file and pinned is None:
            self._pinned = WrittenSchema(kind=AVRO, text=_text_of(what))

    def __reduce__(self) -> tuple[type[SchemaSource], tuple[str, FormatSettings, WrittenSchema | None]]:
        return SchemaSource, (self._what, self._settings, self._pinned)

    @property
    def settings(self) -> FormatSettings:
        return self._settings

    @property
    def registry(self) -> CachedRegistry | None:
        return self._registry

    @property
    def framed(self) -> bool:
        """Whether five bytes stand before each value."""
        framing = self._settings.framing
        return self._registry is not None if framing is None else framing == "confluent"

    def pinned(self) -> SchemaSource:
        """The same, with the column's schema as it is now, if it has one."""
        if self._pinned is not None or not (self._names_subject or self._settings.topic is not None):
            return self
        return SchemaSource(self._what, self._settings, self.written())

    @property
    def _names_subject(self) -> bool:
        return self._what not in {"", REGISTRY} or self._settings.subject is not None

    # The reader's schema

    def given_schema(self) -> AvroSchema | None:
        """The reader's schema of single records; None where each is read by its writer's."""
        if not self._is_file and self._what in {"", REGISTRY} and self.framed:
            return None
        return self.column_schema()

    def column_schema(self) -> AvroSchema:
        """The schema that a column has; raises BadSpec, or what the registry says."""
        if self._column is None:
            written = self.written()
            if written.kind != AVRO:
                raise BadSpec(f"{self._what or REGISTRY}: the schema is one of {written.kind.title()}, not of Avro")
            self._column = self._with_references(written)
        return self._column

    def written(self) -> WrittenSchema:
        """The column's schema as its author wrote it."""
        return self.registered().schema if self._pinned is None else self._pinned

    def registered(self) -> RegisteredSchema:
        """The latest version of the subject, as it was when it was first asked for."""
        if self._registered is None:
            assert self._registry is not None
            self._registered = self._registry.latest(self.subject(None))
        return self._registered

    def subject(self, record: str | None) -> str:
        if not self._is_file and self._what not in {"", REGISTRY}:
            return self._what
        return subject_for(self._settings, record)

    # Writers' schemas

    def writer_schema(self, schema_id: int) -> AvroSchema:
        """The schema that a record's header names; of plain records the reader's."""
        if not self.framed:
            return self.column_schema()
        if self._registry is None:
            return self.column_schema()  # records with a header, and a file in place of a registry
        schema = self._registry.by_id(schema_id)
        if schema.kind != AVRO:
            raise BadRecord(f"schema {schema_id} is one of {schema.kind.title()}, not of Avro")
        return self._with_references(schema)

    def id_to_write(self) -> int:
        """The id that goes before values: registered or found under the subject, which is asked for once."""
        if self._registry is None:
            raise BadSpec("the header's schema ids need schema.registry.url: a URL, or a folder")
        if not self._is_file:
            return (
                self.registered().schema_id
                if self._pinned is None
                else self._registry.find(self.subject(None), self._pinned)
            )
        subject = self.subject(self.column_schema().name)
        ask = self._registry.register if self._settings.auto_register_schemas else self._registry.find
        return ask(subject, self.written())

    def refuses(self, schema_id: int) -> bool:
        return self.framed and self._registry is not None and self._registry.refuses(schema_id)

    def _with_references(self, schema: WrittenSchema) -> AvroSchema:
        names: dict[str, AvroSchema] = {}
        if schema.references:
            assert self._registry is not None
            for _, other in self._registry.behind(schema):
                parse_schema(other.text, names)
        return parse_schema(schema.text, names)


def _text_of(path: str) -> str:
    try:
        with open(path, "rb") as file:
            raw = file.read(SCHEMA_BYTES_MAX + 1)
        text = raw.decode()
    except OSError as error:
        raise BadSpec(f"the schema file {path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise BadSpec(f"the schema file {path} is no text in UTF-8") from None
    if len(raw) > SCHEMA_BYTES_MAX:
        raise BadSpec(f"the schema file {path} is over {SCHEMA_BYTES_MAX} bytes")
    return text
