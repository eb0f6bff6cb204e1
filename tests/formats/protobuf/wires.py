"""Schemas and bytes of their messages, at random: what writers write, and what the wire allows beside that."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from hypothesis import strategies as st

SCALARS: Final = (
    *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64"),
    *("sfixed32", "sfixed64", "bool", "string", "bytes"),
)
KEYS: Final = tuple(one for one in SCALARS if one not in {"double", "float", "bytes"})
ENUMS: Final = {
    "proto3": "enum E { option allow_alias = true; NO = 0; A = 1; AA = 1; B = 2; LESS = -2; MORE = 1000; }",
    "proto2": "enum E { THREE = 3; NO = 0; MOST = 2147483647; LEAST = -2147483648; }",
}
OF_GOOGLE: Final = (
    *("google.protobuf.Timestamp", "google.protobuf.Duration"),
    *(f"google.protobuf.{name}Value" for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32")),
    *(f"google.protobuf.{name}Value" for name in ("Bool", "String", "Bytes")),
)
IMPORTS: Final = "".join(f'import "google/protobuf/{name}.proto";' for name in ("timestamp", "duration", "wrappers"))
NUMBERS: Final = (*range(1, 18), 2047, 2048, 18_999, 20_000, 2**29 - 1)
#: Messages hold each other so deep.
LEVELS: Final = 3


@st.composite
def sources(draw: st.DrawFn) -> str:
    """A .proto file's text; its first message is the one that is meant."""
    syntax = draw(st.sampled_from(["proto3", "proto2"]))
    messages = [f"message M{level} {{ {draw(_bodies(syntax, level))} }}" for level in range(LEVELS)]
    return f'syntax = "{syntax}"; {IMPORTS} {ENUMS[syntax]} {" ".join(messages)}'


@st.composite
def _bodies(draw: st.DrawFn, syntax: str, level: int) -> str:
    numbers = draw(st.lists(st.sampled_from(NUMBERS), min_size=level == 0, max_size=7, unique=True))
    in_oneof = draw(st.integers(0, 3))
    lines = []
    members = []
    for place, number in enumerate(numbers):
        name = f"f{number}"
        kind = draw(_kinds(level))
        if place < in_oneof:
            members.append(f"{kind} {name} = {number};")
            continue
        labels = ["repeated", "optional", "" if syntax == "proto3" else "required", "map"]
        label = draw(st.sampled_from(labels))
        if label == "map":
            lines.append(f"map<{draw(st.sampled_from(KEYS))}, {kind}> {name} = {number};")
            continue
        may_be_packed = label == "repeated" and kind in {*SCALARS, "E"} - {"string", "bytes"}
        option = draw(st.sampled_from(["", " [packed = true]", " [packed = false]"])) if may_be_packed else ""
        lines.append(f"{label} {kind} {name} = {number}{option};")
    if members:
        lines.insert(draw(st.integers(0, len(lines))), f"oneof either {{ {' '.join(members)} }}")
    return " ".join(lines)


def _kinds(level: int) -> st.SearchStrategy[str]:
    below = [f"M{level + 1}"] * 6 if level + 1 < LEVELS else []
    return st.sampled_from([*SCALARS, "E", "E", *OF_GOOGLE, *below])


# Bytes

_EDGES: Final = (0, 1, 2, 3, 127, 128, 300, 10**6, -1, 2**31 - 1, -(2**31), 2**32 - 1, 2**63 - 1, -(2**63))
_TEXTS: Final = ("", "a", "b", "ab", "é", "\U0001f600", "x" * 200)
_VARINT, _EIGHT, _SIZED, _FOUR = 0, 1, 2, 5
_FIXED: Final = {
    **dict.fromkeys((FieldDescriptor.TYPE_FIXED32, FieldDescriptor.TYPE_SFIXED32, FieldDescriptor.TYPE_FLOAT), 4),
    **dict.fromkeys((FieldDescriptor.TYPE_FIXED64, FieldDescriptor.TYPE_SFIXED64, FieldDescriptor.TYPE_DOUBLE), 8),
}
#: Whose floats are numbers, so that equal values are seen to be equal.
_PLAIN_BYTES: Final = (b"\0" * 8, b"\0\0\x80\x3f" * 2, b"\0\0\0\x80" * 2, b"\x01\x02\x03\x04" * 2, b"\0\0\x80\x7f" * 2)
_SMALL: Final = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31),
    FieldDescriptor.TYPE_UINT32: (0, 2**32),
    FieldDescriptor.TYPE_SINT32: (0, 2**32),
    FieldDescriptor.TYPE_BOOL: (0, 2),
}


def varint(number: int, padding: int = 0) -> bytes:
    """With so many bytes more than it needs."""
    number &= 2**64 - 1
    made = bytearray()
    while number > 0x7F or padding:
        if number <= 0x7F:
            padding -= 1
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def tag(number: int, wire: int) -> bytes:
    return varint(number << 3 | wire)


def sized(data: bytes) -> bytes:
    return varint(len(data)) + data


class Writing:
    """Of messages of a type; of ten things, so many are what hardly any writer writes."""

    def __init__(self, chance: Random, odd: float) -> None:
        self._chance = chance
        self._odd = odd

    def _is_odd(self) -> bool:
        return self._chance.random() < self._odd

    def message(self, message: Any) -> bytes:
        pieces = []
        for field in self._members(message):
            times = self._chance.choice((0, 1, 1, 2, 3)) if field.is_repeated else self._chance.choice((0, 1, 1, 1))
            if self._is_odd():
                times += 1
            elif field.is_required:
                times = 1
            pieces += self._occurrences(field, times)
        if self._chance.random() < 0.2 or self._is_odd():
            pieces.append(self._unknown())
        if self._chance.random() < 0.3:
            self._chance.shuffle(pieces)
        return b"".join(pieces)

    def _members(self, message: Any) -> list[Any]:
        """Of a oneof one alone."""
        left_out = set()
        for oneof in message.oneofs:
            if not self._is_odd():
                chosen = self._chance.choice(oneof.fields)
                left_out |= {one.number for one in oneof.fields if one.number != chosen.number}
        fields = [one for one in message.fields if one.number not in left_out]
        return sorted(fields, key=lambda one: one.number)

    def _occurrences(self, field: Any, times: int) -> list[bytes]:
        values = [self._value(field) for _ in range(times)]
        if not field.is_repeated or self._wire(field) == _SIZED or self._chance.random() < 0.3:
            return [tag(field.number, self._wire(field)) + value for value in values]
        half = self._chance.randrange(len(values) + 1)
        parts = [values[:half], values[half:]] if self._chance.random() < 0.2 else [values]
        return [tag(field.number, _SIZED) + sized(b"".join(part)) for part in parts]

    def _wire(self, field: Any) -> int:
        if self._chance.random() < self._odd / 10:
            return self._chance.randrange(8)
        if field.type in _FIXED:
            return _FOUR if _FIXED[field.type] == 4 else _EIGHT
        is_sized = field.message_type is not None or field.cpp_type == FieldDescriptor.CPPTYPE_STRING
        return _SIZED if is_sized else _VARINT

    def _value(self, field: Any) -> bytes:
        if field.message_type is not None:
            return sized(self.message(field.message_type))
        if field.type in _FIXED:
            return self._chance.choice(_PLAIN_BYTES)[: _FIXED[field.type]]
        if field.type == FieldDescriptor.TYPE_STRING:
            return sized(self._chance.choice((b"\xff", b"\xc3")) if self._is_odd() else self._text().encode())
        if field.type == FieldDescriptor.TYPE_BYTES:
            return sized(self._chance.choice((b"", b"\0", b"\xff\xfe")))
        padding = self._chance.randrange(5) if self._is_odd() else 0
        return varint(self._number(field), padding)

    def _text(self) -> str:
        return self._chance.choice(_TEXTS)

    def _number(self, field: Any) -> int:
        if self._is_odd():
            return self._chance.choice(_EDGES)
        if field.enum_type is not None:
            number: int = self._chance.choice(field.enum_type.values).number
            return number
        first, end = _SMALL.get(field.type, (-(2**63), 2**64))
        return self._chance.choice([one for one in _EDGES if first <= one < end])

    def _unknown(self) -> bytes:
        number = self._chance.choice((30, 3000, 2**28)) if not self._is_odd() else 0
        wire = self._chance.choice((_VARINT, _EIGHT, _SIZED, _FOUR, 3, 4) if self._is_odd() else (_VARINT, _SIZED))
        body = {_VARINT: varint(300), _EIGHT: bytes(8), _SIZED: sized(b"\xff\xff"), _FOUR: bytes(4), 3: tag(number, 4)}
        return tag(number, wire) + body.get(wire, b"")


def mutated(raw: bytes, chance: Random) -> bytes:
    data = bytearray(raw)
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(data) + 1)
        if chance.random() < 0.3:
            del data[at:]
        elif chance.random() < 0.5:
            data[at:at] = bytes([chance.choice((0, 0x80, 0xFF, chance.randrange(256)))]) * chance.randrange(1, 12)
        elif at < len(data):
            data[at] = chance.randrange(256)
    return bytes(data)


def some_rows(message: Any, chance: Random, count: int) -> Sequence[bytes | None]:
    """Sound ones, odd ones and damaged ones."""
    usual, odd = Writing(chance, 0.0), Writing(chance, 0.05)
    sound = [usual.message(message) for _ in range(count)]
    rows = [*sound, *(odd.message(message) for _ in range(count)), *(mutated(one, chance) for one in sound), None]
    chance.shuffle(rows)
    return rows
