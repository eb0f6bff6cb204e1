"""Protobuf, by Google's library (`pip install 'ottla[protobuf]'`), which checks what it reads; no compiler is needed.

Read in this order: `tokens`, `source_text` (.proto files), `files` (schemas), `columns` (Arrow types and rows),
`programs` (columns by compiled code, where there is any), `decoding`, `filling` (values into messages), `encoding`.
"""

from __future__ import annotations

from ottla.formats.errors import LibraryMissing
from ottla.formats.interface import Decoder, Encoder
from ottla.formats.settings import FormatSettings
from ottla.formats.source import SchemaSource

try:
    import google.protobuf  # noqa: F401  # whether it is there
except ImportError as missing:
    raise LibraryMissing("this needs Google's library: pip install 'ottla[protobuf]'") from missing


def decoder(what: str, settings: FormatSettings) -> Decoder:
    from ottla.formats.protobuf.decoding import ProtobufDecoder
    from ottla.formats.protobuf.files import LANGUAGE

    return ProtobufDecoder(SchemaSource(LANGUAGE, what, settings), rescue_column=settings.rescue_column)


def encoder(what: str, settings: FormatSettings) -> Encoder:
    from ottla.formats.protobuf.encoding import ProtobufEncoder
    from ottla.formats.protobuf.files import LANGUAGE

    return ProtobufEncoder(SchemaSource(LANGUAGE, what, settings))
