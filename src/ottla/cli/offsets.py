"""Offsets as they are named on command lines: where reading begins or ends, or what is deleted.

    start, earliest, beginning     the first record that is there
    end, latest                    behind the last one
    5210                           this offset
    -10                            ten records before the end
    @2026-11-21T10:00              the first record of that time or later; a time is ISO 8601 or milliseconds since 1970
    @FROM:TO                       from a time to just before another

Times without a zone are UTC.
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

_WORDS = {"start": EARLIEST, "beginning": EARLIEST, "earliest": EARLIEST, "end": LATEST, "latest": LATEST}


class OffsetPoint(NamedTuple):
    """A place in each of several partitions. One of the four is set."""

    word: int | None = None
    offset: int | None = None
    #: This many records before the end.
    before_end: int | None = None
    time_ms: int | None = None
    #: With a time: where to stop, exclusive.
    until_ms: int | None = None


def parse_place(text: str) -> OffsetPoint:
    word = _WORDS.get(text.strip().lower())
    if word is not None:
        return OffsetPoint(word=word)
    if text.startswith("@"):
        return _times(text[1:])
    digits = text.removeprefix("-")
    number = _number(digits)
    if number is None:
        raise UsageFault(f"'{_shortened(text)}' is no offset: give start, end, a number, -N, @TIME or @FROM:TO")
    return OffsetPoint(before_end=number) if text.startswith("-") else OffsetPoint(offset=number)


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
    whole = parse_time(text)
    if whole is not None:
        return OffsetPoint(time_ms=whole)
    for at, character in enumerate(text):
        if character != ":":
            continue
        first, second = text[:at], text[at + 1 :].removeprefix("@")
        start = 0 if not first else parse_time(first)
        end = None if not second else parse_time(second)
        if start is None or (second and end is None):
            continue
        if end is not None and end < start:
            raise UsageFault(f"@{text}: the second time is before the first")
        return OffsetPoint(time_ms=start, until_ms=end)
    raise UsageFault(
        f"'@{_shortened(text)}' holds no time: give ISO 8601 (2026-11-21T10:00) or milliseconds since 1970"
    )


def parse_time(text: str) -> int | None:
    """Milliseconds since 1970, or None if the text is no time."""
    # ISO 8601 has a form without separators, 20261121: eight digits that begin a plausible year are a date.
    is_date = not (text.isascii() and text.isdigit()) or len(text) == 8
    return _iso_ms(text) if is_date else _number(text)


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
    starts = await offsets_of(cluster, dict.fromkeys(backwards, EARLIEST), isolation)
    found: Offsets = {}
    for tp, place in places.items():
        if place.offset is not None:
            found[tp] = place.offset
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
