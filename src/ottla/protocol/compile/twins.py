"""Which structs have a second reader or writer, one with steps, and what their elements weigh in memory."""

from __future__ import annotations

from ottla.protocol.compile.schema import FIXED, Field, Schema, Struct
from ottla.protocol.compile.shape import snake

#: What CPython 3.11 takes on 64 bits: an object with slots (its head, the garbage collector's, one for each slot) and
#: its place in a list that grows; a number that is no cached one; an empty list; a string that is not ASCII, without
#: its characters.
_OBJECT_BYTES = 48
_SLOT_BYTES = 8
_NUMBER_BYTES = {"bool": 0, "uuid": 64}
_LARGE_NUMBER_BYTES = 32
_LIST_BYTES = 72
_STRING_BYTES = 80
#: The least that an element of an array counts for: most of what it takes is made when the request is served, what it
#: names and an answer. A name or a number that stands by itself is few bytes of a frame. Requests of 200,000 pass.
_STRUCT_BYTES_MIN = 224
_NAMED_BYTES = 304
#: Arrays of numbers that name partitions or producers; those of brokers' are as long as there are replicas.
_NAMING = frozenset({"partitions", "partition_indexes", "producer_id_filters"})


class Twins:
    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    def has_arrays(self, struct: Struct) -> bool:
        """Anywhere in it: then its twins are generators."""
        return any(one.array or self.has_arrays_in(one) for one in struct.fields)

    def has_arrays_in(self, one: Field) -> bool:
        return one.struct and self.has_arrays(self._schema.structs[one.base])

    def has_tagged_arrays(self, struct: Struct) -> bool:
        return any(one.tag is not None and (one.array or self.has_arrays_in(one)) for one in struct.fields)

    def plain(self, struct: Struct) -> bool:
        """Of numbers and strings only: its plain reader takes little time, and what it takes in memory is known."""
        return not any(
            one.array or one.struct or one.tag is not None or one.base in {"bytes", "records"} for one in struct.fields
        )

    def has_text(self, struct: Struct) -> bool:
        return any(one.base == "string" for one in struct.fields)

    def read(self, one: Field) -> str:
        """The call of a field's twin."""
        call = f"_read_{snake(one.base)}_held(buf, pos, limit, version, allowance)"
        return f"yield from {call}" if self.has_arrays_in(one) else call

    def read_tags(self, struct: Struct) -> str:
        call = f"_read_{snake(struct.name)}_tags_held(m, buf, pos, limit, version, allowance)"
        return f"yield from {call}" if self.has_tagged_arrays(struct) else call

    def element_bytes(self, one: Field) -> int:
        """What an array takes for each element before it is read: all but text, byte strings and tagged fields."""
        if one.struct:
            return max(_STRUCT_BYTES_MIN, self._struct_bytes(self._schema.structs[one.base]))
        if one.base in FIXED and one.name not in _NAMING:
            return _SLOT_BYTES + _number_bytes(one)
        return _NAMED_BYTES

    def _struct_bytes(self, struct: Struct) -> int:
        size = _OBJECT_BYTES + _SLOT_BYTES * (len(struct.fields) + 1)
        for one in struct.fields:
            if one.array:
                size += _LIST_BYTES
            elif one.struct:
                size += self._struct_bytes(self._schema.structs[one.base])
            elif one.base in FIXED:
                size += _number_bytes(one)
            elif self.plain(struct):
                size += _STRING_BYTES  # a twin asks each string for its size
        return size


def _number_bytes(one: Field) -> int:
    return _NUMBER_BYTES.get(one.base, _LARGE_NUMBER_BYTES)
