"""What compiled code reads a column by (`native/avro.c`): a program for a writer's schema and a reader's, and how its
columns become one array.

It has what most schemas are made of. Of others there is no program, and rows are read one by one, by `resolution`,
which also says what is wrong with a row; so whatever goes together only in a roundabout way can be left to it.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Final

from ottla.arrow.library import pa
from ottla.formats.avro.columns import arrow_type_of
from ottla.formats.avro.resolution import Form, default_of, fields_taken, same_name
from ottla.formats.avro.schema import AvroField, AvroSchema
from ottla.formats.avro.shapes import decimal_bytes_max
from ottla.formats.column_reading import Build, NoProgram, Program, ReadColumn
from ottla.formats.framing import HEADER_BYTES, schema_id_of
from ottla.formats.source import SchemaSource


class Kind(IntEnum):
    """Of nodes, as `native/avro.c` numbers them."""

    RECORD = 0
    OPTIONAL = 1
    LIST = 2
    MAP = 3
    BOOLEAN = 4
    INT = 5
    LONG = 6
    INT_AS_LONG = 7
    FLOAT = 8
    DOUBLE = 9
    BYTES = 10
    STRING = 11
    FIXED = 12
    ENUM = 13
    MILLIS = 14
    DAY_MILLIS = 15
    DAY_MICROS = 16
    DECIMAL = 17


#: By the reader's kind and logical type.
_PLAIN: Final = {
    ("boolean", None): Kind.BOOLEAN,
    ("int", None): Kind.INT,
    ("int", "date"): Kind.INT,
    ("int", "time-millis"): Kind.DAY_MILLIS,
    ("long", None): Kind.LONG,
    ("long", "time-micros"): Kind.DAY_MICROS,
    ("long", "timestamp-millis"): Kind.MILLIS,
    ("long", "timestamp-micros"): Kind.LONG,
    ("long", "timestamp-nanos"): Kind.LONG,
    ("long", "local-timestamp-millis"): Kind.MILLIS,
    ("long", "local-timestamp-micros"): Kind.LONG,
    ("long", "local-timestamp-nanos"): Kind.LONG,
    ("float", None): Kind.FLOAT,
    ("double", None): Kind.DOUBLE,
    ("bytes", None): Kind.BYTES,
    ("string", None): Kind.STRING,
    ("string", "uuid"): Kind.STRING,
    ("fixed", None): Kind.FIXED,
}
_NAMED: Final = frozenset(("enum", "fixed"))
_DECIMAL_DIGITS_MAX: Final = 38
#: In place of a column: the value is read and passed over.
_NO_COLUMN: Final = -1
#: What compiled code takes is a little deeper. Types that use each other twice would have any number of nodes.
_DEPTH_MAX: Final = 60
_NODES_MAX: Final = 10_000


class AvroPrograms:
    """Those of a column."""

    def __init__(self, source: SchemaSource[AvroSchema]) -> None:
        self._source = source

    def header_bytes(self, _start: bytes) -> int:
        return HEADER_BYTES if self._source.framed else 0

    def program(self, header: bytes) -> Program:
        writer = self._source.writer_schema(schema_id_of(header) if self._source.framed else 0)
        return program_of(writer, self._source.column_schema())

    def column_type(self) -> Any:
        return arrow_type_of(self._source.column_schema())


def program_of(writer: AvroSchema, reader: AvroSchema) -> Program:
    """Raises NoProgram, and Unreadable."""
    making = _Making()
    build = making.value(writer, reader, 0)
    nodes = array("i", [number for node in making.nodes for number in node])
    return Program(nodes=nodes.tobytes(), tables=making.tables.tobytes(), columns=making.columns, build=build)


class _Making:
    def __init__(self) -> None:
        #: Kind, column, where the next one begins that is not below it, and its own number.
        self.nodes: list[list[int]] = []
        self.tables = array("i")
        self.columns = 0

    # What a reader wants

    def value(self, writer: AvroSchema, reader: AvroSchema, depth: int) -> Build:
        """The node of a value and those below it."""
        if depth > _DEPTH_MAX:
            raise NoProgram
        if writer.kind == "union":
            return self._optional(writer, reader, depth)
        if reader.kind == "union":
            return self.value(writer, _null_and_other(reader)[1], depth)
        if writer.logical not in {None, reader.logical}:
            raise NoProgram
        if (writer.kind, reader.kind, reader.logical) == ("int", "long", None):
            return self._leaf(Kind.INT_AS_LONG, reader)
        if writer.kind != reader.kind and {writer.kind, reader.kind} != {"string", "bytes"}:
            raise NoProgram
        if reader.kind in _NAMED and (not same_name(writer, reader) or writer.size != reader.size):
            raise NoProgram
        if reader.logical == "decimal":
            return self._decimal(writer, reader)
        inner = {"record": self._record, "array": self._list, "map": self._map}.get(reader.kind)
        if inner is not None:
            return inner(writer, reader, depth)
        if reader.kind == "enum":
            return self._enum(writer, reader)
        if (reader.kind, reader.logical) not in _PLAIN:
            raise NoProgram
        return self._leaf(_PLAIN[reader.kind, reader.logical], reader, number=reader.size)

    def _optional(self, writer: AvroSchema, reader: AvroSchema, depth: int) -> Build:
        null, written = _null_and_other(writer)
        if reader.kind != "union":
            raise NoProgram
        at = self._node(Kind.OPTIONAL, number=null)
        build = self.value(written, _null_and_other(reader)[1], depth + 1)
        self._end(at)
        return build

    def _record(self, writer: AvroSchema, reader: AvroSchema, depth: int) -> Build:
        at, column = self._node(Kind.RECORD, has_column=True), self.columns - 1
        taken = fields_taken(writer, reader)
        builds: dict[str, Build] = {}
        for one in writer.fields:
            target = taken.get(one.name)
            if target is None:
                self._passed_over(one.schema, depth + 1)
            else:
                builds[target.name] = self.value(one.schema, target.schema, depth + 1)
        self._end(at)
        missing = {one.name: _constant(one, reader, column) for one in reader.fields if one.name not in builds}
        fields = [{**builds, **missing}[one.name] for one in reader.fields]
        kind = arrow_type_of(reader)
        return lambda columns: columns[column].made(kind, [], [build(columns) for build in fields])

    def _list(self, writer: AvroSchema, reader: AvroSchema, depth: int) -> Build:
        if not writer.inner.takes_bytes:
            raise NoProgram
        at, column = self._node(Kind.LIST, has_column=True), self.columns - 1
        items = self.value(writer.inner, reader.inner, depth + 1)
        self._end(at)
        kind = arrow_type_of(reader)
        return lambda columns: columns[column].made(kind, [columns[column].data], [items(columns)])

    def _map(self, writer: AvroSchema, reader: AvroSchema, depth: int) -> Build:
        at, column = self._node(Kind.MAP, has_column=True, number=self.columns + 2), self.columns - 1
        entry = self._node(Kind.RECORD, has_column=True)
        self._end(self._node(Kind.STRING, has_column=True))
        value = self.value(writer.inner, reader.inner, depth + 2)
        self._end(entry)
        self._end(at)
        kind = arrow_type_of(reader)
        pairs = pa.struct([kind.key_field, kind.item_field])

        def build(columns: Sequence[ReadColumn]) -> Any:
            keys = columns[column + 2]
            texts = keys.made(pa.string(), [keys.data, keys.more])
            entries = columns[column + 1].made(pairs, [], [texts, value(columns)])
            return columns[column].made(kind, [columns[column].data], [entries])

        return build

    def _enum(self, writer: AvroSchema, reader: AvroSchema) -> Build:
        places = {symbol: place for place, symbol in enumerate(reader.symbols)}
        default = places.get(reader.default_symbol or "", -1)
        column = self._symbols([places.get(symbol, default) for symbol in writer.symbols], has_column=True)
        symbols = pa.array(reader.symbols, pa.string())
        return lambda columns: symbols.take(columns[column].made(pa.int32(), [columns[column].data]))

    def _decimal(self, writer: AvroSchema, reader: AvroSchema) -> Build:
        if (writer.kind, writer.scale, writer.precision) != (reader.kind, reader.scale, reader.precision):
            raise NoProgram
        if reader.precision > _DECIMAL_DIGITS_MAX:
            raise NoProgram
        place = len(self.tables)
        size = reader.size if reader.kind == "fixed" else -1
        self.tables.extend((reader.precision, size, decimal_bytes_max(reader)))
        return self._leaf(Kind.DECIMAL, reader, number=place)

    def _leaf(self, kind: Kind, reader: AvroSchema, number: int = 0) -> Build:
        self._end(self._node(kind, has_column=True, number=number))
        column, arrow_type = self.columns - 1, arrow_type_of(reader)
        if kind in {Kind.BYTES, Kind.STRING, Kind.FIXED}:
            return lambda columns: columns[column].made(arrow_type, [columns[column].data, columns[column].more])
        return lambda columns: columns[column].made(arrow_type, [columns[column].data])

    # What only the writer knows

    def _passed_over(self, writer: AvroSchema, depth: int) -> None:
        if depth > _DEPTH_MAX:
            raise NoProgram
        if writer.kind == "union":
            null, written = _null_and_other(writer)
            at = self._node(Kind.OPTIONAL, number=null)
            self._passed_over(written, depth + 1)
        elif writer.kind == "record":
            at = self._node(Kind.RECORD)
            for one in writer.fields:
                self._passed_over(one.schema, depth + 1)
        elif writer.kind == "array" and writer.inner.takes_bytes:
            at = self._node(Kind.LIST)
            self._passed_over(writer.inner, depth + 1)
        elif writer.kind == "map":
            at = self._node(Kind.MAP)
            entry = self._node(Kind.RECORD)
            self._end(self._node(Kind.STRING))
            self._passed_over(writer.inner, depth + 2)
            self._end(entry)
        elif writer.kind == "enum":
            self._symbols([0] * len(writer.symbols), has_column=False)
            return
        elif (writer.kind, None) in _PLAIN:
            at = self._node(_PLAIN[writer.kind, None], number=writer.size)
        else:
            raise NoProgram
        self._end(at)

    # Nodes

    def _node(self, kind: Kind, *, has_column: bool = False, number: int = 0) -> int:
        if len(self.nodes) >= _NODES_MAX:
            raise NoProgram
        self.nodes.append([kind, self.columns if has_column else _NO_COLUMN, 0, number])
        self.columns += has_column
        return len(self.nodes) - 1

    def _end(self, at: int) -> None:
        self.nodes[at][2] = len(self.nodes)

    def _symbols(self, found: list[int], *, has_column: bool) -> int:
        """An enum whose symbols are `found`, by the writer's numbers; its column."""
        self._end(self._node(Kind.ENUM, has_column=has_column, number=len(self.tables)))
        self.tables.append(len(found))
        self.tables.extend(found)
        return self.columns - 1


def _null_and_other(union: AvroSchema) -> tuple[int, AvroSchema]:
    """Which branch of two is null, and what the other is."""
    kinds = [one.kind for one in union.branches]
    if len(kinds) != 2 or kinds.count("null") != 1:
        raise NoProgram
    null = kinds.index("null")
    return null, union.branches[1 - null]


def _constant(missing: AvroField, reader: AvroSchema, column: int) -> Build:
    """A field that is not written: its default, as often as there are records."""
    value = pa.array([default_of(missing, reader, Form.ARROW)], arrow_type_of(missing.schema))
    return lambda columns: value.take(pa.repeat(pa.scalar(0), columns[column].rows))
