"""Writes the functions that read structs from bytes."""

from __future__ import annotations

from ottla.protocol.compile.schema import FIXED, Field, Schema, SchemaError, Struct
from ottla.protocol.compile.shape import (
    FieldRange,
    Form,
    chain,
    code_name,
    codes,
    compact,
    default,
    either,
    groups,
    indent,
    is_run,
    least_size,
    runs,
    since,
    snake,
)
from ottla.protocol.compile.twins import Twins


def reader(schema: Schema, struct: Struct, twins: Twins | None = None) -> list[str]:
    """The plain reader, or with `twins` the one that asks an allowance, and has steps where the struct has arrays."""
    lines = [f"m = object.__new__({struct.name})"]
    for group in groups(schema, struct):
        lines += chain(group, lambda segment: _segment(schema, segment, twins))
    lines += _tags(schema, struct, twins)
    lines.append("return m, pos")
    result = f"tuple[{struct.name}, int]"
    name = snake(struct.name)
    if twins is None:
        head = f"def _read_{name}(buf: Buffer, pos: int, limit: int, version: int) -> {result}:"
    else:
        result = f"Steps[{result}]" if twins.has_arrays(struct) else result
        parameters = "buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance"
        head = f"def _read_{name}_held({parameters}) -> {result}:"
    return [head, *indent(lines), "", "", *_tag_reader(schema, struct, twins)]


def _segment(schema: Schema, segment: FieldRange, twins: Twins | None) -> list[str]:
    lines: list[str] = []
    for run in runs(segment.fields):
        if is_run(run):
            lines += _fixed(run)
            continue
        one, here = run[0]
        if here.present and not here.tagged:
            lines += _value(schema, one, here, compact(schema, segment), twins)
        else:
            lines.append(f"m.{one.name} = {default(one)}")
    return lines


def _fixed(run: list[tuple[Field, Form]]) -> list[str]:
    size = sum(FIXED[one.base][1] for one, _ in run)
    if len(run) == 1 and run[0][0].base == "bool":
        return [f"m.{run[0][0].name} = buf[pos] != 0", "pos += 1"]
    names = ", ".join(f"m.{one.name}" for one, _ in run)
    if len(run) == 1:
        names = f"({names},)"
    return [f"{names} = _unpack_{code_name(codes(run))}(buf, pos)", f"pos += {size}"]


def _value(schema: Schema, one: Field, here: Form, way: str, twins: Twins | None) -> list[str]:
    place = f"m.{one.name}"
    if one.array:
        return _array(schema, one, here, way, twins)
    if one.struct:
        call = twins.read(one) if twins else f"_read_{snake(one.base)}(buf, pos, limit, version)"
        read = f"{place}, pos = {call}"
        if not here.nullable:
            return [read]
        return ["pos += 1", "if buf[pos - 1] > 0x7F:", f"    {place} = None", "else:", f"    {read}"]
    words = ("compact_" if here.compact else "") + ("nullable_" if here.nullable else "")
    lines = [f"{place}, pos = read_{words}{_kind(one)}(buf, pos, limit)"]
    return [*lines, f"allowance.left -= getsizeof({place})"] if twins else lines


def _array(schema: Schema, one: Field, here: Form, way: str, twins: Twins | None) -> list[str]:
    call = f"read_{{}}{'nullable_' if here.nullable else ''}count(buf, pos, limit, {least_size(schema, one)})"
    lines = [f"count, pos = {either(way, call)}"]
    place = f"m.{one.name}"
    if twins is not None:
        body = _stepped(schema, one, here, way, twins)
    elif one.base in FIXED:
        code, size = FIXED[one.base]
        body = [f'{place}, pos = read_numbers(buf, pos, count, "{code}", {size})']
    else:
        item = one.base if one.struct else "str" if one.base == "string" else "Buffer"
        if one.struct:
            read = f"_read_{snake(one.base)}(buf, pos, limit, version)"
        else:
            read = f"read_{one.name}(buf, pos, limit)"
        own = _local(one, here)
        body = [] if one.struct else [f"read_{one.name} = {either(way, f'read_{{}}{_kind(one)}')}"]
        body += [
            f"{own}: list[{item}] = []",
            "for _ in range(count):",
            f"    {own}item, pos = {read}",
            f"    {own}.append({own}item)",
            f"{place} = {own}",
        ]
    if here.nullable:
        return [*lines, "if count < 0:", f"    {place} = None", "else:", *indent(body)]
    return [*lines, *body]


def _stepped(schema: Schema, one: Field, here: Form, way: str, twins: Twins) -> list[str]:
    """The elements of an array that may be long, one after the other with a step's end between some."""
    place = f"m.{one.name}"
    each = twins.element_bytes(one)
    take = f"allowance.take_array(count, {each})"
    if one.base in FIXED:
        code, size = FIXED[one.base]
        return [
            "if count > NUMBERS_A_PIECE:",
            f"    {take}",
            f'    {place}, pos = yield from read_many_numbers(buf, pos, count, "{code}", {size}, allowance)',
            "else:",
            f'    {place}, pos = read_numbers(buf, pos, count, "{code}", {size})',
            f"    allowance.left -= count * {each}",
            "    allowance.work -= count // PIECE",
        ]
    if not one.struct:
        if one.base != "string":
            raise SchemaError(f"{one.name}: an array of byte strings has no reader with steps")
        read = either(way, "read_{}string")
        return [take, f"{place}, pos = yield from read_strings({read}, buf, pos, limit, count, allowance)"]
    struct = schema.structs[one.base]
    if twins.plain(struct):
        read = f"_read_{snake(one.base)}, buf, pos, limit, version, count, allowance"
        return [
            "if count > FEW:",
            f"    {take}",
            f"    {place}, pos = yield from read_structs({read}, text={twins.has_text(struct)})",
            "else:",
            f"    allowance.left -= count * {each}",
            f"    {place}, pos = read_few({read}, text={twins.has_text(struct)})",
        ]
    own = _local(one, here)
    return [
        take,
        f"{own}: list[{one.base}] = []",
        "for _ in range(count):",
        f"    {own}item, pos = {twins.read(one)}",
        f"    {own}.append({own}item)",
        "    if allowance.due(pos):",
        "        yield",
        f"{place} = {own}",
    ]


def _local(one: Field, here: Form) -> str:
    """The name of a list while it grows: one for each type that it has in different versions."""
    return f"{one.name}_or_null_" if here.nullable and one.nullable != one.versions else f"{one.name}_"


def _kind(one: Field) -> str:
    return "string" if one.base == "string" else "bytes"


def _tags(schema: Schema, struct: Struct, twins: Twins | None) -> list[str]:
    if not schema.flexible(struct.used.last):
        return ["m.unknown_tags = NO_TAGS"]
    if any(one.tag is not None for one in struct.fields):
        lines = [
            "if buf[pos] == 0:",
            "    m.unknown_tags = NO_TAGS",
            "    pos += 1",
            "else:",
            f"    pos = {twins.read_tags(struct) if twins else _plain_tags(struct)}",
        ]
    else:
        lines = [
            "if buf[pos] == 0:",
            "    m.unknown_tags = NO_TAGS",
            "    pos += 1",
            "else:",
            "    m.unknown_tags, pos = read_tags(buf, pos, limit)",
        ]
        if twins:
            lines.append("    allowance.take_tags(m.unknown_tags)")
    assert schema.flexible_from is not None
    condition = since(schema.flexible_from, struct)
    if condition is None:
        return lines
    return [f"if {condition}:", *indent(lines), "else:", "    m.unknown_tags = NO_TAGS"]


def _plain_tags(struct: Struct) -> str:
    return f"_read_{snake(struct.name)}_tags(m, buf, pos, limit, version)"


def _tag_reader(schema: Schema, struct: Struct, twins: Twins | None) -> list[str]:
    """The rare path: some tagged field is there."""
    tagged = [one for one in struct.fields if one.tag is not None]
    if not tagged or not schema.flexible(struct.used.last):
        return []
    lines = [
        "unknown: dict[int, bytes] = {}",
        "many, pos = read_tag_count(buf, pos, limit)",
        "for _ in range(many):",
        "    tag, pos, end = read_tag(buf, pos, limit)",
    ]
    word = "if"
    for one in sorted(tagged, key=lambda one: one.tag or 0):
        assert one.tagged is not None
        lines.append(f"    {word} tag == {one.tag}:")
        if since(one.tagged.first, struct, schema.flexible_from or 0):
            # Kafka refuses a defined tag in a version before it, instead of keeping it as an unknown one.
            lines += [f"        if version < {one.tagged.first}:", "            raise tag_too_early(m, tag, version)"]
        lines += indent([line.replace("limit", "end") for line in _tagged_value(schema, one, twins)], 2)
        word = "elif"
    lines += [
        "    else:",
        "        unknown[tag] = bytes(buf[pos:end])",
        "        pos = end",
        "    if pos != end:",
        "        raise tag_of_other_size(m, tag)",
        "m.unknown_tags = unknown or NO_TAGS",
        *(["allowance.take_tags(unknown)"] if twins else []),
        "return pos",
    ]
    name = snake(struct.name)
    parameters = f"m: {struct.name}, buf: Buffer, pos: int, limit: int, version: int"
    if twins is None:
        head = f"def _read_{name}_tags({parameters}) -> int:"
    else:
        result = "Steps[int]" if twins.has_tagged_arrays(struct) else "int"
        head = f"def _read_{name}_tags_held({parameters}, allowance: DecodingAllowance) -> {result}:"
    return [head, *indent(lines), "", ""]


def _tagged_value(schema: Schema, one: Field, twins: Twins | None) -> list[str]:
    assert one.tagged is not None
    here = Form(
        present=True,
        compact=not one.array and not one.struct and one.base not in FIXED,
        nullable=one.nullable is not None and one.tagged.first in one.nullable,
    )
    if one.struct and not one.array and here.nullable:
        raise SchemaError(f"{one.name}: a struct in a tagged field that may be null is not supported")
    if not one.array and one.base in FIXED:
        return _fixed([(one, here)])
    return _value(schema, one, here, "yes", twins)
