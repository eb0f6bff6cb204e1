"""Random messages of every API and version, made from the schema files: one seed, one message."""

from __future__ import annotations

import random
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from ottla.protocol.compile.__main__ import load_schemas
from ottla.protocol.compile.schema import FIXED, Field, Schema, Struct
from ottla.protocol.compile.shape import form, snake
from ottla.protocol.message import Message, Structure

_RANGES = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}
_TEXTS = (
    "",
    "a",
    "orders",
    "\u00e9t\u00e9",
    "\u65e5\u672c",
    "\U0001f600",
    "x" * 126,
    "y" * 127,
    "z" * 128,
    "w" * 20000,
)
#: Unknown tags keep out of the way of those that are, or will soon be, defined.
_TAGS = (30, 127, 128, 70000)


class Kind(NamedTuple):
    """One message class in one version."""

    schema: Schema
    struct: Struct
    version: int

    @property
    def id(self) -> str:
        return f"{self.struct.name}-{self.version}"

    @property
    def type(self) -> type[Message]:
        found: type[Message] = getattr(_module(self.schema), self.struct.name)
        return found


@cache
def kinds() -> tuple[Kind, ...]:
    found = []
    for schema in load_schemas().values():
        for struct in schema.messages.values():
            found += [
                Kind(schema, struct, version) for version in range(schema.versions.first, schema.versions.last + 1)
            ]
    return tuple(found)


def _module(schema: Schema) -> Any:
    return import_module(f"ottla.protocol.generated.{snake(schema.name)}")


def random_message(kind: Kind, seed: int, *, tags: bool = True, modest: bool = False, long: int = 0) -> Any:
    """A message with every field that its version has; the same for the same seed.

    `tags` adds unknown tagged fields; `modest` keeps to numbers that mean something as an error code or a duration;
    some arrays have more elements than a step takes, `long` of them in all.
    """
    return _Maker(kind, random.Random(seed), tags, modest, long).structure(kind.struct)


class _Maker:
    def __init__(self, kind: Kind, rng: random.Random, tags: bool, modest: bool, long: int) -> None:
        self.schema, _, self.version = kind
        self.rng = rng
        self.tags = tags
        self.modest = modest
        self.long = long

    def structure(self, struct: Struct) -> Structure:
        rng = self.rng
        values: dict[str, Any] = {}
        for one in struct.fields:
            here = form(self.schema, one, self.version)
            if not here.present or (here.tagged and rng.random() < 0.5):
                continue
            if here.nullable and rng.random() < 0.2:
                values[one.name] = None
            elif one.array:
                count = rng.choice((0, 1, 1, 2, 3))
                if one.base in FIXED and rng.random() < 0.05:
                    count = 200
                if self.long and rng.random() < 0.4:
                    count = rng.choice((5, 31, 33, 70)) if one.base not in FIXED else 1100
                    self.long -= 1
                values[one.name] = [self.value(one) for _ in range(count)]
            else:
                values[one.name] = self.value(one)
        if self.tags and self.schema.flexible(self.version) and rng.random() < 0.2:
            chosen = sorted(rng.sample(_TAGS, rng.randint(1, 3)))
            values["unknown_tags"] = {tag: rng.randbytes(rng.choice((0, 1, 130))) for tag in chosen}
        made: Structure = getattr(_module(self.schema), struct.name)(**values)
        return made

    def value(self, one: Field) -> Any:
        rng = self.rng
        if one.struct:
            return self.structure(self.schema.structs[one.base])
        match one.base:
            case "string":
                return rng.choice(_TEXTS[:-1] if rng.random() < 0.98 else _TEXTS)
            case "bytes" | "records":
                return rng.randbytes(rng.choice((0, 1, 61, 126, 127, 300)))
            case "uuid":
                return rng.randbytes(16)
            case "bool":
                return rng.random() < 0.5
            case "float64":
                return rng.uniform(-1e9, 1e9)
        if self.modest:
            return rng.randint(0, 100)
        first, last = _RANGES[one.base]
        return rng.choice((first, last, 0, 1, rng.randint(first, last), rng.randint(max(first, -100), 100)))
