"""What decoders of Avro and Protobuf share: they read by a schema that comes from a `SchemaSource`, row by row."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, Generic

from ottla.formats.errors import BadSpec
from ottla.formats.interface import Decoder
from ottla.formats.source import Schema, SchemaSource


class SchemaDecoder(Decoder, Generic[Schema]):
    def __init__(self, source: SchemaSource[Schema], *, rescue_column: str | None = None) -> None:
        self._source = source
        self._rescue_column = rescue_column
        self._framed = source.framed
        self._arrow_type: Any = None

    @abstractmethod
    def _type_of_column(self) -> Any:
        """Of the schema's fields; what `_row_of` needs is there behind it."""

    @abstractmethod
    def _row_of(self, data: bytes) -> Any:
        """A row as Arrow takes it, the rescue column's value in it; raises BadRecord."""

    def __reduce__(self) -> tuple[Any, ...]:
        """With the schema of the column, so that all processes that unpickle it read alike."""
        return partial(type(self), rescue_column=self._rescue_column), (self._source.pinned(),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SchemaDecoder) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[Any, ...]:
        return type(self), *self._source.parts(), self._rescue_column

    @property
    def arrow_type(self) -> Any:
        if self._arrow_type is None:
            found = self._type_of_column()
            self._arrow_type = found if self._rescue_column is None else _with_text(found, self._rescue_column)
        return self._arrow_type

    def decode(self, values: Any) -> tuple[Any, Any]:
        from ottla.formats.rows import decoded

        return decoded(values, self._row_of, self.arrow_type)


def _with_text(found: Any, name: str) -> Any:
    """The type with a field more."""
    from ottla.arrow.library import pa

    if not pa.types.is_struct(found):
        raise BadSpec("a rescue column stands beside the fields of a record, and the schema is none")
    if name in {one.name for one in found}:
        raise BadSpec(f"the rescue column {name!r} is a field of the schema: name another")
    return pa.struct([*found, pa.field(name, pa.string())])
