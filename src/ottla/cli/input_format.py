"""What `produce -f FORMAT` reads: records out of a stream of bytes, each as the format says, one after the other.

    %k %v\\n               a key up to the blank, a value up to the end of the line
    %K{4}%V{4}%k%v         lengths of four digits, then a key and a value that are so long
    %V{big32}%v            a length of four bytes, and the value
    %p %v{base64}\\n       a partition, and a value that is decoded
    %k:%H{1}%h{%k=%v;}%v\\n   so many headers, each by a format of its own

Texts are as long as a length before them says, or end where the next literal of the format begins; the last one of a
format that has neither ends with the input. The letters are rpk's: %t topic, %k key, %v (or %s) value, %K and %V
lengths, %p partition, %d (or %T) time in ms, %H how many headers and %h the headers.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from ottla.cli.envelope import NO_TIMESTAMP
from ottla.cli.faults import UsageFault
from ottla.cli.format_tokens import FormatToken, tokens
from ottla.cli.lines import LineFault, ParsedRecord
from ottla.cli.number_forms import HEX_DIGITS, byte_form

#: Headers of one record: more are a length that was read in the wrong place.
HEADERS_MAX: Final = 100_000
_LENGTHS: Final = {"K": "k", "V": "v", "S": "v"}
_TEXTS: Final = {"t": "t", "k": "k", "v": "v", "s": "v"}
_DIGITS: Final = {10: b"0123456789", 16: b"0123456789abcdefABCDEF"}
_NO_TIMESTAMP_64: Final = NO_TIMESTAMP + 2**64
_KNOWN: Final = "%t %k %K %v %V %p %d %H %h %% %{ %}"


class _MoreWanted(Exception):
    """The record is not whole yet."""


@dataclass(slots=True)
class _Reading:
    """One record on its way, and where in the bytes it is."""

    data: bytes
    position: int
    #: Nothing comes behind these bytes.
    is_last: bool
    texts: dict[str, bytes] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    headers: list[tuple[str, bytes | None]] = field(default_factory=list)

    def exactly(self, size: int) -> bytes:
        assert size >= 0
        found = self.data[self.position : self.position + size]
        if len(found) < size:
            if self.is_last:
                raise LineFault(f"the input ends where {size} bytes are due")
            raise _MoreWanted
        self.position += size
        return found


_Step = Callable[[_Reading], None]


class InputFormat:
    """`next_record` gives the record that begins at a position, and where the next one does."""

    def __init__(self, text: str) -> None:
        parsed = tokens(text)
        if not any(isinstance(token, FormatToken) for token in parsed):
            raise UsageFault("-f: the format has nothing of a record in it: give %v at least")
        self._steps = _steps(parsed, _KNOWN)

    def next_record(self, data: bytes, position: int, *, is_last: bool) -> tuple[ParsedRecord, int] | None:
        """None where more has to come first. Raises LineFault."""
        reading = _Reading(data, position, is_last)
        try:
            for step in self._steps:
                step(reading)
        except _MoreWanted:
            return None
        topic = reading.texts.get("t")
        if reading.position == position:
            raise LineFault("the format matches nothing at all here")
        record = ParsedRecord(
            reading.texts.get("k"),
            reading.texts.get("v"),
            reading.headers,
            reading.numbers.get("d"),
            None if topic is None else topic.decode("utf-8", "replace"),
            reading.numbers.get("p"),
        )
        return record, reading.position


def _steps(parsed: list[bytes | FormatToken], known: str) -> list[_Step]:
    steps: list[_Step] = []
    sized: set[str] = set()
    for at, token in enumerate(parsed):
        following = parsed[at + 1] if at + 1 < len(parsed) else None
        if isinstance(token, bytes):
            steps.append(_literal(token, may_end=following is None))
        elif token.letter in _LENGTHS:
            sized.add(_LENGTHS[token.letter])
            steps.append(_number(_LENGTHS[token.letter], token.modifier, into="lengths"))
        elif token.letter in _TEXTS:
            name = _TEXTS[token.letter]
            steps.append(_text(name, token, following, is_sized=name in sized))
        elif token.letter in {"p", "H"}:
            steps.append(_number(token.letter, token.modifier, into="numbers"))
        elif token.letter in {"d", "T"}:
            steps.append(_time(token.modifier))
        elif token.letter == "h":
            steps.append(_headers(token))
        else:
            raise UsageFault(f"-f: there is no %{token.letter} to read; known are {known}")
    return steps


def _literal(text: bytes, *, may_end: bool) -> _Step:
    """`may_end`: what ends a record may be missing behind the last one, as a last line may have no end."""

    def step(reading: _Reading) -> None:
        found = reading.data[reading.position : reading.position + len(text)]
        if found == text:
            reading.position += len(text)
        elif text.startswith(found) and not reading.is_last:
            raise _MoreWanted
        elif not (may_end and not found and reading.is_last):
            raise LineFault(f"there is {_shown(found)} where the format has {_shown(text)}")

    return step


def _text(name: str, token: FormatToken, following: bytes | FormatToken | None, *, is_sized: bool) -> _Step:
    decode = _decoder(token.modifier)
    if not is_sized and isinstance(following, FormatToken):
        raise UsageFault(
            f"-f: nobody can tell where %{token.letter} ends and %{following.letter} begins: put something between "
            "them, or a length before"
        )

    def sized(reading: _Reading) -> None:
        reading.texts[name] = decode(reading.exactly(reading.lengths[name]))

    def delimited(reading: _Reading) -> None:
        end = -1 if following is None else reading.data.find(following, reading.position)  # type: ignore[arg-type]
        if end < 0:
            if not reading.is_last:
                raise _MoreWanted
            end = len(reading.data)
        reading.texts[name] = decode(reading.data[reading.position : end])
        reading.position = end

    return sized if is_sized else delimited


def _decoder(modifier: str | None) -> Callable[[bytes], bytes]:
    if modifier is None:
        return lambda text: text
    if modifier not in {"hex", "base64", "base64raw"}:
        raise UsageFault(f"-f: there is no form {{{modifier[:40]}}} to read; known are hex, base64, base64raw")

    def decode(text: bytes) -> bytes:
        try:
            if modifier == "hex":
                return binascii.unhexlify(text)
            padding = b"=" * (-len(text) % 4) if modifier == "base64raw" else b""
            return b64decode(text + padding, validate=True)
        except ValueError as error:
            raise LineFault(f"{_shown(text)} is not {modifier}") from error

    return decode


def _number(name: str, form: str | None, *, into: str) -> _Step:
    read = _reader(form)

    def step(reading: _Reading) -> None:
        getattr(reading, into)[name] = read(reading)

    return step


def _time(form: str | None) -> _Step:
    """`consume -f` writes -1 where a record has none, in 64 bits as well."""
    read = _reader(form)

    def step(reading: _Reading) -> None:
        is_negative = form in {None, "ascii"} and reading.data.startswith(b"-", reading.position)
        reading.position += is_negative
        number = -read(reading) if is_negative else read(reading)
        if number not in {NO_TIMESTAMP, _NO_TIMESTAMP_64}:
            reading.numbers["d"] = number

    return step


def _reader(form: str | None) -> Callable[[_Reading], int]:
    if form is None or form == "ascii":
        return _digits
    if form == "bool":
        return _truth
    if form.isascii() and form.isdigit() and 0 < len(form) <= 2:
        return lambda reading: _decimal(reading.exactly(int(form)))
    if form in HEX_DIGITS:
        return lambda reading: _decimal(reading.exactly(HEX_DIGITS[form]), 16)
    order, size = byte_form(form)
    return lambda reading: int.from_bytes(reading.exactly(size), order)


def _decimal(text: bytes, base: int = 10) -> int:
    """Python alone would also take signs, blanks and underscores."""
    if not text or any(byte not in _DIGITS[base] for byte in text):
        raise LineFault(f"{_shown(text)} is not a number")
    return int(text, base)


def _digits(reading: _Reading) -> int:
    start = end = reading.position
    while reading.data[end : end + 1].isdigit():
        end += 1
        if end - start > 19:
            raise LineFault(f"{_shown(reading.data[start:end])} is not a number of 64 bits")
    if end == len(reading.data) and not reading.is_last:
        raise _MoreWanted
    reading.position = end
    return _decimal(reading.data[start:end])


def _truth(reading: _Reading) -> int:
    for text, number in ((b"true", 1), (b"false", 0)):
        found = reading.data[reading.position : reading.position + len(text)]
        if found == text:
            reading.position += len(text)
            return number
        if text.startswith(found) and not reading.is_last:
            raise _MoreWanted
    raise LineFault(f"{_shown(reading.data[reading.position :])} is neither true nor false")


def _headers(token: FormatToken) -> _Step:
    if token.modifier is None:
        raise UsageFault("-f: say how a header is made: %h{%k=%v;}")
    steps = _steps(tokens(token.modifier), "%k %K %v %V")

    def step(reading: _Reading) -> None:
        number = reading.numbers.get("H", 1)
        if number > HEADERS_MAX:
            raise LineFault(f"it would have {number} headers, and {HEADERS_MAX} are the most")
        for _ in range(number):
            one = _Reading(reading.data, reading.position, reading.is_last)
            for inner in steps:
                inner(one)
            reading.position = one.position
            name = one.texts.get("k", b"").decode("utf-8", "replace")
            reading.headers.append((name, one.texts.get("v")))

    return step


def _shown(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "replace"))
