"""Puts together the module with the readers and writers that have steps: loaded when a message is long."""

from __future__ import annotations

import re

from ottla.protocol import primitives as all_primitives
from ottla.protocol import stepping
from ottla.protocol.compile.module import FAULTS, PRIMITIVES, packers
from ottla.protocol.compile.readers import reader
from ottla.protocol.compile.schema import Schema, Struct
from ottla.protocol.compile.shape import snake
from ottla.protocol.compile.twins import Twins
from ottla.protocol.compile.writers import writer

_STEPPING = re.compile(r"\b(?:DecodingAllowance|FEW|Pace|[A-Z_]*PIECE|(?:read|write)_[a-z_]+)\b")
_OWN = re.compile(r"\b_(?:read|write)_\w+|\b_TAGS_\w+|\b_DEFAULT_\w+")
_CLASSES = re.compile(r"\b[A-Z][A-Za-z0-9]+\b")


def steps_module(schema: Schema, source: str) -> str | None:
    """The text of the module beside the plain one; None where no message has arrays.

    A broker reads requests and writes responses; data it does both with. A program that needs the other half is a
    client, whose own process it is that waits: there the plain readers and writers do.
    """
    twins = Twins(schema)
    read: set[str] = set()
    written: set[str] = set()
    for name, message in schema.messages.items():
        if not twins.has_arrays(message):
            continue
        if schema.api_key < 0 or name.endswith("Request"):
            _reach(schema, message, read)
        if schema.api_key < 0 or name.endswith("Response"):
            _reach(schema, message, written)
    if not read and not written:
        return None
    body: list[str] = []
    in_arrays_only = _in_arrays_only(schema)
    for struct in schema.structs.values():
        if struct.name in read and not (twins.plain(struct) and struct.name in in_arrays_only):
            body += reader(schema, struct, twins)
        if struct.name in written and twins.has_arrays(struct):
            body += writer(schema, struct, twins)
    for table, reached, ending in (("READERS", read, "read_{}_held"), ("WRITERS", written, "write_{}_steps")):
        body += ["", f"{table}: dict[type[Message], Callable[..., Steps[Any]]] = {{"]
        body += [f"    {name}: _{ending.format(snake(name))}," for name in schema.messages if name in reached]
        body += ["}"]
    text = "\n".join(body)
    lines = [f'"""{schema.about}', "", f"In steps; made from {source} by `python -m ottla.protocol.compile`."]
    lines += ['"""', "", "from __future__ import annotations", "", *_imports(schema, text), *packers(text), "", "", ""]
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines) + text).rstrip("\n") + "\n"


def _reach(schema: Schema, struct: Struct, found: set[str]) -> None:
    found.add(struct.name)
    for one in struct.fields:
        if one.struct:
            _reach(schema, schema.structs[one.base], found)


def _in_arrays_only(schema: Schema) -> set[str]:
    fields = [one for struct in schema.structs.values() for one in struct.fields if one.struct]
    return {one.base for one in fields} - {one.base for one in fields if not one.array}


def _imports(schema: Schema, text: str) -> list[str]:
    defined = set(re.findall(r"^def (\w+)", text, re.MULTILINE))
    own = (set(_OWN.findall(text)) - defined) | (set(_CLASSES.findall(text)) & schema.structs.keys())
    shared = set(_STEPPING.findall(text)) & vars(stepping).keys() - vars(all_primitives).keys()
    primitives = set(PRIMITIVES.findall(text)) & vars(all_primitives).keys()
    faults = {"Message", *FAULTS.findall(text)}
    lines = ["from collections.abc import Callable", "from struct import Struct"]
    lines += ["from sys import getsizeof"] if "getsizeof" in text else []
    lines += ["from typing import Any", ""]
    lines += _import(f"ottla.protocol.generated.{snake(schema.name)}", own)
    lines.append(f"from ottla.protocol.message import {', '.join(sorted(faults))}")
    lines += _import("ottla.protocol.primitives", primitives)
    lines += _import("ottla.protocol.stepping", shared)
    return [*lines, "from ottla.steps import Steps", ""]


def _import(module: str, names: set[str]) -> list[str]:
    if not names:
        return []
    return [f"from {module} import (", *(f"    {name}," for name in sorted(names)), ")"]
