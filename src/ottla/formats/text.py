"""Text in UTF-8."""

from __future__ import annotations

from typing import Any

from ottla.formats.errors import BadRecord, BadSpec, BadValue
from ottla.formats.interface import Decoder, Encoder
from ottla.formats.settings import FormatSettings


class TextDecoder(Decoder):
    @property
    def arrow_type(self) -> Any:
        from ottla.arrow.library import pa

        return pa.string()

    def decode(self, values: Any) -> tuple[Any, Any]:
        from ottla.arrow.library import pa
        from ottla.formats.rows import decoded

        try:
            return values.cast(pa.string()), pa.nulls(len(values), pa.string())
        except pa.ArrowInvalid:  # one of them is no UTF-8
            pass
        return decoded(values, self.decode_one, pa.string())

    def decode_one(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise BadRecord(f"no UTF-8: {error.reason} at byte {error.start}") from None


class TextEncoder(Encoder):
    def encode(self, values: Any) -> Any:
        from ottla.arrow.library import pa

        try:
            return values.cast(pa.string()).cast(pa.binary())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise BadValue(f"{values.type} is no text: {error}") from None

    def encode_one(self, value: Any) -> bytes:
        if not isinstance(value, str):
            raise BadValue(f"{type(value).__name__} is no str")
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise BadValue(f"no text that UTF-8 can write: {error.reason} at character {error.start}") from None


def decoder(what: str, _settings: FormatSettings) -> Decoder:
    _check_bare(what)
    return TextDecoder()


def encoder(what: str, _settings: FormatSettings) -> Encoder:
    _check_bare(what)
    return TextEncoder()


def _check_bare(what: str) -> None:
    if what:
        raise BadSpec(f"string has nothing behind a colon, not {what!r}")
