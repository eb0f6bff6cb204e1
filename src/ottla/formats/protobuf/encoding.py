"""Values to Protobuf: a message of the caller's own class, a mapping, or a column.

Maps are written in the order of their keys, so that equal keys of records are equal bytes.
"""

from __future__ import annotations

from typing import Any

from google.protobuf.message import EncodeError, Message
from google.protobuf.message_factory import GetMessageClass

from ottla.formats.errors import BadValue
from ottla.formats.framing import header, indexes
from ottla.formats.interface import Encoder, Load
from ottla.formats.protobuf.files import ProtobufSchema
from ottla.formats.protobuf.filling import Fill, Filling
from ottla.formats.source import SchemaSource


class ProtobufEncoder(Encoder):
    def __init__(self, source: SchemaSource[ProtobufSchema]) -> None:
        self._source = source
        self._prefix: bytes | None = None if source.framed else b""
        self._kind: Any = None
        self._fill: Fill | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return ProtobufEncoder, (self._source.pinned(),)

    def encode(self, values: Any) -> Any:
        from ottla.arrow.library import pa
        from ottla.formats.rows import rows_of

        rows: list[bytes | None] = []
        for number, value in enumerate(rows_of(values, "Python cannot hold it")):
            try:
                rows.append(None if value is None else self.encode_one(value))
            except BadValue as error:
                raise BadValue(error.message, number) from None
        return pa.array(rows, pa.binary())

    def encode_one(self, value: Any) -> bytes:
        self._load()
        assert self._prefix is not None
        assert self._fill is not None
        if isinstance(value, Message) and value.DESCRIPTOR.full_name == self._kind.DESCRIPTOR.full_name:
            message = value
        else:
            message = self._kind()
            try:
                self._fill(message, value)
            except RecursionError:
                raise BadValue("the value is nested too deep") from None
        try:
            body: bytes = message.SerializeToString(deterministic=True)
        except (EncodeError, ValueError) as error:
            raise BadValue(str(error)) from None
        return self._prefix + body

    def for_topic(self, topic: str) -> ProtobufEncoder:
        return ProtobufEncoder(self._source.for_topic(topic))

    def missing_for(self, value: Any) -> Load | None:
        return None if self._prefix is not None and self._fill is not None else self._load

    def _load(self) -> None:
        if self._fill is None:
            schema = self._source.column_schema()
            self._kind = GetMessageClass(schema.message)
            self._fill = Filling().of(schema.message)
        if self._prefix is None:
            path = self._source.column_schema().path()
            self._prefix = header(self._source.id_to_write()) + indexes(path)
