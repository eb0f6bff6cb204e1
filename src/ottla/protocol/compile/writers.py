"""Writes the functions that append structs to a bytearray."""

from __future__ import annotations

from typing import Final

from ottla.protocol.compile.schema import FIXED, Field, Schema, SchemaError, Struct
from ottla.protocol.compile.shape import (
    FieldRange,
    Form,
    chain,
    code_name,
    codes,
    compact,
    either,
    groups,
    indent,
    is_run,
    runs,
    since,
    snake,
    unset,
)
from ottla.protocol.compile.twins import Twins

#: Names that a client has given may stand in it: what is too long for a string is better said in part than not at all.
_ERROR_TEXT: Final = "error_message"


def writer(schema: Schema, struct: Struct, twins: Twins | None = None) -> list[str]:
    """The plain writer, or with `twins` the one with steps, for a struct that has arrays."""
    lines: list[str] = []
    for group in groups(schema, struct):
        lines += chain(group, lambda segment: _segment(schema, segment, twins))
    lines += _tags(schema, struct, twins)
    name = snake(struct.name)
    head = f"def _write_{name}(out: bytearray, m: {struct.name}, version: int) -> None:"
    if twins is not None:
        head = f"def _write_{name}_steps(out: bytearray, m: {struct.name}, version: int, pace: Pace) -> Steps[None]:"
    return [head, *indent(lines), "", ""]


def _segment(schema: Schema, segment: FieldRange, twins: Twins | None) -> list[str]:
    lines: list[str] = []
    for run in runs(segment.fields):
        one, here = run[0]
        if is_run(run):
            lines += _fixed(run, "out")
        elif here.tagged:
            continue
        elif here.present:
            lines += _value(one, here, "out", compact(schema, segment), twins)
        elif not one.ignorable:
            lines += [f"if {unset('m', one)}:", f'    raise not_in_version(m, "{one.name}", version)']
    return lines


def _fixed(run: list[tuple[Field, Form]], out: str) -> list[str]:
    if len(run) == 1:
        one = run[0][0]
        if one.base == "bool":
            return [f"{out}.append(1 if m.{one.name} else 0)"]
        if one.base == "uuid":
            return [f"put_uuid({out}, m.{one.name})"]
    values = ", ".join(f"uuid_bytes(m.{one.name})" if one.base == "uuid" else f"m.{one.name}" for one, _ in run)
    return [f"{out} += _pack_{code_name(codes(run))}({values})"]


def _value(one: Field, here: Form, out: str, way: str, twins: Twins | None) -> list[str]:
    place = f"m.{one.name}"
    if one.array:
        body = _array(one, out, way, twins)
        null = {"yes": f"{out}.append(0)", "no": f"{out} += NULL_COUNT"}.get(way, "")
        null = null or f'{out} += b"\\0" if {way} else NULL_COUNT'
    elif one.struct:
        body = [_write_struct(one, out, place, twins)]
        if here.nullable:
            body.insert(0, f"{out}.append(1)")
        null = f"{out}.append(0xFF)"
    else:
        kind = "string" if one.base == "string" else "bytes"
        words = ("compact_" if here.compact else "") + ("nullable_" if here.nullable else "")
        said = f"shortened({place})" if one.name == _ERROR_TEXT else place
        body = [f"put_{words}{kind}({out}, {said})"]
        if here.nullable:
            return body
        null = ""
    if here.nullable:
        return [f"if {place} is None:", f"    {null}", "else:", *indent(body)]
    if one.nullable:
        return [f"if {place} is None:", f'    raise not_nullable(m, "{one.name}", version)', *body]
    return body


def _array(one: Field, out: str, way: str, twins: Twins | None) -> list[str]:
    place = f"m.{one.name}"
    lines = [either(way, f"put_{{}}count({out}, len({place}))")]
    if " if " in lines[0]:
        lines = [
            f"if {way}:",
            f"    put_compact_count({out}, len({place}))",
            "else:",
            f"    put_count({out}, len({place}))",
        ]
    if twins is not None:
        return [*lines, *_stepped(one, out, way, twins)]
    if one.base in FIXED:
        return [*lines, f'put_numbers({out}, {place}, "{FIXED[one.base][0]}")']
    item = f"{one.name}_item"
    if one.struct:
        return [*lines, f"for {item} in {place}:", f"    _write_{snake(one.base)}({out}, {item}, version)"]
    kind = "string" if one.base == "string" else "bytes"
    lines.append(f"put_{one.name} = {either(way, f'put_{{}}{kind}')}")
    return [*lines, f"for {item} in {place}:", f"    put_{one.name}({out}, {item})"]


def _stepped(one: Field, out: str, way: str, twins: Twins) -> list[str]:
    """The elements of an array that may be long, one after the other with a step's end between some."""
    place = f"m.{one.name}"
    if one.base in FIXED:
        return [
            f"if len({place}) > NUMBERS_A_PIECE:",
            f'    yield from write_many_numbers({out}, {place}, "{FIXED[one.base][0]}", pace)',
            "else:",
            f'    put_numbers({out}, {place}, "{FIXED[one.base][0]}")',
            f"    pace.work -= len({place}) // PIECE",
        ]
    if not one.struct:
        if one.base != "string":
            raise SchemaError(f"{one.name}: an array of byte strings has no writer with steps")
        put = either(way, "put_{}string")
        return [f"yield from write_strings({out}, {place}, {put}, pace)"]
    item = f"{one.name}_item"
    if not twins.has_arrays_in(one):
        return [
            f"if len({place}) > FEW:",
            f"    yield from write_structs({out}, {place}, _write_{snake(one.base)}, version, pace)",
            "else:",
            f"    for {item} in {place}:",
            f"        _write_{snake(one.base)}({out}, {item}, version)",
            f"    pace.work -= len({place})",
        ]
    return [
        f"for {item} in {place}:",
        f"    {_write_struct(one, out, item, twins)}",
        "    if pace.due():",
        "        yield",
    ]


def _write_struct(one: Field, out: str, place: str, twins: Twins | None) -> str:
    if twins is not None and twins.has_arrays_in(one):
        return f"yield from _write_{snake(one.base)}_steps({out}, {place}, version, pace)"
    return f"_write_{snake(one.base)}({out}, {place}, version)"


def _tags(schema: Schema, struct: Struct, twins: Twins | None) -> list[str]:
    refuse = ["if m.unknown_tags:", "    raise not_tagged(m, version)"]
    if not schema.flexible(struct.used.last):
        return refuse
    tagged = sorted((one for one in struct.fields if one.tag is not None), key=lambda one: one.tag or 0)
    if tagged:
        lines = ["tags: list[tuple[int, bytearray]] = []"]
        for one in tagged:
            lines += _tagged(schema, one, struct, twins)
        defined = f"_TAGS_{snake(struct.name).upper()}"
        lines += ["if tags or m.unknown_tags:", f"    put_tags(out, tags, m.unknown_tags, {defined})"]
    else:
        lines = ["if m.unknown_tags:", "    put_tags(out, [], m.unknown_tags, NO_TAGS)"]
    lines += ["else:", "    out.append(0)"]
    assert schema.flexible_from is not None
    condition = since(schema.flexible_from, struct)
    if condition is None:
        return lines
    return [f"if {condition}:", *indent(lines), f"el{refuse[0]}", refuse[1]]


def _tagged(schema: Schema, one: Field, struct: Struct, twins: Twins | None) -> list[str]:
    assert one.tagged is not None
    condition = since(one.tagged.first, struct, schema.flexible_from or 0)
    test = unset("m", one)
    nullable = one.nullable is not None and one.tagged.first in one.nullable
    here = Form(present=True, compact=not one.array and not one.struct and one.base not in FIXED, nullable=nullable)
    if not one.array and one.base in FIXED:
        write = _fixed([(one, here)], "tag")
    else:
        write = _value(one, here, "tag", "yes", twins)
    return [
        f"if {condition} and {test}:" if condition else f"if {test}:",
        "    tag = bytearray()",
        *indent(write),
        f"    tags.append(({one.tag}, tag))",
    ]


def defined_tags(struct: Struct) -> list[str]:
    tags = sorted(one.tag for one in struct.fields if one.tag is not None)
    if not tags:
        return []
    return [f"_TAGS_{snake(struct.name).upper()} = frozenset(({', '.join(map(str, tags))},))"]
