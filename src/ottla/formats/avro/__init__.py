"""Avro, in Python alone: no library has to be installed.

The libraries there are do not hold up against bytes that are damaged: they take strings that are cut off for short ones
and count from the end where an index is negative, an array of nulls may announce any number of items, and compiled ones
nest until the stack is used up (docs/decisions/avro-in-python.md).

Read in this order: `schema` (JSON to nodes), `numbers` and `output` (primitives in and out), `shapes` (what becomes of
them), `resolution` (reading by two schemas), `decoding`, `encoding`.
"""

from __future__ import annotations

from typing import Final

from ottla.formats.avro.schema import AvroSchema, parse_schema
from ottla.formats.errors import BadSpec
from ottla.formats.interface import Decoder, Encoder
from ottla.formats.registry.interface import AVRO, WrittenSchema
from ottla.formats.settings import FormatSettings
from ottla.formats.source import Behind, SchemaLanguage, SchemaSource, text_of_file


def decoder(what: str, settings: FormatSettings) -> Decoder:
    from ottla.formats.avro.decoding import AvroDecoder

    return AvroDecoder(SchemaSource(_LANGUAGE, what, settings), rescue_column=settings.rescue_column)


def encoder(what: str, settings: FormatSettings) -> Encoder:
    from ottla.formats.avro.encoding import AvroEncoder

    return AvroEncoder(SchemaSource(_LANGUAGE, what, settings))


def read_file(path: str) -> WrittenSchema:
    return WrittenSchema(kind=AVRO, text=text_of_file(path))


def parse(schema: WrittenSchema, behind: Behind, name: str | None) -> AvroSchema:
    """The schema; or the type of this name in it, such as a record in a union of several."""
    names: dict[str, AvroSchema] = {}
    for _, other in behind:
        parse_schema(other.text, names)
    found = parse_schema(schema.text, names)
    if name is None:
        return found
    if name not in names:
        raise BadSpec(f"the Avro schema has no type {name!r}")
    return names[name]


def name_of(schema: AvroSchema) -> str | None:
    return schema.name


_LANGUAGE: Final = SchemaLanguage(kind=AVRO, suffixes=(".avsc",), read=read_file, parse=parse, name_of=name_of)
