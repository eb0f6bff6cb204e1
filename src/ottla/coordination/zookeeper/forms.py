"""What a message's fields are: kinds of fields, and forms, which are rows of them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from ottla.coordination.interface import Stat
from ottla.coordination.zookeeper.jute import JuteReader, JuteWriter

#: What ZooKeeper writes as an int64, five times, and so on: its Stat.
_STAT: Final = struct.Struct(">qqqqiiiqiiq")


class Kind(NamedTuple):
    read: Callable[[JuteReader], Any]
    write: Callable[[JuteWriter, Any], None]


class Form(NamedTuple):
    """A message's fields in order, and what they are made into."""

    make: Callable[..., Any]
    kinds: Sequence[Kind]

    def read(self, reader: JuteReader) -> Any:
        return self.make(*[kind.read(reader) for kind in self.kinds])

    def write(self, writer: JuteWriter, message: tuple[Any, ...]) -> None:
        # A message may have more fields than this form of it: SET_WATCHES is the beginning of SET_WATCHES2.
        for kind, field in zip(self.kinds, message, strict=False):
            kind.write(writer, field)


INT: Final = Kind(JuteReader.int32, JuteWriter.int32)
LONG: Final = Kind(JuteReader.int64, JuteWriter.int64)
BOOLEAN: Final = Kind(JuteReader.boolean, JuteWriter.boolean)
TEXT: Final = Kind(JuteReader.text, JuteWriter.text)
TEXTS: Final = Kind(JuteReader.texts, JuteWriter.texts)
DATA: Final = Kind(JuteReader.data, JuteWriter.data)
#: The last field of a handshake, which old peers do not send.
BOOLEAN_AT_END: Final = Kind(
    lambda reader: reader.boolean() if reader.remaining else None,
    lambda writer, value: None if value is None else writer.boolean(value),
)
#: A field, and also the whole of some answers.
STAT: Final = Kind(
    lambda reader: Stat._make(reader.fields(_STAT)),
    lambda writer, stat: writer.fields(_STAT, *stat),
)
