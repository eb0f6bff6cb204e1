"""What compiled code reads JSON's columns by (`native/json.c`): a program for a schema, and how its columns become one
array. Binary has none: rows of schemas with it are read one by one."""

from __future__ import annotations

from array import array
from enum import IntEnum
from typing import Any, Final

from ottla.arrow.library import pa
from ottla.formats.column_reading import NoProgram, Program, ReadColumn
from ottla.formats.ddl import ArrayOf, DdlType, MapOf, Simple, StructOf, arrow_type_of


class Kind(IntEnum):
    """Of nodes, as `native/json.c` numbers them."""

    RECORD = 0
    LIST = 1
    MAP = 2
    BOOLEAN = 3
    TINYINT = 4
    SMALLINT = 5
    INT = 6
    BIGINT = 7
    FLOAT = 8
    DOUBLE = 9
    STRING = 10
    DATE = 11
    TIMESTAMP = 12
    TIMESTAMP_NTZ = 13
    DECIMAL = 14


_KINDS: Final = {kind.name.lower(): kind for kind in Kind}
_NAMELESS: Final = ""
#: No name in a record is this one without an escape, and those with escapes are Python's to read.
_UNMATCHED: Final = '"'


class JsonPrograms:
    """The one of a schema, whose rows have no headers."""

    def __init__(self, schema: StructOf, unwritten: str | None) -> None:
        """A column of the name `unwritten` is null, whatever records have."""
        self._schema = schema
        self._unwritten = unwritten

    def header_bytes(self, _start: bytes) -> int:
        return 0

    def program(self, _header: bytes) -> Program:
        return program_of(self._schema, self._unwritten)

    def column_type(self) -> Any:
        return arrow_type_of(self._schema)


def program_of(schema: StructOf, unwritten: str | None = None) -> Program:
    """Raises NoProgram."""
    making = _Making(unwritten)
    making.value(schema, _NAMELESS)
    nodes = array("i", [number for node in making.nodes for number in node])
    return Program(
        nodes=nodes.tobytes(),
        tables=bytes(making.names),
        columns=len(making.nodes),
        build=lambda columns: _built(schema, iter(columns)),
    )


class _Making:
    def __init__(self, unwritten: str | None) -> None:
        self._unwritten = unwritten
        #: Kind, where the next one begins that is not below it, a number, and where its name begins and how long it is.
        self.nodes: list[list[int]] = []
        self.names = bytearray()

    def value(self, kind: DdlType, name: str) -> None:
        if isinstance(kind, StructOf):
            if len({field for field, _ in kind.fields}) != len(kind.fields):
                raise NoProgram
            at = self._begin(Kind.RECORD, name)
            for field, one in kind.fields:
                self.value(one, _UNMATCHED if at == 0 and field == self._unwritten else field)
        elif isinstance(kind, ArrayOf):
            at = self._begin(Kind.LIST, name)
            self.value(kind.element, _NAMELESS)
        elif isinstance(kind, MapOf):
            at = self._begin(Kind.MAP, name)
            self.value(_entry(kind), _NAMELESS)
        elif kind.name in _KINDS:
            at = self._begin(_KINDS[kind.name], name, number=100 * kind.precision + kind.scale)
        else:
            raise NoProgram
        self.nodes[at][1] = len(self.nodes)

    def _begin(self, kind: Kind, name: str, number: int = 0) -> int:
        raw = name.encode(errors="surrogatepass")
        self.nodes.append([kind, 0, number, len(self.names), len(raw)])
        self.names += raw
        return len(self.nodes) - 1


def _entry(kind: MapOf) -> StructOf:
    return StructOf((("key", Simple("string")), ("value", kind.value)))


def _built(kind: DdlType, columns: Any) -> Any:
    """The next column, with those below it."""
    own: ReadColumn = next(columns)
    arrow_type = arrow_type_of(kind)
    if isinstance(kind, StructOf):
        return own.made(arrow_type, [], [_built(one, columns) for _, one in kind.fields])
    if isinstance(kind, ArrayOf):
        return own.made(arrow_type, [own.data], [_built(kind.element, columns)])
    if isinstance(kind, MapOf):
        entries: ReadColumn = next(columns)
        pairs = [_built(one, columns) for _, one in _entry(kind).fields]
        within = pa.struct([arrow_type.key_field, arrow_type.item_field])
        return own.made(arrow_type, [own.data], [entries.made(within, [], pairs)])
    return own.made(arrow_type, [own.data] if own.more is None else [own.data, own.more])
