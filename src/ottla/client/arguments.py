"""What callers give to a client, checked before anything is done with it: an error names the argument.

What comes out is what the wire takes: ints that fit, headers as a tuple of names and bytes. Records without a
partition, a timestamp, headers or a call-back pay for none of this.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from math import inf, isnan
from operator import index
from typing import Any, Final, TypeAlias

from ottla.client.errors import BadArgument
from ottla.model import NO_EPOCH, TopicPartition
from ottla.records.builder import Headers

#: Headers as callers may write them: pairs of a name and bytes, in any order and as often as they like.
GivenHeaders: TypeAlias = Iterable[tuple[str, bytes | None]] | None

NO_HEADERS: Final[Headers] = ()
INT16_MAX: Final = 2**15 - 1
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
#: A string's length on the wire is an int16. Topics' names are shorter still, which brokers say themselves.
_NAME_BYTES_MAX: Final = 2**15 - 1
_NAME_SHOWN_MAX: Final = 80
#: Python refuses to write numbers of thousands of digits, and a float has none of hundreds.
_BITS_SHOWN_MAX: Final = 128


def checked_topic(topic: Any, what: str = "topic") -> str:
    """A name that can be asked for; whether a topic can have it is for the broker to say."""
    if not isinstance(topic, str):
        raise BadArgument(f"{what} must be a str, not {a_kind_of(topic)}")
    if not topic:
        raise BadArgument(f"{what} must not be empty")
    if len(topic) > _NAME_BYTES_MAX:
        raise BadArgument(f"{what} is a name of {len(topic)} characters: a topic's has 249 at most")
    _check_text(topic, f"{what} {topic[:_NAME_SHOWN_MAX]!a}")
    return topic


def checked_partition(partition: Any, what: str = "partition") -> int:
    return checked_integer(partition, what, INT32_MAX)


def checked_offset(offset: Any, what: str = "offset") -> int:
    return checked_integer(offset, what, INT64_MAX)


def checked_timestamp(timestamp: Any, what: str = "timestamp") -> int:
    return checked_integer(timestamp, what, INT64_MAX, wanted="milliseconds since 1970, as an int")


def checked_partitions(given: Any) -> list[TopicPartition]:
    """Topics and numbers, each pair in whatever holds two things."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise BadArgument(f"partitions must be a list of (topic, partition), not {a_kind_of(given)}")
    return [_topic_partition(pair, f"partitions[{number}]") for number, pair in enumerate(given)]


def _topic_partition(pair: Any, what: str) -> TopicPartition:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise BadArgument(f"{what} must be (topic, partition), not {a_kind_of(pair)}")
    topic, partition = pair
    return TopicPartition(
        checked_topic(topic, f"{what}: the topic"), checked_partition(partition, f"{what}: the partition")
    )


def checked_committable(tp: tuple[str, int], given: Any) -> tuple[int, str, int]:
    """An offset to commit, with what may stand beside it."""
    if not isinstance(given, tuple):
        given = (given,)
    if not 0 < len(given) <= 3:
        raise BadArgument(f"{tp[0]}-{tp[1]} must be an offset or (offset, metadata, leader epoch), not {given!r}")
    offset = checked_offset(given[0], f"{tp[0]}-{tp[1]}: the offset")
    metadata = checked_text(given[1] if len(given) > 1 else "", f"{tp[0]}-{tp[1]}: the metadata")
    epoch = given[2] if len(given) > 2 else NO_EPOCH
    what = f"{tp[0]}-{tp[1]}: the leader epoch"
    return offset, metadata, checked_integer(epoch, what, INT32_MAX, least=NO_EPOCH)


def checked_count(given: Any, what: str) -> int:
    """How many of something: at least one."""
    return checked_integer(given, what, INT32_MAX, least=1)


def checked_timeout_ms(given: Any, what: str = "timeout_ms") -> float | None:
    number = checked_number(given, what)
    if number is not None and not number >= 0:
        raise BadArgument(f"{what} must be at least 0, not {number}")
    return number


def checked_number(given: Any, what: str) -> float | None:
    """A length of time; one that is beyond all clocks is without end."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise BadArgument(f"{what} must be a number, not {a_kind_of(given)}")
    if isinstance(given, float) and isnan(given):
        raise BadArgument(f"{what} must be at least 0, not {given}")
    if isinstance(given, int) and given.bit_length() > _BITS_SHOWN_MAX:
        return inf if given > 0 else -inf
    return given


def checked_subscription(given: Any) -> list[str]:
    """One name, or several."""
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise BadArgument(f"topics must be a list of names, not {a_kind_of(given)}")
    names = [given] if isinstance(given, str) else list(given)
    if not names:
        raise BadArgument("subscribe takes the names of topics; unsubscribe ends it")
    return [checked_topic(name, f"topics[{number}]") for number, name in enumerate(names)]


def checked_pattern(given: Any) -> re.Pattern[str]:
    if not isinstance(given, str | re.Pattern):
        raise BadArgument(f"pattern must be a str or a compiled expression, not {a_kind_of(given)}")
    try:
        compiled = re.compile(given)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadArgument(f"pattern {str(given)[:_NAME_SHOWN_MAX]!r} is not a regular expression: {error}") from error
    if not isinstance(compiled.pattern, str):
        raise BadArgument("pattern must be an expression for str, not for bytes")
    return compiled


def check_call(call: Any, what: str) -> None:
    if not callable(call):
        raise BadArgument(f"{what} must be callable, not {a_kind_of(call)}")


def checked_headers(given: Any) -> Headers:
    """Names and bytes, the caller's no longer: what he changes afterwards is not changed in the record."""
    if given is None:
        return NO_HEADERS
    if isinstance(given, str | bytes | bytearray | Mapping) or not isinstance(given, Iterable):
        hint = ": give headers=list(them.items())" if isinstance(given, Mapping) else ""
        raise BadArgument(f"headers must be (name, value) pairs, not {a_kind_of(given)}{hint}")
    return tuple(_header(number, pair) for number, pair in enumerate(given))


def _header(number: int, pair: Any) -> tuple[str, bytes | None]:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise BadArgument(f"headers[{number}] must be a (name, value) pair, not {a_kind_of(pair)}")
    name, content = pair
    if not isinstance(name, str):
        raise BadArgument(f"headers[{number}]: the name must be a str, not {a_kind_of(name)}")
    _check_text(name, f"headers[{number}]: the name {name[:_NAME_SHOWN_MAX]!a}")
    if content is None or content.__class__ is bytes:
        return name, content
    what = f"headers[{number}]: the value of {name[:_NAME_SHOWN_MAX]!r}"
    if isinstance(content, bytes | bytearray | memoryview):
        try:
            return name, bytes(content)
        except ValueError as error:
            raise BadArgument(f"{what} cannot be read: {error}") from error
    raise BadArgument(f"{what} must be bytes or None, not {a_kind_of(content)}")


def checked_integer(given: Any, what: str, most: int, *, least: int = 0, wanted: str = "an int") -> int:
    if isinstance(given, bool):
        raise BadArgument(f"{what} must be {wanted}, not a bool")
    try:
        number = index(given)  # also numpy's
    except TypeError:
        raise BadArgument(f"{what} must be {wanted}, not {a_kind_of(given)}") from None
    if not least <= number <= most:
        said = number if number.bit_length() <= _BITS_SHOWN_MAX else "one of so many digits"
        raise BadArgument(f"{what} must be from {least} to {most}, not {said}")
    return number


def checked_text(given: Any, what: str) -> str:
    """What the wire takes for a string."""
    if not isinstance(given, str):
        raise BadArgument(f"{what} must be a str, not {a_kind_of(given)}")
    _check_text(given, f"{what} {given[:_NAME_SHOWN_MAX]!a}")
    size = len(given.encode())
    if size > _NAME_BYTES_MAX:
        raise BadArgument(f"{what} has {size} bytes: {_NAME_BYTES_MAX} at most can be sent")
    return given


def checked_items(given: Any, wanted: str) -> list[tuple[Any, Any]]:
    if not isinstance(given, Mapping):
        raise BadArgument(f"{wanted}, not {a_kind_of(given)}")
    return list(given.items())


def check_values(configs: Any) -> None:
    for name, value in checked_items(configs, "configs must be a mapping of names to values"):
        check_value(name, value)


def check_value(name: Any, value: Any) -> None:
    checked_text(name, "a configuration's name")
    if value is not None and not isinstance(value, str):
        raise BadArgument(f"the value of {name} must be a str or None, not {a_kind_of(value)}")
    if value is not None:
        checked_text(value, f"the value of {name}")


def _check_text(text: str, what: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadArgument(f"{what} is no text that UTF-8 can write") from None


def shown(value: Any) -> str:
    """A wrong value as a message has it."""
    try:
        text = repr(value)
    except ValueError:
        return "one of so many digits"
    return text if len(text) <= _NAME_SHOWN_MAX else f"{text[:_NAME_SHOWN_MAX]}..."


def a_kind_of(thing: Any) -> str:
    """Its type with an article, as a sentence has it."""
    name = type(thing).__name__
    if name in {"bytes", "NoneType"}:
        return "None" if thing is None else name
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
