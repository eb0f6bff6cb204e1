"""What both the readers and the writers need to know of a schema: which form a field has in which version."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ottla.protocol.compile.schema import FIXED, Field, Schema, SchemaError, Struct, Versions


class Form(NamedTuple):
    """How a field stands in the bytes of one version."""

    present: bool
    tagged: bool = False
    compact: bool = False
    nullable: bool = False


class FieldRange(NamedTuple):
    """A range of versions in which a group of fields keeps its forms."""

    versions: Versions
    fields: list[tuple[Field, Form]]


def snake(name: str) -> str:
    name = name.replace("KRaft", "Kraft")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def form(schema: Schema, one: Field, version: int) -> Form:
    assert one.versions is not None
    if version not in one.versions:
        return Form(present=False)
    tagged = one.tagged is not None and version in one.tagged
    fixed = not one.array and one.base in FIXED
    # An array differs between the two forms in its count only: see `compact`.
    compact = not fixed and not one.array and not one.struct and schema.flexible(version)
    nullable = one.nullable is not None and version in one.nullable
    return Form(present=True, tagged=tagged, compact=compact, nullable=nullable)


def groups(schema: Schema, struct: Struct) -> Iterable[list[FieldRange]]:
    """Neighbouring fields whose forms change at the same versions, so that one chain of ifs serves them all."""
    collected: list[FieldRange] = []
    for one in struct.fields:
        own = _segments(schema, struct, one)
        if collected and [segment.versions for segment in collected] == [segment.versions for segment in own]:
            for segment, mine in zip(collected, own, strict=True):
                segment.fields.extend(mine.fields)
        else:
            if collected:
                yield collected
            collected = own
    if collected:
        yield collected


def _segments(schema: Schema, struct: Struct, one: Field) -> list[FieldRange]:
    segments: list[FieldRange] = []
    for version in range(struct.used.first, struct.used.last + 1):
        here = form(schema, one, version)
        if segments and segments[-1].fields[0][1] == here:
            segments[-1] = FieldRange(Versions(segments[-1].versions.first, version), segments[-1].fields)
        else:
            segments.append(FieldRange(Versions(version, version), [(one, here)]))
    return segments


def compact(schema: Schema, segment: FieldRange) -> str:
    """Whether arrays of this segment have a compact count: "yes", "no", or the condition that decides."""
    if not schema.flexible(segment.versions.last):
        return "no"
    return "yes" if schema.flexible(segment.versions.first) else f"version >= {schema.flexible_from}"


def either(way: str, template: str) -> str:
    """Fills `compact_` or nothing into a name, or chooses between both when the code runs."""
    if way == "yes":
        return template.format("compact_")
    if way == "no":
        return template.format("")
    return f"{template.format('compact_')} if {way} else {template.format('')}"


def chain(segments: list[FieldRange], body: Callable[[FieldRange], list[str]]) -> list[str]:
    """Code that does each segment's work in its versions: the newest first, since most peers speak that."""
    parts: list[tuple[int, list[str]]] = []
    for segment in reversed(segments):
        lines = body(segment)
        if parts and parts[-1][1] == lines:
            parts[-1] = (segment.versions.first, lines)
        else:
            parts.append((segment.versions.first, lines))
    if len(parts) == 1:
        return parts[0][1]
    if len(parts) == 2 and not parts[0][1]:
        return [f"if version < {parts[0][0]}:", *indent(parts[1][1])]
    out: list[str] = []
    for index, (first, lines) in enumerate(parts):
        last = index == len(parts) - 1
        if last and not lines:
            break
        word = "if" if index == 0 else "elif"
        out.append("else:" if last else f"{word} version >= {first}:")
        out.extend(indent(lines or ["pass"]))
    return out


def since(first: int, struct: Struct, known: int = 0) -> str | None:
    """The condition "from this version on"; None where it always holds, the version being at least `known`."""
    return None if first <= max(struct.used.first, known) else f"version >= {first}"


def indent(lines: Iterable[str], depth: int = 1) -> list[str]:
    return ["    " * depth + line if line else "" for line in lines]


def default(one: Field) -> str:
    """The default as a Python expression; a new object each time where it is mutable."""
    text = one.default
    if text == "null":
        if not one.nullable:
            raise SchemaError(f"{one.name} defaults to null, but may never be null")
        return "None"
    if one.array:
        return "[]"
    if one.struct:
        return f"{one.base}()"
    match one.base:
        case "string":
            return text or '""'
        case "bytes":
            return 'b""'
        case "records":
            return "None" if one.nullable else 'b""'
        case "uuid":
            return "ZERO_UUID"
        case "bool":
            return "True" if text == "true" else "False"
        case "float64":
            return text or "0.0"
    return text or "0"


def unset(owner: str, one: Field) -> str:
    """The condition that a field has another value than its default."""
    value = default(one)
    place = f"{owner}.{one.name}"
    if value == "None":
        return f"{place} is not None"
    if value == "False":
        return place
    if value.endswith("()"):
        value = f"_DEFAULT_{snake(one.base).upper()}"
    return f"{place} != {value}"


def annotation(one: Field) -> str:
    if one.base in {"bytes", "records"}:
        text = "Buffer"
    elif one.base == "uuid":
        text = "bytes"
    elif one.base == "string":
        text = "str"
    elif one.struct:
        text = one.base
    else:
        text = {"bool": "bool", "float64": "float"}.get(one.base, "int")
    if one.array:
        text = f"list[{text}]"
    return f"{text} | None" if one.nullable or default(one) == "None" else text


def least_size(schema: Schema, one: Field) -> int:
    """The fewest bytes one element of an array can have in any version: what a count is checked against."""
    if one.base in FIXED:
        return FIXED[one.base][1]
    if not one.struct:
        return 1
    struct = schema.structs[one.base]
    assert one.versions is not None
    sizes = [_least_struct(schema, struct, version) for version in range(one.versions.first, one.versions.last + 1)]
    return max(1, min(sizes))


def _least_struct(schema: Schema, struct: Struct, version: int) -> int:
    size = 1 if schema.flexible(version) else 0
    for one in struct.fields:
        here = form(schema, one, version)
        if not here.present or here.tagged:
            continue
        if one.array:
            size += 1 if schema.flexible(version) else 4
        elif one.base in FIXED:
            size += FIXED[one.base][1]
        elif one.struct:
            size += 1 if here.nullable else _least_struct(schema, schema.structs[one.base], version)
        else:
            size += 1 if here.compact else 2 if one.base == "string" else 4
    return size


def runs(fields: list[tuple[Field, Form]]) -> Iterable[list[tuple[Field, Form]]]:
    """Splits fields so that those of fixed size that follow each other stay together."""
    run: list[tuple[Field, Form]] = []
    for one, here in fields:
        if here.present and not here.tagged and not one.array and one.base in FIXED:
            run.append((one, here))
            continue
        if run:
            yield run
            run = []
        yield [(one, here)]
    if run:
        yield run


def is_run(run: list[tuple[Field, Form]]) -> bool:
    one, here = run[0]
    return here.present and not here.tagged and not one.array and one.base in FIXED


def codes(run: list[tuple[Field, Form]]) -> str:
    return "".join(FIXED[one.base][0] for one, _ in run)


def code_name(text: str) -> str:
    return text.replace("16s", "u").replace("?", "t")
