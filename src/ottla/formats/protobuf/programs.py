"""What compiled code reads a column by (`native/protobuf.c`): a program for a message's type, and how its columns
become one array.

It has what most schemas are made of. Of others there is no program, and rows are read one by one by Google's library;
so whatever the wire says only in a roundabout way can be left to it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor

from ottla.arrow.library import pa
from ottla.formats.column_reading import NoProgram, Program, ReadColumn
from ottla.formats.framing import HEADER_BYTES, indexes_of, schema_id_of
from ottla.formats.protobuf.columns import DURATION, JSON_LIKE, TIMESTAMP, WRAPPERS, arrow_type_of, is_map
from ottla.formats.protobuf.files import ProtobufSchema
from ottla.formats.source import SchemaSource


class Kind(IntEnum):
    """Of nodes, as `native/protobuf.c` numbers them."""

    MESSAGE = 0
    ENTRY = 1
    BOOL = 2
    INT32 = 3
    INT64 = 4
    UINT32 = 5
    UINT64 = 6
    SINT32 = 7
    SINT64 = 8
    PLAIN32 = 9
    PLAIN64 = 10
    FIXED32 = 11
    FIXED64 = 12
    STRING = 13
    BYTES = 14
    ENUM = 15
    TIMESTAMP = 16
    DURATION = 17


class Absent(IntEnum):
    """What a field is that has not come."""

    ZERO = 0
    NULL = 1
    #: The row is read by the library.
    REFUSED = 2


_KINDS: Final = {
    FieldDescriptor.TYPE_BOOL: Kind.BOOL,
    FieldDescriptor.TYPE_INT32: Kind.INT32,
    FieldDescriptor.TYPE_INT64: Kind.INT64,
    FieldDescriptor.TYPE_UINT32: Kind.UINT32,
    FieldDescriptor.TYPE_UINT64: Kind.UINT64,
    FieldDescriptor.TYPE_SINT32: Kind.SINT32,
    FieldDescriptor.TYPE_SINT64: Kind.SINT64,
    FieldDescriptor.TYPE_FIXED32: Kind.FIXED32,
    FieldDescriptor.TYPE_FIXED64: Kind.FIXED64,
    FieldDescriptor.TYPE_SFIXED32: Kind.PLAIN32,
    FieldDescriptor.TYPE_SFIXED64: Kind.PLAIN64,
    FieldDescriptor.TYPE_FLOAT: Kind.PLAIN32,
    FieldDescriptor.TYPE_DOUBLE: Kind.PLAIN64,
    FieldDescriptor.TYPE_STRING: Kind.STRING,
    FieldDescriptor.TYPE_BYTES: Kind.BYTES,
    FieldDescriptor.TYPE_ENUM: Kind.ENUM,
}
#: As the library has them: names, numbers and types.
_TIMES: Final = {
    TIMESTAMP: Kind.TIMESTAMP,
    DURATION: Kind.DURATION,
}
_OF_TIMES: Final = [("seconds", 1, FieldDescriptor.TYPE_INT64), ("nanos", 2, FieldDescriptor.TYPE_INT32)]
#: In place of a column of offsets, and of a oneof.
_NONE: Final = -1
#: What compiled code takes is a little deeper, and the library deeper still.
_DEPTH_MAX: Final = 60


class ProtobufPrograms:
    """Those of a column. All records are read by its message; a header says whether it is that which was written."""

    def __init__(self, source: SchemaSource[ProtobufSchema], written: Callable[[int], ProtobufSchema | str]) -> None:
        """`written` is the schema that has an id, or what is wrong with it."""
        self._source = source
        self._written = written

    def header_bytes(self, start: bytes) -> int:
        if not self._source.framed:
            return 0
        if len(start) <= HEADER_BYTES:
            return HEADER_BYTES + 1
        # A zigzag varint, of a byte as the indexes behind it are; of more `program` makes none.
        return HEADER_BYTES + 1 + start[HEADER_BYTES] // 2

    def program(self, header: bytes) -> Program:
        message = self._source.column_schema().message
        if self._source.framed:
            path, end = indexes_of(header, HEADER_BYTES)
            written = self._written(schema_id_of(header))
            if isinstance(written, str) or end != len(header) or written.at(path).full_name != message.full_name:
                raise NoProgram
        return program_of(message)

    def column_type(self) -> Any:
        return arrow_type_of(self._source.column_schema().message)


def program_of(message: Any) -> Program:
    """Raises NoProgram, and BadSpec for a message that can be no column."""
    making = _Making()
    root = making.message(message, arrow_type_of(message), 0)
    nodes = [root]
    for node in nodes:  # more are added
        if node.kind in {Kind.MESSAGE, Kind.ENTRY}:
            node.first, node.count = len(nodes), len(node.fields)
            nodes.extend(sorted(node.fields, key=lambda one: one.number))
    numbers = array("i", [number for node in nodes for number in node.numbers()])
    return Program(nodes=numbers.tobytes(), tables=making.tables.tobytes(), columns=making.columns, build=root.array)


@dataclass(slots=True, kw_only=True)
class _Node:
    """A field, or the message that a row is."""

    kind: Kind
    #: Of a value; of a repeated field, of an item.
    arrow_type: Any
    column: int
    number: int = 0
    absent: Absent = Absent.NULL
    list_type: Any = None
    list_column: int = _NONE
    oneof: int = _NONE
    first: int = 0
    count: int = 0
    is_wrapped: bool = False
    #: In the order of the column's type.
    fields: list[_Node] = field(default_factory=list)
    #: Of an enum, in the order of their numbers.
    names: Any = None

    def numbers(self) -> list[int]:
        return [
            self.number,
            self.kind,
            self.column,
            self.list_column,
            self.absent,
            self.oneof,
            self.first,
            self.count,
            self.is_wrapped,
        ]

    def array(self, columns: Sequence[ReadColumn]) -> Any:
        values = self._values(columns)
        if self.list_column == _NONE:
            return values
        offsets = columns[self.list_column]
        return offsets.made(self.list_type, [offsets.data], [values])

    def _values(self, columns: Sequence[ReadColumn]) -> Any:
        column = columns[self.column]
        if self.kind in {Kind.MESSAGE, Kind.ENTRY}:
            return column.made(self.arrow_type, [], [one.array(columns) for one in self.fields])
        if self.kind is Kind.ENUM:
            return self.names.take(column.made(pa.int32(), [column.data]))
        if self.kind in {Kind.STRING, Kind.BYTES}:
            return column.made(self.arrow_type, [column.data, column.more])
        return column.made(self.arrow_type, [column.data])


class _Making:
    def __init__(self) -> None:
        self.tables = array("i")
        self.columns = 0
        self._oneofs = 0

    def message(self, message: Any, arrow_type: Any, depth: int) -> _Node:
        if message.full_name in {*_TIMES, *JSON_LIKE, *WRAPPERS}:  # a row that is no struct
            raise NoProgram
        node = _Node(kind=Kind.MESSAGE, arrow_type=arrow_type, column=self._column())
        self._add_fields(node, message, depth)
        return node

    def _add_fields(self, node: _Node, message: Any, depth: int) -> None:
        # What extends a message is checked by the library, though no column has it.
        if depth > _DEPTH_MAX or message.file.pool.FindAllExtensions(message):
            raise NoProgram
        oneofs: dict[str, int] = {}
        for oneof in message.oneofs:
            if len(oneof.fields) > 1:
                oneofs.update((one.name, self._oneofs) for one in oneof.fields)
                self._oneofs += 1
        for place, one in enumerate(message.fields):
            made = self._field(one, node.arrow_type.field(place).type, depth + 1)
            made.oneof = oneofs.get(one.name, _NONE)
            node.fields.append(made)

    def _field(self, one: Any, arrow_type: Any, depth: int) -> _Node:
        if is_map(one):
            return self._map(one, arrow_type, depth)
        if not one.is_repeated:
            node = self._single(one, arrow_type, depth)
            node.absent = _absent(one)
            return node
        node = self._single(one, arrow_type.value_type, depth)
        node.list_type, node.list_column = arrow_type, self._column()
        return node

    def _map(self, one: Any, arrow_type: Any, depth: int) -> _Node:
        """A list of messages. What an entry lacks is its type's zero; of a message the library says what that is."""
        entry = one.message_type.fields_by_name
        pair = pa.struct([arrow_type.key_field, arrow_type.item_field])
        node = _Node(kind=Kind.ENTRY, arrow_type=pair, column=self._column(), number=one.number)
        node.list_type, node.list_column = arrow_type, self._column()
        for name, single_type in (("key", arrow_type.key_type), ("value", arrow_type.item_type)):
            single = self._single(entry[name], single_type, depth + 1)
            # Of an enum of proto2 the first value, whatever its number.
            is_zero = entry[name].message_type is None and not entry[name].default_value
            single.absent = Absent.ZERO if is_zero else Absent.REFUSED
            node.fields.append(single)
        return node

    def _single(self, one: Any, arrow_type: Any, depth: int) -> _Node:
        message = one.message_type
        if message is None or message.full_name in WRAPPERS:
            return self._leaf(one, arrow_type)
        node = _Node(kind=Kind.MESSAGE, arrow_type=arrow_type, column=self._column(), number=one.number)
        if one.type != FieldDescriptor.TYPE_MESSAGE or message.full_name in JSON_LIKE:
            raise NoProgram
        if message.full_name not in _TIMES:
            self._add_fields(node, message, depth)
        elif [(part.name, part.number, part.type) for part in message.fields] != _OF_TIMES:
            raise NoProgram
        else:
            node.kind = _TIMES[message.full_name]
        return node

    def _leaf(self, one: Any, arrow_type: Any) -> _Node:
        value = one
        if one.message_type is not None:
            value = one.message_type.fields_by_name["value"]
            if one.type != FieldDescriptor.TYPE_MESSAGE or len(one.message_type.fields) != 1 or value.number != 1:
                raise NoProgram
        if value.type not in _KINDS:
            raise NoProgram
        node = _Node(
            kind=_KINDS[value.type],
            arrow_type=arrow_type,
            column=self._column(),
            number=one.number,
            is_wrapped=value is not one,
        )
        if node.kind is Kind.ENUM:
            # Of several names of a number the first counts.
            names = {named.number: named.name for named in reversed(list(one.enum_type.values))}
            known = sorted(names)
            node.first, node.count = len(self.tables), len(known)
            node.names = pa.array([names[number] for number in known], pa.string())
            self.tables.extend(known)
        return node

    def _column(self) -> int:
        self.columns += 1
        return self.columns - 1


def _absent(one: Any) -> Absent:
    if one.is_required:
        return Absent.REFUSED
    if one.has_presence:
        return Absent.NULL
    if one.default_value:  # no zero
        raise NoProgram
    return Absent.ZERO
