"""Defaults of fields, which stand in a schema as JSON, as the bytes that a writer would have written for them."""

from __future__ import annotations

from typing import Any, Final

from ottla.formats.avro.output import PRIMITIVE_WRITERS, write_long, write_string
from ottla.formats.avro.schema import NO_DEFAULT, AvroSchema
from ottla.formats.errors import BadSpec, BadValue

#: Fields that are filled and branches that are tried for one default. A record whose fields' defaults are records twice
#: over makes any number of them out of a short schema.
STEPS_MAX: Final = 100_000


def default_bytes(schema: AvroSchema, given: Any) -> bytes:
    """Raises BadSpec for a default that is no value of its schema."""
    out = bytearray()
    try:
        _DefaultWriter().write(schema, given, out)
    except (BadValue, RecursionError) as error:
        raise BadSpec(f"the Avro schema has the default {str(given)[:200]!r}, which is no {schema}: {error}") from None
    return bytes(out)


class _DefaultWriter:
    def __init__(self) -> None:
        self._steps = 0

    def write(self, schema: AvroSchema, given: Any, out: bytearray) -> None:
        kind = schema.kind
        if kind == "union":
            self._write_union(schema, given, out)
        elif kind == "record":
            self._write_record(schema, given, out)
        elif kind == "array":
            _check(isinstance(given, list), schema)
            if given:
                write_long(len(given), out)
                for one in given:
                    self.write(schema.inner, one, out)
            out.append(0)
        elif kind == "map":
            _check(isinstance(given, dict), schema)
            if given:
                write_long(len(given), out)
                for key, one in given.items():
                    write_string(key, out)
                    self.write(schema.inner, one, out)
            out.append(0)
        elif kind == "enum":
            _check(given in schema.symbols, schema)
            write_long(schema.symbols.index(given), out)
        elif kind in {"bytes", "fixed"}:
            self._write_bytes(schema, given, out)
        else:
            PRIMITIVE_WRITERS[kind](given, out)

    def _write_bytes(self, schema: AvroSchema, given: Any, out: bytearray) -> None:
        """JSON has no bytes: each character of the text is one."""
        _check(isinstance(given, str) and all(ord(one) < 256 for one in given), schema)
        raw = given.encode("latin-1")
        if schema.kind == "bytes":
            write_long(len(raw), out)
        else:
            _check(len(raw) == schema.size, schema)
        out += raw

    def _write_union(self, schema: AvroSchema, given: Any, out: bytearray) -> None:
        """Of its first branch, as Avro had it until 1.12; now of any."""
        for number, branch in enumerate(schema.branches):
            self._step()
            trial = bytearray()
            try:
                self.write(branch, given, trial)
            except BadValue:
                continue
            write_long(number, out)
            out += trial
            return
        _check(False, schema)

    def _write_record(self, schema: AvroSchema, given: Any, out: bytearray) -> None:
        _check(isinstance(given, dict), schema)
        for one in schema.fields:
            if one.name not in given:
                self._step()
            value = given.get(one.name, one.default)
            _check(value is not NO_DEFAULT, schema)
            self.write(one.schema, value, out)

    def _step(self) -> None:
        self._steps += 1
        if self._steps > STEPS_MAX:
            raise BadSpec(f"the Avro schema has a default that takes more than {STEPS_MAX} steps to write")


def _check(sound: bool, schema: AvroSchema) -> None:
    if not sound:
        raise BadValue(f"it is no {schema}")
