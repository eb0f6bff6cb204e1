"""Avro schemas: from their JSON to nodes, with everything checked that a reader or a writer relies on.

A node of a named type (record, enum, fixed) may be reached again from within itself; the nodes are a graph then, no
tree.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.formats.errors import BadSpec

PRIMITIVES: Final = frozenset(("null", "boolean", "int", "long", "float", "double", "bytes", "string"))
#: What a schema may nest and hold, so that a hostile one is refused and not computed. Real ones have hundreds of nodes.
DEPTH_MAX: Final = 64
NODES_MAX: Final = 20_000
FIXED_BYTES_MAX: Final = 1024 * 1024
#: Nulls and empty records in a record: types that use each other twice would have any number of them in no byte.
EMPTY_PARTS_MAX: Final = 1000
#: Digits of Arrow's widest decimal.
DECIMAL_DIGITS_MAX: Final = 76

_LOGICAL: Final = {
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "decimal": ("bytes", "fixed"),
    "uuid": ("string", "fixed"),
}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FULL_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*")
#: In place of a field's default where it has none; None is one.
NO_DEFAULT: Final = object()


@dataclass(slots=True, kw_only=True, eq=False)
class AvroField:
    name: str
    schema: AvroSchema
    #: As JSON has it, or NO_DEFAULT.
    default: Any = NO_DEFAULT
    aliases: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True, eq=False)
class AvroSchema:
    #: A primitive's name, or record, enum, fixed, array, map, union.
    kind: str
    #: Of named types, with their namespace.
    name: str | None = None
    aliases: tuple[str, ...] = ()
    #: None where there is none, or one that does not go with the kind, which Avro has readers pass over.
    logical: str | None = None
    precision: int = 0
    scale: int = 0
    size: int = 0
    symbols: tuple[str, ...] = ()
    #: Of an enum: what a reader takes for symbols that it does not know.
    default_symbol: str | None = None
    #: Of an array; of a map the values.
    items: AvroSchema | None = None
    branches: tuple[AvroSchema, ...] = ()
    fields: list[AvroField] = field(default_factory=list)
    #: Whether each value is at least one byte long.
    takes_bytes: bool = True
    #: How many parts a value has that take no byte: nulls, and records of nothing else.
    empty_parts: int = 0

    @property
    def inner(self) -> AvroSchema:
        assert self.items is not None
        return self.items

    def __str__(self) -> str:
        if self.name is not None:
            return f"{self.kind} {self.name}"
        if self.kind == "union":
            return " or ".join(map(str, self.branches))
        return f"{self.kind} ({self.logical})" if self.logical else self.kind

    @property
    def bare_name(self) -> str:
        return (self.name or "").rpartition(".")[2]


def parse_schema(text: str, names: dict[str, AvroSchema] | None = None) -> AvroSchema:
    """A schema from its text; `names` has the types of schemas that it refers to, and gets its own. Raises BadSpec."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadSpec(f"the Avro schema is no JSON: {error}") from None
    return _Parser({} if names is None else names).parse(given, None, 0)


class _Parser:
    def __init__(self, names: dict[str, AvroSchema]) -> None:
        self._names = names
        self._nodes = 0

    def parse(self, given: Any, namespace: str | None, depth: int) -> AvroSchema:
        self._nodes += 1
        if depth > DEPTH_MAX or self._nodes > NODES_MAX:
            raise BadSpec(f"the Avro schema is nested deeper than {DEPTH_MAX}, or has more than {NODES_MAX} parts")
        if isinstance(given, str):
            return self._by_name(given, namespace)
        if isinstance(given, list):
            return self._union(given, namespace, depth)
        if not isinstance(given, dict):
            raise BadSpec(f"{given!r} is no Avro schema")
        kind = given.get("type")
        if isinstance(kind, dict | list):
            return self.parse(kind, namespace, depth + 1)
        if kind in {"record", "error"}:
            return self._record(given, namespace, depth)
        if kind == "enum":
            return self._enum(given, namespace)
        if kind == "fixed":
            return self._fixed(given, namespace)
        if kind == "array":
            return AvroSchema(kind="array", items=self.parse(_of(given, "items"), namespace, depth + 1))
        if kind == "map":
            return AvroSchema(kind="map", items=self.parse(_of(given, "values"), namespace, depth + 1))
        if kind in PRIMITIVES:
            return _logical(self._by_name(kind, None), given)
        if isinstance(kind, str):
            return self._by_name(kind, namespace)
        raise BadSpec(f"an Avro schema without a type: {str(given)[:200]}")

    def _by_name(self, name: str, namespace: str | None) -> AvroSchema:
        if name == "null":
            return AvroSchema(kind=name, takes_bytes=False, empty_parts=1)
        if name in PRIMITIVES:
            return AvroSchema(kind=name)
        for full in (f"{namespace}.{name}", name) if namespace and "." not in name else (name,):
            found = self._names.get(full)
            if found is not None:
                return found
        raise BadSpec(f"the Avro schema names a type {name!r} that is not defined before")

    def _union(self, given: list[Any], namespace: str | None, depth: int) -> AvroSchema:
        branches = tuple(self.parse(one, namespace, depth + 1) for one in given)
        seen = set()
        for branch in branches:
            key = branch.name or branch.kind
            if branch.kind == "union" or key in seen:
                raise BadSpec(f"the Avro schema has a union with {branch} in it" + (" twice" if key in seen else ""))
            seen.add(key)
        if not branches:
            raise BadSpec("the Avro schema has a union of nothing")
        return AvroSchema(kind="union", branches=branches)

    def _record(self, given: dict[str, Any], namespace: str | None, depth: int) -> AvroSchema:
        made, inner = self._named("record", given, namespace)
        listed = given.get("fields")
        if not isinstance(listed, list):
            raise BadSpec(f"the Avro {made} has no list of fields")
        names = set()
        for one in listed:
            if not isinstance(one, dict) or not _is(_NAME, one.get("name")):
                raise BadSpec(f"the Avro {made} has a field {str(one)[:200]!r}, which is none")
            if one["name"] in names:
                raise BadSpec(f"the Avro {made} has two fields {one['name']!r}")
            names.add(one["name"])
            made.fields.append(
                AvroField(
                    name=one["name"],
                    schema=self.parse(_of(one, "type"), inner, depth + 1),
                    default=one.get("default", NO_DEFAULT),
                    aliases=_texts(one.get("aliases", []), "aliases"),
                )
            )
        made.takes_bytes = any(one.schema.takes_bytes for one in made.fields)
        made.empty_parts = sum(one.schema.empty_parts for one in made.fields) + (not made.takes_bytes)
        if made.empty_parts > EMPTY_PARTS_MAX:
            raise BadSpec(f"the Avro {made} has more than {EMPTY_PARTS_MAX} parts that take no byte")
        return made

    def _enum(self, given: dict[str, Any], namespace: str | None) -> AvroSchema:
        made, _ = self._named("enum", given, namespace)
        made.symbols = _texts(given.get("symbols"), "symbols")
        if len(set(made.symbols)) < len(made.symbols):
            raise BadSpec(f"the Avro {made} has a symbol twice")
        default = given.get("default")
        if default is not None and default not in made.symbols:
            raise BadSpec(f"the Avro {made} has no symbol {default!r}, which is its default")
        made.default_symbol = default
        return made

    def _fixed(self, given: dict[str, Any], namespace: str | None) -> AvroSchema:
        made, _ = self._named("fixed", given, namespace)
        size = given.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= FIXED_BYTES_MAX:
            raise BadSpec(f"the Avro {made} has a size of {size!r}; it must be from 0 to {FIXED_BYTES_MAX}")
        made.size = size
        made.takes_bytes, made.empty_parts = bool(size), int(not size)
        return _logical(made, given)

    def _named(self, kind: str, given: dict[str, Any], namespace: str | None) -> tuple[AvroSchema, str | None]:
        """A named type, known by its name from here on, and the namespace of what is in it."""
        name = given.get("name")
        if not _is(_FULL_NAME, name):
            raise BadSpec(f"the Avro schema has a {kind} with the name {name!r}, which is none")
        assert isinstance(name, str)
        said = given.get("namespace", namespace)
        if said is not None and not isinstance(said, str):
            raise BadSpec(f"the Avro {kind} {name} has the namespace {said!r}, which is none")
        full = name if "." in name or not said else f"{said}.{name}"
        if full in self._names or full in PRIMITIVES:
            raise BadSpec(f"the Avro schema defines {full} twice")
        inner = full.rpartition(".")[0] or None
        aliases = _texts(given.get("aliases", []), "aliases")
        made = AvroSchema(kind=kind, name=full, aliases=aliases)
        self._names[full] = made
        return made, inner


def _logical(made: AvroSchema, given: dict[str, Any]) -> AvroSchema:
    """With the logical type, where it goes with the kind; Avro has readers pass over others."""
    logical = given.get("logicalType")
    if not isinstance(logical, str) or made.kind not in _LOGICAL.get(logical, ()):
        return made
    if logical == "decimal":
        precision, scale = given.get("precision"), given.get("scale", 0)
        if not isinstance(precision, int) or not isinstance(scale, int):
            return made
        if not 0 <= scale <= precision or not 0 < precision <= DECIMAL_DIGITS_MAX:
            return made
        if made.kind == "fixed" and (10**precision - 1).bit_length() >= 8 * made.size:
            return made  # as many digits do not fit beside a sign
        made.precision, made.scale = precision, scale
    if logical == "uuid" and made.kind == "fixed" and made.size != 16:
        return made
    made.logical = logical
    return made


def _of(given: dict[str, Any], name: str) -> Any:
    if name not in given:
        raise BadSpec(f"the Avro schema has a part without {name!r}: {str(given)[:200]}")
    return given[name]


def _is(form: re.Pattern[str], text: Any) -> bool:
    return isinstance(text, str) and form.fullmatch(text) is not None


def _texts(given: Any, what: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise BadSpec(f"the Avro schema has {what} that are no list of names: {str(given)[:200]}")
    return tuple(given)
