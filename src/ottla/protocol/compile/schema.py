"""Reads schema files: one API (or one on-disk datum) a file, in the language of docs/formats/protocol.md."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

#: The `struct` code and size of each type of fixed size.
FIXED = {
    "bool": ("?", 1),
    "int8": ("b", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "uint32": ("I", 4),
    "int64": ("q", 8),
    "float64": ("d", 8),
    "uuid": ("16s", 16),
}
VARIABLE = {"string", "bytes", "records"}
NO_LIMIT = 1 << 15

_VERSIONS = re.compile(r"(\d+)(\+|-(\d+))?")
_TYPE = re.compile(r"(?P<open>\[)?(?P<name>[A-Za-z]\w*)(?(open)\])(?P<null>\?)?")


class SchemaError(Exception):
    """A schema file says something that makes no sense."""


@dataclass(frozen=True)
class Versions:
    first: int
    last: int

    @staticmethod
    def parse(text: str) -> Versions:
        match = _VERSIONS.fullmatch(text)
        if match is None:
            raise SchemaError(f"{text!r} is not a range of versions")
        first = int(match[1])
        if match[2] == "+":
            return Versions(first, NO_LIMIT)
        return Versions(first, int(match[3] or first))

    def within(self, other: Versions) -> Versions:
        return Versions(max(self.first, other.first), min(self.last, other.last))

    def hull(self, other: Versions) -> Versions:
        return Versions(min(self.first, other.first), max(self.last, other.last))

    @property
    def empty(self) -> bool:
        return self.first > self.last

    def __contains__(self, version: int) -> bool:
        return self.first <= version <= self.last


@dataclass(frozen=True)
class Field:
    name: str
    #: A key of FIXED, one of VARIABLE, or the name of a struct.
    base: str
    array: bool
    #: The versions that have the field; None means those of the struct around it.
    versions: Versions | None = None
    nullable: Versions | None = None
    default: str | None = None
    ignorable: bool = False
    tag: int | None = None
    tagged: Versions | None = None

    @property
    def struct(self) -> bool:
        return self.base not in FIXED and self.base not in VARIABLE


@dataclass
class Struct:
    name: str
    fields: list[Field] = field(default_factory=list)
    #: The versions in which something uses it; found once the whole file is read.
    used: Versions = Versions(NO_LIMIT, -1)


@dataclass
class Schema:
    """One file: a request with its response (api_key >= 0), or data."""

    name: str
    about: str
    api_key: int = -1
    versions: Versions = Versions(0, 0)
    flexible_from: int | None = None
    between_brokers: bool = False
    #: Top-level messages by class name.
    messages: dict[str, Struct] = field(default_factory=dict)
    #: Every struct by name, messages included, each behind those that it uses.
    structs: dict[str, Struct] = field(default_factory=dict)

    def flexible(self, version: int) -> bool:
        return self.flexible_from is not None and version >= self.flexible_from


def parse(text: str) -> Schema:
    """Reads a schema file's text."""
    lines = text.splitlines()
    about = lines[0].removeprefix("#").strip() if lines and lines[0].startswith("#") else ""
    schema = Schema("", about)
    stack: list[tuple[int, Struct]] = []
    for number, line in enumerate(lines, 1):
        words = line.split("#", 1)[0]
        if not words.strip():
            continue
        try:
            if words[0] != " ":
                stack = _directive(schema, words.split())
            else:
                _field_line(schema, words, stack)
        except (SchemaError, ValueError, IndexError) as fault:
            raise SchemaError(f"line {number}: {line.strip()!r}: {fault}") from fault
    _find_uses(schema)
    return schema


def _directive(schema: Schema, words: list[str]) -> list[tuple[int, Struct]]:
    """A line without indentation; returns the stack of open structs for the fields that follow."""
    match words:
        case ["api", key, name]:
            schema.api_key, schema.name = int(key), name
        case ["data", name]:
            schema.name = name
        case ["versions", versions]:
            schema.versions = Versions.parse(versions)
        case ["flexible", "none"]:
            schema.flexible_from = None
        case ["flexible", versions]:
            schema.flexible_from = Versions.parse(versions).first
        case ["between", "brokers"]:
            schema.between_brokers = True
        case ["request" | "response" as kind]:
            return _open(schema, schema.name + kind.capitalize(), message=True)
        case ["fields"]:
            return _open(schema, schema.name, message=True)
        case ["struct", name]:
            return _open(schema, name, message=False)
        case _:
            raise SchemaError("not a line of a schema")
    return []


def _open(schema: Schema, name: str, *, message: bool) -> list[tuple[int, Struct]]:
    if name in schema.structs:
        raise SchemaError(f"{name} is defined twice")
    struct = schema.structs[name] = Struct(name)
    if message:
        schema.messages[name] = struct
    return [(0, struct)]


def _field_line(schema: Schema, line: str, stack: list[tuple[int, Struct]]) -> None:
    """A field; one that is indented deeper than the field before it belongs to that field's struct."""
    if not stack:
        raise SchemaError("a field outside of any struct")
    depth = len(line) - len(line.lstrip())
    if depth <= stack[-1][0]:
        while depth < stack[-1][0]:
            stack.pop()
        owner = stack[-1][1]
        if depth != stack[-1][0]:
            raise SchemaError("the indentation matches no struct")
    elif stack[-1][0] == 0 and not stack[-1][1].fields:
        owner = stack[-1][1]
        stack[-1] = (depth, owner)
    else:
        above = stack[-1][1].fields[-1]
        if not above.struct:
            raise SchemaError(f"{above.name} has no fields: it is no struct")
        owner = _open(schema, above.base, message=False)[0][1]
        stack.append((depth, owner))
    new = _field(line.split())
    if any(new.name == old.name for old in owner.fields):
        raise SchemaError(f"{new.name} stands twice in {owner.name}")
    owner.fields.append(new)


def _field(words: list[str]) -> Field:
    name, type_text, *rest = words
    match = _TYPE.fullmatch(type_text)
    if match is None:
        raise SchemaError(f"{type_text!r} is no type")
    if not match["name"][0].isupper() and match["name"] not in FIXED and match["name"] not in VARIABLE:
        raise SchemaError(f"{match['name']!r} is no type")
    found = Field(name, match["name"], array=bool(match["open"]))
    if match["null"]:
        found = replace(found, nullable=Versions(0, NO_LIMIT))
    while rest:
        word = rest.pop(0)
        if word == "=":
            found = replace(found, default=rest.pop(0))
        elif word == "ignorable":
            found = replace(found, ignorable=True)
        elif word == "tag":
            found = replace(found, tag=int(rest.pop(0)), tagged=found.tagged or Versions(0, NO_LIMIT))
        elif word == "tagged":
            found = replace(found, tagged=Versions.parse(rest.pop(0)))
        elif word == "nullable":
            found = replace(found, nullable=Versions.parse(rest.pop(0)))
        else:
            found = replace(found, versions=Versions.parse(word))
    return found


def _find_uses(schema: Schema) -> None:
    """Gives each struct the versions it is used in, and each field its own part of them."""
    if not schema.name or schema.versions.last == NO_LIMIT or not schema.messages:
        raise SchemaError("a file needs `api` or `data`, `versions`, and a message")
    ordered: dict[str, Struct] = {}

    def use(struct: Struct, versions: Versions, path: tuple[str, ...]) -> None:
        if struct.name in path:
            raise SchemaError(f"{struct.name} contains itself")
        struct.used = struct.used.hull(versions)
        for one in struct.fields:
            inner = (one.versions or versions).within(versions)
            if one.struct and not inner.empty:
                if one.base not in schema.structs:
                    raise SchemaError(f"{one.name}: nothing defines {one.base}")
                use(schema.structs[one.base], inner, (*path, struct.name))
        ordered.pop(struct.name, None)
        ordered[struct.name] = struct

    for message in schema.messages.values():
        use(message, schema.versions, ())
    if unused := schema.structs.keys() - ordered.keys():
        raise SchemaError(f"nothing uses {', '.join(sorted(unused))}")
    schema.structs = ordered
    for struct in ordered.values():
        struct.fields = [_settle(schema, struct, one) for one in struct.fields]


def _settle(schema: Schema, struct: Struct, one: Field) -> Field:
    versions = (one.versions or struct.used).within(struct.used)
    if versions.empty:
        raise SchemaError(f"{struct.name}.{one.name} is in no version")
    nullable = one.nullable and one.nullable.within(versions)
    tagged = one.tagged and one.tagged.within(versions)
    if tagged and not schema.flexible(tagged.first):
        raise SchemaError(f"{struct.name}.{one.name} is tagged in a version that is not flexible")
    if one.struct and not one.array and nullable and one.default != "null":
        raise SchemaError(f"{struct.name}.{one.name}: a struct that may be null needs `= null`")
    return replace(one, versions=versions, nullable=nullable, tagged=tagged)
