"""Avro and Protobuf as a client's serializers: `value_serializer="avro"` (docs/formats.md).

A registry may have to be asked before the first record of a topic or a schema can go on, and that takes a while. So a
serializer waits for nobody: it raises SchemaNotLoaded, its caller has that loaded, by a thread if it runs on an event
loop, and tries again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from ottla.client.arguments import checked_topic
from ottla.client.errors import KafkaError, SchemaUnavailable, SerializationFailed, SettingsError
from ottla.formats import decoder, encoder, is_format
from ottla.formats.errors import FormatError, LibraryMissing
from ottla.formats.interface import Decoder, Encoder

#: Encoders that are kept, one for each topic that is written to.
TOPICS_MAX: Final = 1000


class SchemaNotLoaded(KafkaError):
    """A schema has to be fetched first: `load` does that, and waits for it. A client's callers never see this."""

    def __init__(self, fetch: Callable[[], None], what: str) -> None:
        super().__init__(f"the schema of the {what} is not there yet")
        self._fetch = fetch
        self._what = what

    def load(self) -> None:
        try:
            self._fetch()
        except (FormatError, LibraryMissing) as error:
            raise SchemaUnavailable(f"the schema of the {self._what} cannot be had: {error}") from error


Result = TypeVar("Result")


async def with_schemas(attempt: Callable[[], Result]) -> Result:
    """What an attempt at one record gives, when its schemas are there. Each round brings one of them, or raises."""
    while True:
        try:
            return attempt()
        except SchemaNotLoaded as missing:
            await asyncio.get_running_loop().run_in_executor(None, missing.load)


def waiting_for_schemas(attempt: Callable[[], Result]) -> Result:
    """The same for a thread that may wait."""
    while True:
        try:
            return attempt()
        except SchemaNotLoaded as missing:
            missing.load()


class SchemaSerializer:
    """Writes values of one side (keys or values); each topic has an encoder of its own."""

    def __init__(self, encoder: Encoder, what: str) -> None:
        self._encoder = encoder
        self._what = what
        self._encoders: dict[str, Encoder] = {}

    def __call__(self, value: Any, topic: str) -> bytes:
        """Raises SchemaNotLoaded, SerializationFailed."""
        if topic.__class__ is not str:
            topic = checked_topic(topic)
        try:
            found = self._encoders.get(topic) or self._made(topic)
            load = found.missing_for(value)
            if load is not None:
                raise SchemaNotLoaded(load, self._what)
            return found.encode_one(value)
        except FormatError as error:
            raise SerializationFailed(f"the {self._what} cannot be serialized: {error}") from error

    def _made(self, topic: str) -> Encoder:
        if len(self._encoders) >= TOPICS_MAX:
            self._encoders.clear()
        made = self._encoders[topic] = self._encoder.for_topic(topic)
        return made


class SchemaDeserializer:
    def __init__(self, decoder: Decoder, what: str) -> None:
        self._decoder = decoder
        self._what = what

    def __call__(self, data: bytes) -> Any:
        """Raises SchemaNotLoaded, and what the decoder raises."""
        load = self._decoder.missing_for(data)
        if load is not None:
            raise SchemaNotLoaded(load, self._what)
        return self._decoder.decode_one(data)


def schema_serializer(spec: str, field: str, settings: Mapping[str, Any]) -> SchemaSerializer:
    """Checked as far as that goes without asking a registry; raises SettingsError."""
    try:
        made = encoder(spec, **settings, is_key=field.startswith("key"))
    except (FormatError, LibraryMissing) as error:
        raise SettingsError(f"{field}: {error}") from error
    return SchemaSerializer(made, field.partition(".")[0])


def schema_deserializer(spec: str, field: str, settings: Mapping[str, Any]) -> SchemaDeserializer:
    try:
        made = decoder(spec, **settings, is_key=field.startswith("key"))
    except (FormatError, LibraryMissing) as error:
        raise SettingsError(f"{field}: {error}") from error
    return SchemaDeserializer(made, field.partition(".")[0])


def schema_settings(settings: Any, side: str) -> dict[str, Any]:
    """What the settings of a producer or consumer say of schemas, for `key` or `value`."""
    found: dict[str, Any] = {
        "schema_registry_url": settings.schema_registry_url,
        "basic_auth_user_info": settings.basic_auth_user_info,
        "http_connect_timeout_ms": settings.http_connect_timeout_ms,
        "http_read_timeout_ms": settings.http_read_timeout_ms,
    }
    strategy = getattr(settings, f"{side}_subject_name_strategy", None)
    if strategy is not None:
        found |= {"subject_name_strategy": strategy, "auto_register_schemas": settings.auto_register_schemas}
    return found


def names_a_schema_format(wanted: Any) -> bool:
    """Whether a serializer's name is one of the formats with schemas; `json` and `string` are plain serializers."""
    return is_format(wanted) and wanted.partition(":")[0].strip().lower() in {"avro", "protobuf"}
