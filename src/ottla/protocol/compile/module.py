"""Puts a generated module together: classes, then readers and writers."""

from __future__ import annotations

import re

from ottla.protocol import primitives as all_primitives
from ottla.protocol.compile.readers import reader
from ottla.protocol.compile.schema import Field, Schema, SchemaError, Struct
from ottla.protocol.compile.shape import annotation, default, indent, snake
from ottla.protocol.compile.twins import Twins
from ottla.protocol.compile.writers import defined_tags, writer

_RESERVED = {"encode", "encode_into", "encode_steps", "decode", "decode_steps", "supports", "self", "unknown_tags"}
PRIMITIVES = re.compile(
    r"\b(?:read|put)_[a-z_]+|\bNO_TAGS\b|\bNULL_COUNT\b|\bEMPTY_LIST\b|\bZERO_UUID\b|\bBuffer\b|\buuid_bytes\b"
    r"|\bshortened\b"
)
FAULTS = re.compile(r"\b(?:not_in_version|not_tagged|not_nullable|tag_too_early|tag_of_other_size)\b")
_STRUCTS = re.compile(r"\b_(?:un)?pack_[A-Za-z]+")


def module(schema: Schema, source: str) -> str:
    """The text of the module for one schema file."""
    body: list[str] = []
    for struct in schema.structs.values():
        body += _class(schema, struct)
    for struct in schema.structs.values():
        body += defined_tags(struct)
    body += [f"_DEFAULT_{snake(name).upper()} = {name}()" for name in schema.structs if _compared(schema, name)]
    body += ["", ""]
    for struct in schema.structs.values():
        body += reader(schema, struct)
        body += writer(schema, struct)
    text = "\n".join(body)
    lines = [f'"""{schema.about}', "", f"Made from {source} by `python -m ottla.protocol.compile`: change that file."]
    lines += ['"""', "", "from __future__ import annotations", ""]
    lines += _imports(text)
    lines += [*packers(text), "", ""]
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines) + text).rstrip("\n") + "\n"


def _compared(schema: Schema, name: str) -> bool:
    """Whether encoders compare a field with this struct's default."""
    fields = [one for struct in schema.structs.values() for one in struct.fields]
    return any(one.base == name and default(one) == f"{name}()" for one in fields)


def _imports(text: str) -> list[str]:
    primitives = set(PRIMITIVES.findall(text)) & vars(all_primitives).keys()
    primitives |= {"Buffer", "DECODE_FAULTS", "ENCODE_FAULTS", "NO_TAGS"}
    faults = {*FAULTS.findall(text), "Message", "undecodable", "unencodable", "bad_bytes", "bad_value"}
    if "(Structure):" in text:
        faults.add("Structure")
    return [
        "from collections.abc import Mapping",
        "from struct import Struct",
        "",
        f"from ottla.protocol.message import {', '.join(sorted(faults))}",
        "from ottla.protocol.primitives import (",
        *(f"    {name}," for name in sorted(primitives)),
        ")",
        "",
    ]


def packers(text: str) -> list[str]:
    lines = []
    for name in sorted(set(_STRUCTS.findall(text))):
        way, code = name[1:].split("_")
        code = code.replace("u", "16s").replace("t", "?")
        lines.append(f'{name} = Struct(">{code}").{"pack" if way == "pack" else "unpack_from"}')
    return lines


def _class(schema: Schema, struct: Struct) -> list[str]:
    message = struct.name in schema.messages
    for one in struct.fields:
        if one.name in _RESERVED or not one.name.isidentifier():
            raise SchemaError(f"{struct.name}.{one.name} is a name that the generated class needs itself")
    lines = [f"class {struct.name}({'Message' if message else 'Structure'}):"]
    names = [one.name for one in struct.fields]
    slots = "".join(f'"{name}", ' for name in [*names, "unknown_tags"])
    lines += [f"    __slots__ = ({slots.rstrip()})"]
    if message:
        lines += [
            f"    API_KEY = {schema.api_key}",
            f"    MIN_VERSION = {schema.versions.first}",
            f"    MAX_VERSION = {schema.versions.last}",
            f"    FLEXIBLE_FROM = {schema.flexible_from}",
        ]
        if Twins(schema).has_arrays(struct):
            lines.append("    HAS_ARRAYS = True")
    lines += ["", "    def __init__(", "        self,", "        *,"]
    lines += [f"        {one.name}: {_parameter(one)}," for one in struct.fields]
    lines += ["        unknown_tags: Mapping[int, bytes] = NO_TAGS,", "    ) -> None:"]
    lines += [f"        self.{one.name} = {_stored(one)}" for one in struct.fields]
    lines += ["        self.unknown_tags = unknown_tags", ""]
    if message:
        lines += indent(_methods(schema, struct))
    return [*lines, ""]


def _parameter(one: Field) -> str:
    value = default(one)
    if value == "[]":
        return f"{annotation(one)} = EMPTY_LIST"
    if value.endswith("()"):
        return f"{annotation(one)} | None = None"
    return f"{annotation(one)} = {value}"


def _stored(one: Field) -> str:
    value = default(one)
    if value == "[]":
        return f"[] if {one.name} is EMPTY_LIST else {one.name}"
    if value.endswith("()"):
        return f"{value} if {one.name} is None else {one.name}"
    return one.name


def _methods(schema: Schema, struct: Struct) -> list[str]:
    name = struct.name
    known = f"{schema.versions.first} <= version <= {schema.versions.last}"
    return [
        "def encode_into(self, out: bytearray, version: int) -> None:",
        f"    if not {known}:",
        f"        raise unencodable({name}, version)",
        "    try:",
        f"        _write_{snake(name)}(out, self, version)",
        "    except ENCODE_FAULTS as fault:",
        f"        raise bad_value({name}, version, fault) from fault",
        "",
        "@classmethod",
        f"def decode(cls, buf: Buffer, version: int, pos: int = 0) -> tuple[{name}, int]:",
        f"    if not {known}:",
        f"        raise undecodable({name}, version)",
        "    try:",
        f"        return _read_{snake(name)}(buf, pos, len(buf), version)",
        "    except DECODE_FAULTS as fault:",
        f"        raise bad_bytes({name}, version, fault) from fault",
        "",
    ]
