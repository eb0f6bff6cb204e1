"""Offsets as they are named on command lines: where reading begins or ends, or what is deleted.

    start, oldest, earliest, beginning   the first record that is there
    end, newest, latest                  behind the last one
    5210     5210:                       this offset
    +10                                  ten records behind the start
    -10                                  ten records before the end
    :end     5210:end     :5210     100:200   up to what is the end now, or up to just before an offset
    @2026-11-21T10:00                    the first record of that time or later
    @-1h                                 the first record of the last hour
    @FROM:TO                             from a time to just before another; TO may be `end`, or 1h: so long behind FROM

A time is ISO 8601, or milliseconds (ten digits: seconds) since 1970. Times without a zone are UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.cli.faults import UsageFault

if TYPE_CHECKING:
    from ottla.client.wire.cluster import Cluster
    from ottla.model import TopicPartition

    Offsets = dict[TopicPartition, int]

OFFSET_MAX = 2**63 - 1
#: More digits are too large in any case, and Python refuses to read thousands of them.
_DIGITS_MAX = 19
#: What the words stand for in requests for offsets; a time asks for the first record at or after it.
LATEST = -1
EARLIEST = -2

_WORDS = {
    **dict.fromkeys(("start", "oldest", "beginning", "earliest"), EARLIEST),
    **dict.fromkeys(("end", "newest", "latest"), LATEST),
}
_FORMS = "give start, end, a number, +N, -N, N:M, :end, @TIME or @FROM:TO"


class OffsetPoint(NamedTuple):
    """A place in each of several partitions. One of the first five is set."""

    word: int | None = None
    offset: int | None = None
    #: This many records before the end.
    before_end: int | None = None
    time_ms: int | None = None
    #: This many records behind the start.
    after_start: int | None = None
    #: Where to stop, exclusive: at a time, at an offset, or at what is the end now.
    until_ms: int | None = None
    until_offset: int | None = None
    to_end: bool = False

    @property
    def has_end(self) -> bool:
        return self.until_ms is not None or self.until_offset is not None or self.to_end


def parse_place(text: str) -> OffsetPoint:
    word = _WORDS.get(text.strip().lower())
    if word is not None:
        return OffsetPoint(word=word)
    if text.startswith("@"):
        return _times(text[1:])
    if text.startswith("s@"):  # kcat's: from a time, and up to one
        return _times(text[2:])
    if text.startswith("e@"):
        return _times(f":{text[2:]}")
    sign, number = text[:1], _number(text[1:])
    if sign in {"-", "+"} and number is not None:
        return OffsetPoint(before_end=number) if sign == "-" else OffsetPoint(after_start=number)
    place = _range(text)
    if place is None:
        raise UsageFault(f"'{_shortened(text)}' is not an offset: {_FORMS}")
    return place


def _range(text: str) -> OffsetPoint | None:
    """`5`, `5:`, `:5`, `5:9`, `5:end`, `:end`; rpk takes a dash for the colon as well."""
    whole = _number(text)
    if whole is not None:
        return OffsetPoint(offset=whole)
    first, colon, second = text.partition(":")
    if not colon:
        first, colon, second = text.partition("-")
    start = _number(first) if first else None
    if not colon or (first and start is None) or not (first or second):
        return None
    begun = OffsetPoint(word=EARLIEST) if start is None else OffsetPoint(offset=start)
    if not second:
        return begun
    if second == "end":
        return begun._replace(to_end=True)
    until = _number(second)
    if until is not None and start is not None and until <= start:
        raise UsageFault(f"'{_shortened(text)}' has nothing in it: the second offset is not behind the first")
    return None if until is None else begun._replace(until_offset=until)


def _number(digits: str) -> int | None:
    """0 to OFFSET_MAX, or None."""
    if not (digits.isascii() and digits.isdigit()):
        return None
    significant = digits.lstrip("0") or "0"
    return int(significant) if len(significant) <= _DIGITS_MAX and int(significant) <= OFFSET_MAX else None


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}..."


def _times(text: str) -> OffsetPoint:
    """One time, or two with a colon between them: ISO times have colons of their own."""
    now_ms = _now_ms()
    whole = _moment(text, now_ms)
    if whole is not None:
        return OffsetPoint(time_ms=whole)
    for at, character in enumerate(text):
        if character != ":":
            continue
        first, second = text[:at], text[at + 1 :].removeprefix("@")
        start = 0 if not first else _moment(first, now_ms)
        if start is None:
            continue
        if second == "end":
            return OffsetPoint(time_ms=start, to_end=True)
        # So long behind a time; but where both are durations, they count from now.
        is_time = bool(first) and parse_time(first) is not None
        end = None if not second else _moment(second, start if is_time else now_ms)
        if second and end is None:
            continue
        if end is not None and end < start:
            raise UsageFault(f"@{_shortened(text)}: the second time is before the first")
        return OffsetPoint(time_ms=start, until_ms=end)
    raise UsageFault(
        f"'@{_shortened(text)}' is not a time: give ISO 8601 (2026-11-21T10:00), milliseconds since 1970, or -1h"
    )


def _now_ms() -> int:
    import time

    return time.time_ns() // 1_000_000


def _moment(text: str, base_ms: int) -> int | None:
    """A time; or a duration (1h30m, -10m) from another."""
    found = parse_time(text)
    if found is not None:
        return found
    from ottla.durations import duration_ms

    try:
        by_ms = duration_ms(text.removeprefix("-"))
    except ValueError:
        return None
    return max(0, base_ms + (-by_ms if text.startswith("-") else by_ms))


def parse_time(text: str) -> int | None:
    """Milliseconds since 1970, or None if the text is no time."""
    # ISO 8601 has a form without separators, 20261121: eight digits that begin a plausible year are a date.
    is_number = text.isascii() and text.isdigit()
    if not is_number or len(text) == 8:
        return _iso_ms(text)
    number = _number(text)
    # Ten digits are a time of these decades in seconds; as milliseconds they would be one of 1970.
    return number * 1000 if number is not None and len(text) == 10 else number


def _iso_ms(text: str) -> int | None:
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return _number(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    # No record is older than that, and numbers below it stand for LATEST and its like.
    return max(0, round(moment.timestamp() * 1000))


async def resolved(cluster: Cluster, places: Mapping[TopicPartition, OffsetPoint], isolation: int = 0) -> Offsets:
    """The offset that each place is now. A time after the last record is the end."""
    asked = {tp: place.word if place.word is not None else place.time_ms for tp, place in places.items()}
    listed = await offsets_of(cluster, {tp: code for tp, code in asked.items() if code is not None}, isolation)
    late = [tp for tp, offset in listed.items() if offset < 0]
    backwards = [tp for tp, place in places.items() if place.before_end is not None]
    ends = await offsets_of(cluster, dict.fromkeys([*late, *backwards], LATEST), isolation)
    forwards = [tp for tp, place in places.items() if place.after_start is not None]
    starts = await offsets_of(cluster, dict.fromkeys([*backwards, *forwards], EARLIEST), isolation)
    found: Offsets = {}
    for tp, place in places.items():
        if place.offset is not None:
            found[tp] = place.offset
        elif place.after_start is not None:
            found[tp] = starts[tp] + place.after_start
        elif place.before_end is not None:
            found[tp] = max(starts[tp], ends[tp] - place.before_end)
        else:
            found[tp] = ends.get(tp, listed[tp])
    return found


async def offsets_of(cluster: Cluster, asked: Mapping[TopicPartition, int], isolation: int = 0) -> Offsets:
    """By EARLIEST, LATEST or a time; -1 where nothing is as young as that."""
    from ottla.client.wire.offsets import list_offsets

    listed = await list_offsets(cluster, asked, isolation_level=isolation) if asked else {}
    return {tp: one.offset for tp, one in listed.items()}
