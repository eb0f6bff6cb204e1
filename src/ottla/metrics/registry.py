"""The metrics of one broker, by name: what rooms count, and what is read when somebody scrapes.

The hot path pays one attribute add: a room asks the registry once for its series and keeps it, then writes
`bytes_in.value += n`. Everything else (names, labels, escaping) is done when someone scrapes. What exists already
elsewhere (a queue's length, a log's size) is not kept twice: a call-back reads it then.

A scrape of ten thousand partitions makes a hundred thousand lines, so it is made in steps, and so is what call-backs
read: they are iterators, each element of which takes a microsecond or two. One that has nothing to say of an element
yields None. Between two steps anything may happen, so that they go through a copy of what may change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum, auto
from typing import Final, Protocol, TypeVar

from ottla.metrics.buckets import Buckets, Summary
from ottla.metrics.text import check_names, head, labelled, number, sample
from ottla.steps import PIECE, Steps, at_once

#: Series in one family: a client that invents topic names must not fill the memory. More share one series, or are
#: left out where they are read.
SERIES_MAX: Final = 20_000
#: Characters of one family's lines: a group's name may have 32 KB.
FAMILY_CHARACTERS_MAX: Final = 8 * 1024 * 1024
#: Families of which a scrape has left series out.
CUT: Final = "ottla_metrics_cut_families"
#: The labels' values of the series that takes what is over the limit.
OVERFLOW: Final = "_other"
#: A chunk of a scrape: what is handed to a socket in one call.
CHUNK_CHARACTERS: Final = 64 * 1024

T = TypeVar("T")
Labels = tuple[str, ...]
#: Reads numbers that exist elsewhere: the values of the labels, and whatever a series of the family is.
Reading = Callable[[], Iterable[tuple[Labels, T] | None]]
#: Lines without their ends, and None where a step brought none.
Lines = Iterator[str | None]


class Counter:
    """Rises only; callers add to `value`."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0


class Family(Protocol):
    @property
    def type(self) -> str: ...

    @property
    def help(self) -> str: ...

    @property
    def label_names(self) -> Labels: ...

    def lines(self) -> Lines: ...


class CounterFamily:
    """All counters of one name, by the values of their labels."""

    __slots__ = ("_series", "help", "label_names", "name", "type")

    def __init__(self, name: str, help_: str, label_names: Labels) -> None:
        self.name = name
        self.type = "counter"
        self.help = help_
        self.label_names = label_names
        self._series: dict[Labels, Counter] = {}

    def labels(self, *values: str) -> Counter:
        """The series of these label values, made on first use: keep it."""
        assert len(values) == len(self.label_names), (self.name, values)
        series = self._series.get(values)
        if series is None:
            if len(self._series) >= SERIES_MAX:
                values = (OVERFLOW,) * len(self.label_names)
                if values in self._series:
                    return self._series[values]
            series = self._series[values] = Counter()
        return series

    def remove(self, *values: str) -> None:
        """Forgets a series: a deleted topic is not scraped for ever. Its holders add into the void."""
        self._series.pop(values, None)

    def lines(self) -> Lines:
        for values, series in sorted(self._series.items(), key=lambda item: item[0]):
            yield sample(self.name, labelled(self.label_names, values), series.value)


class ReadFamily:
    """A family that is read when scraped; `shown` makes the lines of one series."""

    __slots__ = ("_read", "_shown", "help", "label_names", "name", "type")

    def __init__(
        self, name: str, type_: str, help_: str, label_names: Labels, read: Reading[T], shown: Shown[T]
    ) -> None:
        self.name = name
        self.type = type_
        self.help = help_
        self.label_names = label_names
        self._read = read
        self._shown = shown

    def lines(self) -> Lines:
        seen: set[Labels] = set()
        for found in self._read():
            if found is None:
                yield None
                continue
            values, series = found
            # Two samples of the same labels would cost the whole scrape.
            if values not in seen:
                if len(seen) == SERIES_MAX:
                    raise _TooManySeries
                seen.add(values)
                yield from self._shown(self.name, labelled(self.label_names, values), series)


Shown = Callable[[str, str, T], Iterable[str]]


class SumFamily:
    """One number without labels, which takes a look at very many things: the sum of what `read` yields."""

    __slots__ = ("_read", "help", "label_names", "name", "type")

    def __init__(self, name: str, help_: str, read: Callable[[], Iterable[float]]) -> None:
        self.name = name
        self.type = "gauge"
        self.help = help_
        self.label_names: Labels = ()
        self._read = read

    def lines(self) -> Lines:
        total: float = 0
        for amount in self._read():
            total += amount
            yield None
        yield sample(self.name, "", total)


class Registry:
    """The metrics of one broker (or client): made by the composition root and passed in, never a global.

    A second request for a name gives the same family, so that two rooms may feed one metric.
    """

    def __init__(self) -> None:
        self._families: dict[str, Family] = {}
        #: Scrapes that were begun: what several families show of the same things is worked out once for each.
        self.scrapes = 0

    @property
    def families(self) -> dict[str, tuple[str, Labels]]:
        """Type and names of labels of each family, by its name."""
        return {name: (family.type, family.label_names) for name, family in sorted(self._families.items())}

    def counter(self, name: str, help_: str) -> Counter:
        return self.counters(name, help_, ()).labels()

    def counters(self, name: str, help_: str, label_names: Labels) -> CounterFamily:
        known = self._families.get(name)
        if known is None:
            check_names(name, label_names)
            known = self._families[name] = CounterFamily(name, help_, label_names)
        assert isinstance(known, CounterFamily), name
        assert known.label_names == label_names, name
        return known

    def gauge(self, name: str, help_: str, read: Callable[[], float]) -> None:
        """One number without labels, read when scraped; a microsecond or two."""
        self.gauges(name, help_, (), lambda: [((), read())])

    def sum(self, name: str, help_: str, read: Callable[[], Iterable[float]]) -> None:
        """One number without labels, the sum of many."""
        self._take(SumFamily(name, help_, read), name)

    def gauges(self, name: str, help_: str, label_names: Labels, read: Reading[float], *, type_: str = "gauge") -> None:
        """Numbers that exist already elsewhere (a partition's size), read when scraped. Asking again replaces them.

        `type_` is "counter" for what only rises.
        """
        self._take(ReadFamily(name, type_, help_, label_names, read, _plain), name)

    def histograms(self, name: str, help_: str, label_names: Labels, read: Reading[Buckets]) -> None:
        self._take(ReadFamily(name, "histogram", help_, label_names, read, _histogram), name)

    def summaries(self, name: str, help_: str, label_names: Labels, read: Reading[Summary]) -> None:
        self._take(ReadFamily(name, "summary", help_, label_names, read, _summary), name)

    def _take(self, family: Family, name: str) -> None:
        check_names(name, family.label_names)
        assert not isinstance(self._families.get(name), CounterFamily), name
        self._families[name] = family

    def render(self) -> str:
        """Prometheus' text format 0.0.4, families in a fixed order."""
        return b"".join(at_once(self.rendering())).decode()

    def rendering(self) -> Steps[list[bytes]]:
        """The same in steps, and in chunks: nobody wants it in one piece of ten megabytes."""
        self.scrapes += 1
        chunks: list[bytes] = []
        lines: list[str] = []
        characters = cut = 0
        for name in sorted(self._families):
            family = self._families[name]
            lines.append(head(name, family.type, family.help))
            source, left = family.lines(), FAMILY_CHARACTERS_MAX
            end: _End | None = None
            while end is None:
                if left <= 0:
                    end = _End.CUT
                    break
                begun = len(lines)
                end = _taken(source, lines)
                size = sum(map(len, lines[begun:]))
                left -= size
                characters += size
                if characters >= CHUNK_CHARACTERS:
                    chunks.append(_encoded(lines))
                    characters = 0
                yield
            cut += end is _End.CUT
        lines.append(head(CUT, "gauge", "Families of which this scrape left series out."))
        lines.append(sample(CUT, "", cut))
        chunks.append(_encoded(lines))
        return chunks


class _End(Enum):
    WHOLE = auto()
    #: There are more series than are shown, or reading them has failed.
    CUT = auto()


class _TooManySeries(Exception):
    pass


def _taken(source: Lines, lines: list[str]) -> _End | None:
    """Moves some lines over; says whether these were the last."""
    try:
        for _ in range(PIECE):
            line = next(source)
            if line is not None:
                lines.append(line)
    except StopIteration:
        return _End.WHOLE
    except Exception:  # too many series; or a call-back that fails, which must not cost the whole scrape
        return _End.CUT
    return None


def _encoded(lines: list[str]) -> bytes:
    """And forgets them."""
    lines.append("")
    chunk = "\n".join(lines).encode()
    lines.clear()
    return chunk


def _plain(name: str, labels: str, value: float) -> Iterable[str]:
    return (sample(name, labels, value),)


def _histogram(name: str, labels: str, buckets: Buckets) -> Iterator[str]:
    before = f"{labels}," if labels else ""
    below = 0
    for bound, below in buckets.cumulative():
        yield sample(f"{name}_bucket", f'{before}le="{number(bound)}"', below)
    yield sample(f"{name}_sum", labels, buckets.total)
    yield sample(f"{name}_count", labels, below)


def _summary(name: str, labels: str, summary: Summary) -> Iterator[str]:
    before = f"{labels}," if labels else ""
    for share, amount in summary.quantiles.items():
        yield sample(name, f'{before}quantile="{share}"', amount)
    yield sample(f"{name}_sum", labels, summary.total)
    yield sample(f"{name}_count", labels, summary.observed)
