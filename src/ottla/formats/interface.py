"""What every format is: from bytes to values, and back, one by one or as a column.

A column's bad record is a null and a text: it never fails the rows beside it. What is no record's fault (a registry
that is away) is raised, so that nobody takes good rows for bad ones; the same call may succeed later.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, TypeAlias

#: A record of more bytes is bad. What a value takes in memory is a multiple of its bytes that its schema decides, so
#: that this bounds it; topics with larger records are hardly ever seen (Kafka's default is 1 MiB).
RECORD_BYTES_MAX: Final = 64 * 1024 * 1024

#: Fetches what a coder lacks; it may wait for a registry.
Load: TypeAlias = Callable[[], None]


class Decoder(ABC):
    """Bytes to values. It is pickled with the schema that its column has, so that all tasks of a job have the same."""

    @property
    @abstractmethod
    def arrow_type(self) -> Any:
        """The `pyarrow.DataType` of the decoded column."""

    @abstractmethod
    def decode(self, values: Any) -> tuple[Any, Any]:
        """A binary `pyarrow.Array` as a column of `arrow_type`, and as long a one of texts: what is wrong with a row.

        A null stays null, and nothing is wrong with it. Raises RegistryUnreachable and LibraryMissing, which are no
        record's fault.
        """

    @abstractmethod
    def decode_one(self, data: bytes) -> Any:
        """The value of one record; raises BadRecord."""

    def missing_for(self, data: bytes) -> Load | None:
        """What has to be fetched before `decode_one` of these bytes waits for nobody; None where nothing has."""
        return None


class Encoder(ABC):
    """Values to bytes."""

    @abstractmethod
    def encode(self, values: Any) -> Any:
        """A column as a binary `pyarrow.Array`; a null stays null. Raises BadValue, which names the row."""

    @abstractmethod
    def encode_one(self, value: Any) -> bytes:
        """The bytes of one value; raises BadValue."""

    def for_topic(self, topic: str) -> Encoder:
        """The same for another topic, whose subject may have another schema."""
        return self

    def missing_for(self, value: Any) -> Load | None:
        """What has to be fetched or registered before `encode_one` of this value waits for nobody."""
        return None
