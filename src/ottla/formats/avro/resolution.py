"""Reading by two schemas, the writer's and the reader's, as Avro's specification resolves them.

Both are walked once, and what comes out is a reader: functions that call each other. What one schema has and the other
has not is decided here: fields that only the writer knows are passed over, those that only the reader knows have their
defaults, numbers become wider ones. A branch of a writer's union that the reader cannot take is an error of the records
that have it, and of no others.
"""

from __future__ import annotations

from copy import deepcopy
from enum import Enum, auto
from typing import Any, Final

from ottla.formats.avro.defaults import default_bytes
from ottla.formats.avro.numbers import (
    PRIMITIVE_READERS,
    Read,
    enum_reader,
    fixed_reader,
    read_string,
)
from ottla.formats.avro.schema import NO_DEFAULT, AvroField, AvroSchema
from ottla.formats.avro.shapes import Shape, member_names, others, shape_of
from ottla.formats.errors import BadRecord, BadSpec
from ottla.records.varint import read_varlong

#: Items of an array that take no bytes (nulls, empty records): a count of a few bytes could announce any number of
#: them.
EMPTY_ITEMS_MAX: Final = 1024
_WIDER: Final = {
    ("int", "long"),
    ("int", "float"),
    ("int", "double"),
    ("long", "float"),
    ("long", "double"),
    ("float", "double"),
    ("string", "bytes"),
    ("bytes", "string"),
}


class Unreadable(BadSpec):
    """The reader's schema cannot take what the writer's writes."""


class Form(Enum):
    OBJECTS = auto()
    ARROW = auto()
    #: As they are on the wire.
    RAW = auto()


def reader_of(writer: AvroSchema, reader: AvroSchema, form: Form) -> Read:
    """Raises Unreadable."""
    return _Resolver(form).read(writer, reader)


def fields_taken(writer: AvroSchema, reader: AvroSchema) -> dict[str, AvroField]:
    """By the names of the writer's fields the reader's that they are; an alias counts where the name is not written."""
    written = {one.name for one in writer.fields}
    taken = {one.name: one for one in reader.fields if one.name in written}
    for one in reader.fields:
        alias = next((alias for alias in one.aliases if alias in written and alias not in taken), None)
        if one.name not in written and alias is not None:
            taken[alias] = one
    return taken


def default_of(missing: AvroField, reader: AvroSchema, form: Form) -> Any:
    """The value of a reader's field that is not written; raises Unreadable where it has none."""
    return _Resolver(form).default(missing, reader)


class _Resolver:
    def __init__(self, form: Form) -> None:
        self._form = form
        #: Readers of records by both schemas; empty while one is being made, which is when it refers to itself.
        self._records: dict[tuple[int, int], list[Read]] = {}
        #: What was found not to go together: unions would have it tried again and again.
        self._refused: dict[tuple[int, int], str] = {}

    def read(self, writer: AvroSchema, reader: AvroSchema) -> Read:
        key = (id(writer), id(reader))
        if key in self._refused:
            raise Unreadable(self._refused[key])
        try:
            return self._found(writer, reader)
        except Unreadable as unreadable:
            self._refused[key] = str(unreadable)
            raise

    def _found(self, writer: AvroSchema, reader: AvroSchema) -> Read:
        if writer.kind == "union":
            return _union_reader([self._branch(branch, reader) for branch in writer.branches])
        if reader.kind == "union":
            chosen = self._chosen(writer, reader)
            return self._as_member(self.read(writer, chosen), reader, chosen)
        if writer.kind == reader.kind:
            found = self._same_kind(writer, reader)
        elif (writer.kind, reader.kind) in _WIDER:
            found = _widened(writer.kind, reader.kind)
        else:
            raise Unreadable(f"{writer} cannot be read as {reader}")
        _check_logical(writer, reader)
        shape = None if self._form is Form.RAW else shape_of(reader, arrow=self._form is Form.ARROW)
        return found if shape is None else _shaped(found, shape)

    def _same_kind(self, writer: AvroSchema, reader: AvroSchema) -> Read:
        kind = writer.kind
        if kind == "record":
            return self._record(writer, reader)
        if kind == "array":
            return _array_reader(self.read(writer.inner, reader.inner), writer.inner.takes_bytes)
        if kind == "map":
            return _map_reader(self.read(writer.inner, reader.inner), as_pairs=self._form is Form.ARROW)
        if kind in {"enum", "fixed"} and not same_name(writer, reader):
            raise Unreadable(f"{writer} cannot be read as {reader}: the names differ, and there is no alias")
        if kind == "enum":
            known = set(reader.symbols)
            return enum_reader(
                writer.symbols, tuple(s if s in known else reader.default_symbol for s in writer.symbols)
            )
        if kind == "fixed":
            if writer.size != reader.size:
                raise Unreadable(f"{writer} has {writer.size} bytes, and the reader's has {reader.size}")
            return fixed_reader(writer.size)
        return PRIMITIVE_READERS[kind]

    # Unions

    def _branch(self, branch: AvroSchema, reader: AvroSchema) -> Read:
        try:
            return self.read(branch, reader)
        except Unreadable as unreadable:
            return _refusing(str(unreadable))

    def _chosen(self, writer: AvroSchema, reader: AvroSchema) -> AvroSchema:
        """The branch of the reader's union: the same, else the first that can take it. Of several whose names have the
        same last part the one of the whole name comes before the others, in which the same fields may mean something
        else."""
        alike = [one for one in reader.branches if one.kind == writer.kind]
        alike.sort(key=lambda one: one.name != writer.name)
        for branch in alike:
            if branch.logical == writer.logical and (branch.name is None or same_name(writer, branch)):
                return branch
        for branch in (*alike, *reader.branches):
            try:
                self.read(writer, branch)
            except Unreadable:
                continue
            return branch
        raise Unreadable(f"{writer} cannot be read as {reader}")

    def _as_member(self, read: Read, union: AvroSchema, chosen: AvroSchema) -> Read:
        """In Arrow a union of several is a struct, of which one member is there."""
        names = member_names(union)
        if self._form is not Form.ARROW or names is None or chosen.kind == "null":
            return read
        name = names[others(union).index(chosen)]

        def member(data: bytes, pos: int) -> tuple[dict[str, Any], int]:
            value, pos = read(data, pos)
            return {name: value}, pos

        return member

    # Records

    def _record(self, writer: AvroSchema, reader: AvroSchema) -> Read:
        key = (id(writer), id(reader))
        known = self._records.get(key)
        if known is not None:
            return lambda data, pos: known[0](data, pos)
        made = self._records[key] = []
        try:
            made.append(self._made_record(writer, reader))
        except Unreadable as unreadable:
            del self._records[key]
            made.append(_refusing(str(unreadable)))  # for what refers to it and can be read without
            raise
        return made[0]

    def _made_record(self, writer: AvroSchema, reader: AvroSchema) -> Read:
        wanted = {one.name: one for one in reader.fields}
        taken = fields_taken(writer, reader)
        steps: list[tuple[str | None, Read]] = []
        unread = dict(wanted)
        for one in writer.fields:
            target = taken.get(one.name)
            if target is None:
                steps.append((None, _Resolver(Form.RAW).read(one.schema, one.schema)))
                continue
            del unread[target.name]
            try:
                steps.append((target.name, self.read(one.schema, target.schema)))
            except Unreadable as error:
                raise Unreadable(f"field {target.name} of {reader.name}: {error}") from None
        blank = dict.fromkeys(wanted)
        for missing in unread.values():
            blank[missing.name] = self.default(missing, reader)
        return _record_reader(blank, steps, fresh=self._form is Form.OBJECTS)

    def default(self, missing: AvroField, reader: AvroSchema) -> Any:
        if missing.default is NO_DEFAULT:
            raise Unreadable(f"field {missing.name} of {reader.name} is not written, and has no default")
        return self.read(missing.schema, missing.schema)(default_bytes(missing.schema, missing.default), 0)[0]


def _record_reader(blank: dict[str, Any], steps: list[tuple[str | None, Read]], *, fresh: bool) -> Read:
    if any(name is None for name, _ in steps) or (
        fresh and any(isinstance(one, list | dict) for one in blank.values())
    ):

        def read_some(data: bytes, pos: int) -> tuple[dict[str, Any], int]:
            found = deepcopy(blank) if fresh else blank.copy()
            for name, read in steps:
                value, pos = read(data, pos)
                if name is not None:
                    found[name] = value
            return found, pos

        return read_some
    every = [(name, read) for name, read in steps if name is not None]

    def read_all(data: bytes, pos: int) -> tuple[dict[str, Any], int]:
        found = blank.copy()
        for name, read in every:
            found[name], pos = read(data, pos)
        return found, pos

    return read_all


def _refusing(message: str) -> Read:
    def refuse(_data: bytes, _pos: int) -> tuple[Any, int]:
        raise BadRecord(message)

    return refuse


def _union_reader(branches: list[Read]) -> Read:
    def read(data: bytes, pos: int) -> tuple[Any, int]:
        number, end = read_varlong(data, pos)
        if not 0 <= number < len(branches):
            raise BadRecord(f"there is no branch {number} of {len(branches)}, at byte {pos}")
        return branches[number](data, end)

    return read


def _array_reader(read_item: Read, items_take_bytes: bool) -> Read:
    def read(data: bytes, pos: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        append = found.append
        while True:
            count, pos = _block(data, pos)
            if not count:
                return found, pos
            room = len(data) - pos if items_take_bytes else EMPTY_ITEMS_MAX - len(found)
            if count > room:
                raise BadRecord(f"{count} items are announced at byte {pos}, and {room} can be there")
            for _ in range(count):
                item, pos = read_item(data, pos)
                append(item)

    return read


def _map_reader(read_value: Read, *, as_pairs: bool) -> Read:
    def read(data: bytes, pos: int) -> tuple[Any, int]:
        found: dict[str, Any] = {}
        while True:
            count, pos = _block(data, pos)
            if not count:
                return (list(found.items()) if as_pairs else found), pos
            if count > len(data) - pos:
                raise BadRecord(f"{count} entries are announced at byte {pos}, and {len(data) - pos} bytes are there")
            for _ in range(count):
                key, pos = read_string(data, pos)
                found[key], pos = read_value(data, pos)

    return read


def _block(data: bytes, pos: int) -> tuple[int, int]:
    """How many items stand in the next block; behind a negative count stands the block's size."""
    count, pos = read_varlong(data, pos)
    if count < 0:
        size, pos = read_varlong(data, pos)
        if not 0 <= size <= len(data) - pos:
            raise BadRecord(f"a block of {size} bytes is announced at byte {pos}, and {len(data) - pos} are there")
        count = -count
    return count, pos


def _shaped(read: Read, shape: Shape) -> Read:
    def read_shaped(data: bytes, pos: int) -> tuple[Any, int]:
        value, pos = read(data, pos)
        return shape(value), pos

    return read_shaped


def _widened(writer: str, reader: str) -> Read:
    if {writer, reader} == {"string", "bytes"}:
        return PRIMITIVE_READERS[reader]
    read = PRIMITIVE_READERS[writer]
    return read if reader == "long" else _shaped(read, float)


def same_name(writer: AvroSchema, reader: AvroSchema) -> bool:
    """By the last part of the name, as the specification has it, or by an alias of the reader's."""
    if writer.bare_name == reader.bare_name:
        return True
    return any(alias in {writer.name, writer.bare_name} for alias in reader.aliases)


def _check_logical(writer: AvroSchema, reader: AvroSchema) -> None:
    """Numbers of one meaning read as another would be wrong values without a word."""
    if writer.logical is None or reader.logical is None:
        return
    if writer.logical != reader.logical:
        raise Unreadable(f"{writer} cannot be read as {reader}")
    if writer.logical == "decimal" and (writer.scale != reader.scale or writer.precision > reader.precision):
        raise Unreadable(
            f"decimal({writer.precision}, {writer.scale}) cannot be read as decimal({reader.precision}, {reader.scale})"
        )
