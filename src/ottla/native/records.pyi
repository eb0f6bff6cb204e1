from typing import Any, TypeAlias, TypeVar

Buffer: TypeAlias = bytes | bytearray | memoryview

_T = TypeVar("_T", bound=tuple[Any, ...])

# All records of a payload, or None where one of them is not sound. `timestamp` is the broker's for all of them, or
# None; `place` is None where the kind has a `Record`'s fields, or topic, partition, type of timestamp and leader epoch
# where it has a `ConsumerRecord`'s.
def decode(
    kind: type[_T],
    payload: bytes,
    count: int,
    base_offset: int,
    base_timestamp: int,
    timestamp: int | None,
    place: tuple[str, int, int, int] | None,
    /,
) -> list[_T] | None: ...

# A record without headers.
def encode(offset_delta: int, timestamp_delta: int, key: Buffer | None, value: Buffer | None, /) -> bytes: ...
