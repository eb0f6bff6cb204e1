"""Requests whose arrays and byte strings are as long as a frame can carry, made from the schemas: of any API.

Elements are encoded a few hundred at a time and their bytes repeated: a frame of 100 MB takes a second or two.

    frame = | what stands before the array | its count | elements | what stands behind it |

Two messages that differ in the count alone say where these parts are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib import import_module
from itertools import count, repeat
from typing import Any

from ottla.protocol.apis import api
from ottla.protocol.compile.__main__ import load_schemas
from ottla.protocol.compile.schema import FIXED, Field, Schema, Struct
from ottla.protocol.compile.shape import form, snake
from ottla.protocol.errors import DecodeError
from ottla.protocol.header import RequestHeader, decode_request_header, encode_request
from ottla.protocol.message import Message, Structure
from ottla.protocol.stepping import HELD_BYTES_MAX, DecodingAllowance
from ottla.steps import at_once

_LENGTH_BYTES = 4
#: A count of 32 bits as a varint.
_COUNT_BYTES_MAX = 5
#: Elements that are encoded together.
_CHUNK = 512
#: By which the memory that an element takes is known.
_PROBE_BYTES = 200_000


class Filling(Enum):
    """What the elements of a long array hold."""

    #: As few bytes as can be, all alike.
    EMPTY = "empty"
    #: Names that exist, kinds and numbers that mean something, in all their combinations, over and over.
    KNOWN = "known"
    #: Each names something else, and none of it exists.
    NUMBERED = "numbered"


def repeated(
    key: int,
    version: int,
    message: Callable[[list[Any]], Message],
    elements: Callable[[int, int], list[Any]],
    *,
    count_max: int | None = None,
    bytes_max: int | None = None,
) -> bytes:
    """A frame whose one long array holds `elements(first, how many)` as often as the bounds allow.

    Where `elements` gives the same objects for whatever first, they are encoded once.
    """
    header = RequestHeader(api_key=key, api_version=version, correlation_id=1, client_id="attack")

    def whole(part: list[Any]) -> bytes:
        return encode_request(header, message(part))[_LENGTH_BYTES:]

    cut = _Cut.of(whole, elements, compact=_is_flexible(key, version))
    room = None if bytes_max is None else bytes_max - len(cut.before) - len(cut.behind) - _COUNT_BYTES_MAX
    body = bytearray()
    made = 0
    first_chunk = elements(0, _CHUNK)
    same = first_chunk == elements(_CHUNK, _CHUNK)
    chunk, chunk_count = b"", 0
    while count_max is None or made < count_max:
        wanted = _CHUNK if count_max is None else min(_CHUNK, count_max - made)
        if not same or wanted != chunk_count:
            chunk, chunk_count = cut.elements(whole(elements(made, wanted))), wanted
        if room is not None and len(body) + len(chunk) > room:
            break
        body += chunk
        made += wanted
    rest = cut.before + cut.count(made) + bytes(body) + cut.behind
    return len(rest).to_bytes(_LENGTH_BYTES, "big") + rest


@dataclass(frozen=True, kw_only=True)
class _Cut:
    """The parts of a message around its array."""

    before: bytes
    behind: bytes
    compact: bool

    @staticmethod
    def of(whole: Callable[[list[Any]], bytes], elements: Callable[[int, int], list[Any]], *, compact: bool) -> _Cut:
        none, one = whole([]), whole(elements(0, 1))
        assert none != one, "the array is not in this version"
        differs = next(place for place, (a, b) in enumerate(zip(none, one, strict=False)) if a != b)
        start = differs if compact else differs - 3
        behind = none[start + (1 if compact else 4) :]
        assert one.endswith(behind)
        return _Cut(before=none[:start], behind=behind, compact=compact)

    def count(self, number: int) -> bytes:
        if not self.compact:
            return number.to_bytes(4, "big")
        number += 1
        out = bytearray()
        while number > 0x7F:
            out.append(number & 0x7F | 0x80)
            number >>= 7
        out.append(number)
        return bytes(out)

    def elements(self, body: bytes) -> bytes:
        start = len(self.before)
        if self.compact:
            while body[start] & 0x80:
                start += 1
            start += 1
        else:
            start += 4
        return body[start : len(body) - len(self.behind)]


def _is_flexible(key: int, version: int) -> bool:
    flexible_from = api(key).flexible_from
    return flexible_from is not None and version >= flexible_from


def frame_that_is_taken(array: LongArray, filling: Filling, *, bytes_max: int, topic_id: bytes = bytes(16)) -> bytes:
    """The longest that a decoder does not refuse for the memory that it would take: what is longer costs nothing."""
    probe = array.frame(filling, bytes_max=min(bytes_max, _PROBE_BYTES), topic_id=topic_id)
    taken = _taken(probe)
    size = bytes_max if not taken else min(bytes_max, int(len(probe) * HELD_BYTES_MAX / taken))
    while True:
        frame = array.frame(filling, bytes_max=size, topic_id=topic_id)
        if _taken(frame) is not None or size <= _PROBE_BYTES:
            return frame
        size = int(size * 0.95)


def _taken(frame: bytes) -> int | None:
    """Of a request's allowance; None: more than there is."""
    header, position = decode_request_header(frame[_LENGTH_BYTES:], 0)
    allowance = DecodingAllowance()
    decode_steps = api(header.api_key).request_type().decode_steps
    try:
        at_once(decode_steps(frame[_LENGTH_BYTES:], header.api_version, position, allowance))
    except DecodeError:
        return None
    return allowance.most - allowance.left


# -- from schemas


@dataclass(frozen=True)
class LongArray:
    """An array field of a request, by the names of the fields that lead to it."""

    key: int
    version: int
    path: tuple[str, ...]

    @property
    def id(self) -> str:
        return f"{api(self.key).name}.{self.version}.{'.'.join(self.path)}"

    def frame(self, filling: Filling, *, bytes_max: int, topic_id: bytes = bytes(16)) -> bytes:
        """The request in which this array is as long as it can be; each array around it has one element.

        `topic_id` is that of a topic that there is.
        """
        maker = _Maker(_schema(self.key), self.version, filling, topic_id)
        return repeated(
            self.key,
            self.version,
            lambda elements: maker.request(self.path, elements),
            lambda first, how_many: maker.elements(self.path, first, how_many),
            bytes_max=bytes_max,
        )


@dataclass(frozen=True)
class LongBytes:
    """A byte string of a request, by the names of the fields that lead to it."""

    key: int
    version: int
    path: tuple[str, ...]

    @property
    def id(self) -> str:
        return f"{api(self.key).name}.{self.version}.{'.'.join(self.path)}"

    def frame(self, filling: Filling, *, bytes_max: int, topic_id: bytes = bytes(16)) -> bytes:
        """The request in which this byte string is as long as it can be; each array around it has one element."""
        maker = _Maker(_schema(self.key), self.version, filling, topic_id)
        header = RequestHeader(api_key=self.key, api_version=self.version, correlation_id=1, client_id="attack")

        def whole(size: int) -> bytes:
            return encode_request(header, maker.request(self.path, bytes(size)))

        return whole(bytes_max - len(whole(0)) - _COUNT_BYTES_MAX)


def long_bytes(key: int, version: int) -> list[LongBytes]:
    """Every byte string of this API's request, at whatever depth."""
    schema = _schema(key)
    return [LongBytes(key, version, path) for path in _bytes_paths(schema, _request(schema), version)]


def _bytes_paths(schema: Schema, struct: Struct, version: int) -> Iterator[tuple[str, ...]]:
    for one in struct.fields:
        if not form(schema, one, version).present:
            continue
        if one.base in {"bytes", "records"} and not one.array:
            yield (one.name,)
        if one.struct:
            for path in _bytes_paths(schema, schema.structs[one.base], version):
                yield (one.name, *path)


def long_arrays(key: int, version: int) -> list[LongArray]:
    """Every array of this API's request, at whatever depth."""
    schema = _schema(key)
    return [LongArray(key, version, path) for path in _paths(schema, _request(schema), version)]


def _paths(schema: Schema, struct: Struct, version: int) -> Iterator[tuple[str, ...]]:
    for one in struct.fields:
        if not form(schema, one, version).present:
            continue
        if one.array:
            yield (one.name,)
        if one.struct:
            for path in _paths(schema, schema.structs[one.base], version):
                yield (one.name, *path)


@cache
def _schemas() -> dict[int, Schema]:
    return {schema.api_key: schema for schema in load_schemas().values() if schema.api_key >= 0}


def _schema(key: int) -> Schema:
    return _schemas()[key]


def _request(schema: Schema) -> Struct:
    (found,) = (struct for name, struct in schema.messages.items() if name.endswith("Request"))
    return found


#: What the broker under attack has: a topic, a group, itself. "" is what many fields take for "all" or "the default".
KNOWN_TEXTS = ("t", "1", "", "g", "range", "retention.ms")
#: Of resources, operations, kinds, partitions. As many as are coprime to the texts: all pairs of both come by.
KNOWN_NUMBERS = (2, 1, 0, 4, 32, 3, 16)
#: The topic of that name has so many.
KNOWN_PARTITIONS = 4


class _Maker:
    """Messages of one API: `filling` says what stands in their fields."""

    def __init__(self, schema: Schema, version: int, filling: Filling, topic_id: bytes) -> None:
        self._schema = schema
        self._version = version
        self._filling = filling
        self._known_ids = (topic_id, bytes(16))
        self._module = import_module(f"ottla.protocol.generated.{snake(schema.name)}")

    def request(self, path: Sequence[str], elements: list[Any] | bytes) -> Message:
        made = self._structure(_request(self._schema), 0, path, elements)
        assert isinstance(made, Message)
        return made

    def elements(self, path: Sequence[str], first: int, how_many: int) -> list[Any]:
        struct = _request(self._schema)
        for name in path[:-1]:
            struct = self._schema.structs[self._field(struct, name).base]
        last = self._field(struct, path[-1])
        if self._filling is not Filling.NUMBERED:
            first = 0
        return [self._value(last, number) for number in range(first, first + how_many)]

    @staticmethod
    def _field(struct: Struct, name: str) -> Field:
        return next(one for one in struct.fields if one.name == name)

    def _structure(
        self, struct: Struct, number: int, path: Sequence[str] = (), elements: list[Any] | bytes | None = None
    ) -> Structure:
        values: dict[str, Any] = {}
        # Neighbours differ in an element; around the long array everything speaks of the one topic.
        numbers = repeat(number) if path or self._filling is Filling.NUMBERED else count(number)
        for one in struct.fields:
            here = form(self._schema, one, self._version)
            if not here.present:
                continue
            if path and one.name == path[0]:
                if len(path) == 1:
                    values[one.name] = elements
                    continue
                inner = self._structure(self._schema.structs[one.base], number, path[1:], elements)
                values[one.name] = [inner] if one.array else inner
            elif self._filling is not Filling.EMPTY and not here.tagged:
                value = self._value(one, next(numbers))
                values[one.name] = [value] if one.array else value
        made: Structure = getattr(self._module, struct.name)(**values)
        return made

    def _value(self, one: Field, number: int) -> Any:
        if one.struct:
            return self._structure(self._schema.structs[one.base], number)
        empty, numbered = self._filling is Filling.EMPTY, self._filling is Filling.NUMBERED
        match one.base:
            case "string":
                return "" if empty else f"n{number:07}" if numbered else KNOWN_TEXTS[number % len(KNOWN_TEXTS)]
            case "bytes" | "records":
                return b""
            case "uuid":
                return bytes(16) if empty else number.to_bytes(16, "big") if numbered else self._known_ids[number % 2]
            case "bool":
                return not empty  # "validate only" among them
            case "float64":
                return 0.0
        if empty:
            return 0
        # Counts of partitions and kinds stay small; what tells elements apart does not.
        if numbered and (one.name.endswith("index") or one.array) and FIXED[one.base][1] >= 4:
            return number
        return KNOWN_NUMBERS[number % len(KNOWN_NUMBERS)]
