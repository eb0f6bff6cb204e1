"""Columns as Spark's DDL names them: `id BIGINT, name STRING, items ARRAY<STRUCT<sku: STRING, count: INT>>`.

The same between `STRUCT<` and `>` is how `schema.simpleString()` writes them. Every column may be null, as what is
parsed may lack it, so that `NOT NULL` is read and means nothing; neither does `COMMENT 'text'`.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple, TypeAlias

from ottla.formats.errors import BadSpec


class Simple(NamedTuple):
    """A type without others in it; precision and scale are of decimals."""

    name: str
    precision: int = 0
    scale: int = 0


class ArrayOf(NamedTuple):
    element: DdlType


class MapOf(NamedTuple):
    key: DdlType
    value: DdlType


class StructOf(NamedTuple):
    fields: tuple[tuple[str, DdlType], ...]


DdlType: TypeAlias = "Simple | ArrayOf | MapOf | StructOf"

_OWN_NAMES: Final = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double"),
    *("string", "binary", "date", "timestamp", "timestamp_ntz", "decimal"),
)
_OTHER_NAMES: Final = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "dec": "decimal",
    "numeric": "decimal",
    "timestamp_ltz": "timestamp",
}
_PRECISION_MAX: Final = 38
#: Types within types: deeper than this nobody writes, and Python's stack holds it.
DEPTH_MAX: Final = 64
#: Columns of one schema, on all levels.
FIELDS_MAX: Final = 10_000

#: Of the text at a fault, characters.
_SHOWN_MAX: Final = 20

_QUOTED: Final = re.compile(r"""\s*(?:'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")++""", re.DOTALL)
_STRUCT: Final = re.compile(r"\s*struct\s*<", re.IGNORECASE)
_TOKEN: Final = re.compile(r"\s*(?:`((?:[^`]|``)+)`|(\w+)|([<>,:()]))", re.ASCII)


def parsed_ddl(text: str) -> StructOf:
    """The columns; raises BadSpec, which says where."""
    found = _Reading(text).whole()
    if not found.fields:
        raise BadSpec("the schema has no column: give a list such as id BIGINT, name STRING")
    return found


class _Reading:
    def __init__(self, text: str) -> None:
        self._text = text
        self._pos = 0
        self._count = 0

    def whole(self) -> StructOf:
        if _STRUCT.match(self._text) is None:
            return self.fields(1, end=None)
        self._name()
        self._needs("<")
        found = self.fields(1, end=">")
        self._needs(">")
        if not self._at_end(None):
            raise self._fault("something stands behind the struct")
        return found

    def fields(self, depth: int, end: str | None) -> StructOf:
        """Up to the bracket that ends them, or to the text's end."""
        found: dict[str, DdlType] = {}
        while found or not self._at_end(end):
            name = self._name()
            if name in found:
                raise self._fault(f"there are two columns {name}")
            self._count += 1
            if self._count > FIELDS_MAX:
                raise BadSpec(f"the schema has more than {FIELDS_MAX} columns")
            self._takes(":")
            found[name] = self._type(depth)
            if self._takes("not") and not self._takes("null"):
                raise self._fault("NULL is missing behind NOT")
            if self._takes("comment"):
                self._quoted()
            if not self._takes(","):
                if not self._at_end(end):
                    raise self._fault(f"a comma{' or ' + end if end else ''} is missing")
                break
        return StructOf(tuple(found.items()))

    def _type(self, depth: int) -> DdlType:
        if depth > DEPTH_MAX:
            raise self._fault(f"more than {DEPTH_MAX} types within each other")
        word = self._name().lower()
        if word == "array":
            self._needs("<")
            element = self._type(depth + 1)
            self._needs(">")
            return ArrayOf(element)
        if word == "map":
            self._needs("<")
            key = self._type(depth + 1)
            self._needs(",")
            value = self._type(depth + 1)
            self._needs(">")
            if key != Simple("string"):
                raise self._fault("keys of a map are names of members, and so STRING")
            return MapOf(key, value)
        if word == "struct":
            self._needs("<")
            found = self.fields(depth + 1, end=">")
            self._needs(">")
            return found
        name = _OTHER_NAMES.get(word, word)
        if name not in _OWN_NAMES:
            raise self._fault(f"there is no type {word}")
        return self._decimal() if name == "decimal" else Simple(name)

    def _decimal(self) -> Simple:
        if not self._takes("("):
            return Simple("decimal", 10, 0)  # as in Spark
        precision, scale = self._number(), 0
        if self._takes(","):
            scale = self._number()
        self._needs(")")
        if not 1 <= precision <= _PRECISION_MAX or scale > precision:
            raise self._fault(f"DECIMAL has 1 to {_PRECISION_MAX} digits, and no more behind the point")
        return Simple("decimal", precision, scale)

    def _number(self) -> int:
        word = self._name()
        if not word.isdecimal() or len(word) > 2:
            raise self._fault(f"{word} is no number of digits")
        return int(word)

    def _name(self) -> str:
        match = _TOKEN.match(self._text, self._pos)
        if match is None or match[3] is not None:
            raise self._fault("a name is missing")
        self._pos = match.end()
        return match[2] if match[1] is None else match[1].replace("``", "`")

    def _quoted(self) -> None:
        match = _QUOTED.match(self._text, self._pos)
        if match is None:
            raise self._fault("a text in quotes is missing behind COMMENT")
        self._pos = match.end()

    def _takes(self, wanted: str) -> bool:
        match = _TOKEN.match(self._text, self._pos)
        if match is None or (match[3] or match[2] or "").lower() != wanted:
            return False
        self._pos = match.end()
        return True

    def _needs(self, wanted: str) -> None:
        if not self._takes(wanted):
            raise self._fault(f"{wanted} is missing")

    def _at_end(self, end: str | None) -> bool:
        rest = self._text[self._pos :].lstrip()
        return rest.startswith(end) if end else not rest

    def _fault(self, what: str) -> BadSpec:
        near = self._text[self._pos :].strip()
        return BadSpec(f"the schema is wrong near {near[:_SHOWN_MAX]!r}: {what}")


def arrow_type_of(kind: DdlType) -> Any:
    """The type as Arrow has it, with the names of inner fields that Spark gives them."""
    from ottla.arrow.library import pa

    if isinstance(kind, StructOf):
        return pa.struct([pa.field(name, arrow_type_of(one)) for name, one in kind.fields])
    if isinstance(kind, ArrayOf):
        return pa.list_(pa.field("element", arrow_type_of(kind.element)))
    if isinstance(kind, MapOf):
        return pa.map_(pa.string(), arrow_type_of(kind.value))
    if kind.name == "decimal":
        return pa.decimal128(kind.precision, kind.scale)
    simple = {
        "boolean": pa.bool_(),
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "string": pa.string(),
        "binary": pa.binary(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "timestamp_ntz": pa.timestamp("us"),
    }
    return simple[kind.name]


def ddl_text(kind: DdlType) -> str:
    """As messages name a type."""
    if isinstance(kind, StructOf):
        return "STRUCT"
    if isinstance(kind, ArrayOf):
        return "ARRAY"
    if isinstance(kind, MapOf):
        return "MAP"
    return f"DECIMAL({kind.precision},{kind.scale})" if kind.name == "decimal" else kind.name.upper()
