"""What the operators of expressions mean. Nothing here raises: what makes no sense is false, or null."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any, Final

#: Text that is no longer than this may be a number: longer digits are a key, and no sum needs them.
_NUMBER_CHARACTERS_MAX: Final = 400
#: Numbers grow no further than this, so that no product of products fills the memory.
_NUMBER_BITS_MAX: Final = 4096


def is_number(value: Any) -> bool:
    """JSON's true and false are no numbers, though Python counts with them."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, bool) != isinstance(other, bool):
        return False
    return bool(one == other)


def different(one: Any, other: Any) -> bool:
    return not same(one, other)


def ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """Numbers among each other, and text among itself; anything else has no order."""

    def compared(one: Any, other: Any) -> bool:
        if (is_number(one) and is_number(other)) or (isinstance(one, str) and isinstance(other, str)):
            return compare(one, other)
        return False

    return compared


def inside(item: Any, whole: Any) -> bool:
    """A piece of a text, an item of a list, a name of an object or of the headers."""
    if isinstance(whole, str):
        return isinstance(item, str) and item in whole
    if isinstance(whole, list | tuple):
        return any(same(item, each) for each in whole)
    if isinstance(whole, dict):
        return isinstance(item, str) and item in whole
    return False


def outside(item: Any, whole: Any) -> bool:
    return not inside(item, whole)


def looked_up(whole: Any, name: Any) -> Any:
    """A field of an object, an item of a list (from the end where the number is negative); null where there is none."""
    if isinstance(whole, dict):
        return whole.get(name) if isinstance(name, str) else None
    if isinstance(whole, list) and isinstance(name, int) and not isinstance(name, bool):
        return whole[name] if -len(whole) <= name < len(whole) else None
    return None


def calculated(work: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def result(one: Any, other: Any) -> Any:
        if not (is_number(one) and is_number(other)) or not (_is_small(one) and _is_small(other)):
            return None
        try:
            return work(one, other)
        except (ZeroDivisionError, OverflowError):
            return None

    return result


def _is_small(value: int | float) -> bool:  # noqa: PYI041 - what is asked here is which of the two it is
    return not isinstance(value, int) or value.bit_length() <= _NUMBER_BITS_MAX


def negative(value: Any) -> Any:
    return -value if is_number(value) else None


# Functions.


def length(value: Any) -> Any:
    return len(value) if isinstance(value, str | bytes | list | dict) else None


def number(value: Any) -> Any:
    """What a text says as a number."""
    if is_number(value):
        return value
    if not isinstance(value, str) or len(value) > _NUMBER_CHARACTERS_MAX:
        return None
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return None


def lower(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else None


def upper(value: Any) -> Any:
    return value.upper() if isinstance(value, str) else None


def starts_with(value: Any, start: Any) -> bool:
    return isinstance(value, str) and isinstance(start, str) and value.startswith(start)


def ends_with(value: Any, end: Any) -> bool:
    return isinstance(value, str) and isinstance(end, str) and value.endswith(end)


def matcher(pattern: str) -> Callable[[Any], bool]:
    """Raises re.error."""
    search = re.compile(pattern).search
    return lambda value: isinstance(value, str) and search(value) is not None


LESS: Final = ordered(operator.lt)
LESS_OR_EQUAL: Final = ordered(operator.le)
MORE: Final = ordered(operator.gt)
MORE_OR_EQUAL: Final = ordered(operator.ge)
PLUS: Final = calculated(operator.add)
MINUS: Final = calculated(operator.sub)
TIMES: Final = calculated(operator.mul)
DIVIDED: Final = calculated(operator.truediv)
REMAINDER: Final = calculated(operator.mod)
