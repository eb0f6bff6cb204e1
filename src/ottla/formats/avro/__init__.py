"""Avro, in Python alone: no library has to be installed.

The libraries there are do not hold up against bytes that are damaged: they take strings that are cut off for short ones
and count from the end where an index is negative, an array of nulls may announce any number of items, and compiled ones
nest until the stack is used up (docs/decisions/avro-in-python.md).

Read in this order: `schema` (JSON to nodes), `numbers` and `output` (primitives in and out), `shapes` (what becomes of
them), `resolution` (reading by two schemas), `source` (where schemas come from), `decoding`, `encoding`.
"""

from __future__ import annotations

from ottla.formats.avro.source import SchemaSource
from ottla.formats.interface import Decoder, Encoder
from ottla.formats.settings import FormatSettings


def decoder(what: str, settings: FormatSettings) -> Decoder:
    from ottla.formats.avro.decoding import AvroDecoder

    return AvroDecoder(SchemaSource(what, settings), rescue_column=settings.rescue_column)


def encoder(what: str, settings: FormatSettings) -> Encoder:
    from ottla.formats.avro.encoding import AvroEncoder

    return AvroEncoder(SchemaSource(what, settings))
