"""Protobuf, by Google's library (`pip install 'ottla[protobuf]'`), which checks what it reads; no compiler is needed.

Read in this order: `tokens`, `source_text` (.proto files), `files` (schemas), `columns` (Arrow types and rows),
`decoding`, `filling` (values into messages), `encoding`.
"""

from __future__ import annotations

from typing import Any

from ottla.formats.errors import LibraryMissing
from ottla.formats.interface import Decoder, Encoder
from ottla.formats.registry.interface import PROTOBUF, WrittenSchema
from ottla.formats.settings import FormatSettings
from ottla.formats.source import SchemaLanguage, SchemaSource


def decoder(what: str, settings: FormatSettings) -> Decoder:
    return rebuilt_decoder(what, settings, None, settings.rescue_column)


def encoder(what: str, settings: FormatSettings) -> Encoder:
    return rebuilt_encoder(what, settings, None)


def rebuilt_decoder(
    what: str, settings: FormatSettings, pinned: WrittenSchema | None, rescue_column: str | None
) -> Decoder:
    source = _source(what, settings, pinned)
    from ottla.formats.protobuf.decoding import ProtobufDecoder

    made: Decoder = ProtobufDecoder(source, rescue_column=rescue_column)
    return made


def rebuilt_encoder(what: str, settings: FormatSettings, pinned: WrittenSchema | None) -> Encoder:
    source = _source(what, settings, pinned)
    from ottla.formats.protobuf.encoding import ProtobufEncoder

    made: Encoder = ProtobufEncoder(source)
    return made


def _source(what: str, settings: FormatSettings, pinned: WrittenSchema | None) -> SchemaSource[Any]:
    try:
        import google.protobuf.descriptor_pb2  # noqa: F401  # whether it is there
    except ImportError as missing:
        raise LibraryMissing("Protobuf needs a library: pip install 'ottla[protobuf]'") from missing
    from ottla.formats.protobuf import files

    language: SchemaLanguage[Any] = SchemaLanguage(
        kind=PROTOBUF,
        suffixes=(".proto", ".desc"),
        read=files.read_file,
        parse=files.parse,
        name_of=files.name_of,
        is_registrable=files.is_registrable,
    )
    return SchemaSource(language, what, settings, pinned)
