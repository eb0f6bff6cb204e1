"""Numbers for Prometheus: counters, gauges and time sums, and the text that a scrape reads.

The hot path pays one attribute add: a room asks the registry once for its series and keeps it, then writes
`bytes_in.value += n`. Everything else (names, labels, escaping, sorting) is done when someone scrapes. A gauge is a
call-back, so that what exists already (a queue's length, a log's size) is not kept twice.

    metrics = Registry()
    messages = metrics.counters("kafka_server_brokertopicmetrics_messagesin_total", "Records appended.", ("topic",))
    orders = messages.labels("orders")
    orders.value += 1
    metrics.render()

One event loop writes; a scrape from another thread may see a sum and its count one request apart, which is harmless.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, Generic, TypeVar

from ottla.steps import Steps, at_once, pieces

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
#: Series in one family: a client that invents topic names must not fill the memory. More share one series.
SERIES_MAX: Final = 20_000
#: The labels' values of the series that takes what is over the limit.
OVERFLOW: Final = "_other"

Labels = tuple[str, ...]
Collect = Callable[[], Iterable[tuple[Labels, float]]]


class Counter:
    """Rises only; callers add to `value`."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0


class Timer:
    """How many, and how long together: a summary without quantiles. Callers use `observe`, or add to both fields."""

    __slots__ = ("count", "total")

    def __init__(self) -> None:
        self.count: int = 0
        self.total: float = 0.0

    def observe(self, amount: float) -> None:
        self.count += 1
        self.total += amount


class Histogram:
    """Counts in fixed buckets, for latencies whose tail matters; `observe` costs one binary search."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        assert bounds == tuple(sorted(set(bounds)))
        self.bounds = bounds
        #: One more than there are bounds: the last is above them all.
        self.counts: list[int] = [0] * (len(bounds) + 1)
        self.total: float = 0.0

    def observe(self, amount: float) -> None:
        self.counts[bisect_left(self.bounds, amount)] += 1
        self.total += amount


Series = TypeVar("Series", Counter, Timer, Histogram)


class Family(Generic[Series]):
    """All series of one name, by the values of their labels."""

    __slots__ = ("_make", "_series", "help", "label_names", "name", "type")

    def __init__(self, name: str, type_: str, help_: str, label_names: Labels, make: Callable[[], Series]) -> None:
        self.name = name
        self.type = type_
        self.help = help_
        self.label_names = label_names
        self._make: Callable[[], Series] = make
        self._series: dict[Labels, Series] = {}

    def labels(self, *values: str) -> Series:
        """The series of these label values, made on first use: keep it."""
        assert len(values) == len(self.label_names), (self.name, values)
        series = self._series.get(values)
        if series is None:
            if len(self._series) >= SERIES_MAX:
                values = (OVERFLOW,) * len(self.label_names)
                if values in self._series:
                    return self._series[values]
            series = self._series[values] = self._make()
        return series

    def remove(self, *values: str) -> None:
        """Forgets a series: a deleted topic is not scraped for ever. Its holders add into the void."""
        self._series.pop(values, None)

    def samples(self) -> Iterator[str]:
        for values, series in sorted(self._series.items(), key=lambda item: item[0]):
            yield from _samples(self.name, _pairs(self.label_names, values), series)


class CollectedFamily:
    """A family that is read when scraped: `collect` gives the values of the labels and the number, for each series."""

    __slots__ = ("collect", "help", "label_names", "name", "type")

    def __init__(self, name: str, type_: str, help_: str, label_names: Labels, collect: Collect) -> None:
        self.name = name
        self.type = type_
        self.help = help_
        self.label_names = label_names
        self.collect = collect

    def samples(self) -> Iterator[str]:
        try:
            found = {tuple(values): number for values, number in islice(self.collect(), SERIES_MAX)}
        except Exception:
            return  # One call-back that fails must not cost the whole scrape.
        for values, number in sorted(found.items()):
            yield f"{self.name}{_braces(_pairs(self.label_names, values))} {_number(number)}"


class Registry:
    """The metrics of one broker (or client): made by the composition root and passed in, never a global.

    A second request for a name gives the same family, so that two rooms may feed one metric.
    """

    def __init__(self) -> None:
        self._families: dict[str, Family[Counter] | Family[Timer] | Family[Histogram] | CollectedFamily] = {}

    def counter(self, name: str, help_: str) -> Counter:
        return self.counters(name, help_, ()).labels()

    def counters(self, name: str, help_: str, label_names: Labels) -> Family[Counter]:
        return self._family(name, "counter", help_, label_names, Counter)

    def timer(self, name: str, help_: str) -> Timer:
        return self.timers(name, help_, ()).labels()

    def timers(self, name: str, help_: str, label_names: Labels) -> Family[Timer]:
        return self._family(name, "summary", help_, label_names, Timer)

    def histogram(self, name: str, help_: str, bounds: tuple[float, ...]) -> Histogram:
        return self.histograms(name, help_, (), bounds).labels()

    def histograms(self, name: str, help_: str, label_names: Labels, bounds: tuple[float, ...]) -> Family[Histogram]:
        return self._family(name, "histogram", help_, label_names, lambda: Histogram(bounds))

    def gauge(self, name: str, help_: str, read: Callable[[], float]) -> None:
        """One number without labels, read when scraped."""
        self.gauges(name, help_, (), lambda: [((), read())])

    def gauges(self, name: str, help_: str, label_names: Labels, collect: Collect, *, type_: str = "gauge") -> None:
        """Numbers that exist already elsewhere (a partition's size), read when scraped. Asking again replaces them.

        `type_` is "counter" for what only rises.
        """
        _check_names(name, label_names)
        assert isinstance(self._families.get(name), CollectedFamily | None), name
        self._families[name] = CollectedFamily(name, type_, help_, label_names, collect)

    def _family(
        self, name: str, type_: str, help_: str, label_names: Labels, make: Callable[[], Series]
    ) -> Family[Series]:
        known = self._families.get(name)
        if known is None:
            _check_names(name, label_names)
            family = Family(name, type_, help_, label_names, make)
            self._families[name] = family
            return family
        assert (known.type, known.label_names) == (type_, label_names), name
        return known  # type: ignore[return-value]

    def render(self) -> str:
        """Prometheus' text format 0.0.4, families and series in a fixed order."""
        return at_once(self.rendering())

    def rendering(self) -> Steps[str]:
        """The same in steps: ten thousand partitions make forty thousand lines."""
        lines: list[str] = []
        for name in sorted(self._families):
            family = self._families[name]
            lines.append(f"# HELP {name} {_escape_help(family.help)}")
            lines.append(f"# TYPE {name} {family.type}")
            for piece in pieces(family.samples()):
                lines += piece
                yield
        lines.append("")
        return "\n".join(lines)


def _samples(name: str, pairs: list[str], series: Counter | Timer | Histogram) -> Iterator[str]:
    labels = _braces(pairs)
    if isinstance(series, Counter):
        yield f"{name}{labels} {_number(series.value)}"
        return
    count = 0
    if isinstance(series, Timer):
        count = series.count
    else:
        for bound, in_bucket in zip((*series.bounds, float("inf")), series.counts, strict=True):
            count += in_bucket
            bucket = _braces([*pairs, f'le="{_number(bound)}"'])
            yield f"{name}_bucket{bucket} {count}"
    yield f"{name}_sum{labels} {_number(series.total)}"
    yield f"{name}_count{labels} {count}"


def _pairs(label_names: Labels, values: Labels) -> list[str]:
    """A label without a value is none, to Prometheus as well: a family may have one series without it."""
    pairs = zip(label_names, values, strict=True)
    return [f'{label}="{_escape_value(value)}"' for label, value in pairs if value]


def _braces(pairs: list[str]) -> str:
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _number(value: float) -> str:
    if isinstance(value, int):  # bool as well
        return str(int(value))
    if value != value:  # noqa: PLR0124 - NaN is the one number that differs from itself
        return "NaN"
    if value in {float("inf"), float("-inf")}:
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def _escape_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _escape_value(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _check_names(name: str, label_names: Labels) -> None:
    assert _is_name(name), name
    assert all(_is_name(label) and ":" not in label for label in label_names), label_names


def _is_name(name: str) -> bool:
    return name.isascii() and name.replace(":", "_").isidentifier()
