"""What stands before a value that a registry's schema was written with: Confluent's header.

    0      1            5
    +------+------------+----------------------+------------------
    | 0    | schema id  | message indexes      | the value
    +------+------------+----------------------+------------------
    magic    big-endian   Protobuf only

The indexes lead from the schema's messages to the one that was written: the third message's second nested one is `2,
1`. They are zigzag varints behind their count; the first message, much the most frequent one, is a single 0.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ottla.formats.errors import BadRecord
from ottla.records.errors import RecordError
from ottla.records.varint import encode, read_varint

MAGIC: Final = 0
HEADER_BYTES: Final = 5
FIRST_MESSAGE: Final = (0,)
#: Messages nested deeper than this nobody writes; protoc takes no deeper ones than 32 by itself.
INDEXES_MAX: Final = 64
_FORM: Final = Struct(">bI")


def schema_id_of(data: bytes) -> int:
    """The schema id of a record; raises BadRecord."""
    if len(data) < HEADER_BYTES:
        raise BadRecord(f"{len(data)} bytes are too few for a schema id: five stand before each value")
    magic, schema_id = _FORM.unpack_from(data)
    if magic != MAGIC:
        raise BadRecord(f"no schema id stands before the value: its first byte is {data[0]}, not 0")
    found: int = schema_id
    return found


def header(schema_id: int) -> bytes:
    return _FORM.pack(MAGIC, schema_id)


def indexes_of(data: bytes, pos: int) -> tuple[tuple[int, ...], int]:
    """The message indexes that stand at a position, and where the value begins; raises BadRecord."""
    try:
        count, pos = read_varint(data, pos)
        if count == 0:
            return FIRST_MESSAGE, pos
        if not 0 < count <= INDEXES_MAX:
            raise BadRecord(f"{count} message indexes: there are {INDEXES_MAX} at most")
        found = []
        for _ in range(count):
            index, pos = read_varint(data, pos)
            found.append(index)
    except (IndexError, RecordError):
        raise BadRecord("the message indexes are cut off, or no numbers") from None
    if min(found) < 0:
        raise BadRecord(f"a message index of {min(found)}")
    return tuple(found), pos


def indexes(path: tuple[int, ...]) -> bytes:
    """Message indexes as they stand before a value."""
    return encode(0) if path == FIRST_MESSAGE else b"".join(map(encode, (len(path), *path)))
