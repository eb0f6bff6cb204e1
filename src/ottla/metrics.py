"""Numbers for Prometheus: counters, gauges and time sums, and the text that a scrape reads.

The hot path pays one attribute add: a room asks the registry once for its series and keeps it, then writes
`bytes_in.value += n`. Everything else (names, labels, escaping, sorting) is done when someone scrapes. A gauge is a
call-back, so that what exists already (a queue's length, a log's size) is not kept twice.

    metrics = Registry()
    messages = metrics.counter("kafka_server_brokertopicmetrics_messagesin_total", "Records appended.", ("topic",))
    orders = messages.labels("orders")
    orders.value += 1
    metrics.render()

One event loop writes; a scrape from another thread may see a sum and its count one request apart, which is harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
#: Series in one family: a client that invents topic names must not fill the memory. More share one series.
SERIES_MAX: Final = 20_000
#: The labels' values of the series that takes what is over the limit.
OVERFLOW: Final = "_other"

Labels = tuple[str, ...]


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
        from bisect import bisect_left

        self.counts[bisect_left(self.bounds, amount)] += 1
        self.total += amount


class Gauge:
    """Reads a number when asked; a call-back that fails leaves its series out of that scrape."""

    __slots__ = ("read",)

    def __init__(self, read: Callable[[], float]) -> None:
        self.read = read


Series = TypeVar("Series", Counter, Timer, Histogram, Gauge)


class Family(Generic[Series]):
    """All series of one name, by the values of their labels."""

    __slots__ = ("_make", "_series", "help", "label_names", "name", "type")

    def __init__(
        self, name: str, type_: str, help_: str, label_names: Labels, make: Callable[[], Series] | None
    ) -> None:
        self.name = name
        self.type = type_
        self.help = help_
        self.label_names = label_names
        self._make = make
        self._series: dict[Labels, Series] = {}

    def labels(self, *values: str) -> Series:
        """The series of these label values, made on first use: keep it."""
        assert len(values) == len(self.label_names), (self.name, values)
        assert self._make is not None, f"{self.name} is read through call-backs"
        series = self._series.get(values)
        if series is None:
            if len(self._series) >= SERIES_MAX:
                values = (OVERFLOW,) * len(self.label_names)
                if values in self._series:
                    return self._series[values]
            series = self._series[values] = self._make()
        return series

    def attach(self, series: Series, *values: str) -> bool:
        """Shows a series that its owner made. False, and not shown, where the family is full."""
        assert len(values) == len(self.label_names), (self.name, values)
        if values not in self._series and len(self._series) >= SERIES_MAX:
            return False
        self._series[values] = series
        return True

    def remove(self, *values: str) -> None:
        """Forgets a series: a deleted topic is not scraped for ever."""
        self._series.pop(values, None)

    def items(self) -> list[tuple[Labels, Series]]:
        return sorted(self._series.items(), key=lambda item: item[0])


AnyFamily = Family[Counter] | Family[Timer] | Family[Histogram] | Family[Gauge]


class Registry:
    """The metrics of one broker (or client): made by the composition root and passed in, never a global."""

    def __init__(self) -> None:
        self._families: dict[str, AnyFamily] = {}

    def counter(self, name: str, help_: str, label_names: Labels = ()) -> Family[Counter]:
        family: Family[Counter] = Family(name, "counter", help_, label_names, Counter)
        return self._add(family)

    def timer(self, name: str, help_: str, label_names: Labels = ()) -> Family[Timer]:
        family: Family[Timer] = Family(name, "summary", help_, label_names, Timer)
        return self._add(family)

    def histogram(
        self, name: str, help_: str, bounds: tuple[float, ...], label_names: Labels = ()
    ) -> Family[Histogram]:
        family: Family[Histogram] = Family(name, "histogram", help_, label_names, lambda: Histogram(bounds))
        return self._add(family)

    def gauges(self, name: str, help_: str, label_names: Labels = ()) -> Family[Gauge]:
        """A family of gauges with labels; `attach(Gauge(read), ...)` adds one."""
        family: Family[Gauge] = Family(name, "gauge", help_, label_names, None)
        return self._add(family)

    def gauge(self, name: str, help_: str, read: Callable[[], float]) -> None:
        """One gauge without labels."""
        self.gauges(name, help_).attach(Gauge(read))

    def _add(self, family: Family[Series]) -> Family[Series]:
        """A second request for a name gives the same family, so that two rooms may feed one metric."""
        known = self._families.get(family.name)
        if known is None:
            assert _is_name(family.name), family.name
            assert all(_is_name(label) and ":" not in label for label in family.label_names), family.label_names
            self._families[family.name] = family  # type: ignore[assignment]
            return family
        assert (known.type, known.label_names) == (family.type, family.label_names), family.name
        return known  # type: ignore[return-value]

    def render(self) -> str:
        """Prometheus' text format 0.0.4, families and series in a fixed order."""
        lines: list[str] = []
        for name in sorted(self._families):
            family = self._families[name]
            lines.append(f"# HELP {name} {_escape_help(family.help)}")
            lines.append(f"# TYPE {name} {family.type}")
            for values, series in family.items():
                lines.extend(_samples(name, family.label_names, values, series))
        lines.append("")
        return "\n".join(lines)


def _samples(
    name: str, label_names: Labels, values: Labels, series: Counter | Timer | Histogram | Gauge
) -> Iterable[str]:
    pairs = [f'{label}="{_escape_value(value)}"' for label, value in zip(label_names, values, strict=True)]
    labels = _braces(pairs)
    if isinstance(series, Counter):
        yield f"{name}{labels} {_number(series.value)}"
    elif isinstance(series, Timer):
        yield f"{name}_sum{labels} {_number(series.total)}"
        yield f"{name}_count{labels} {series.count}"
    elif isinstance(series, Histogram):
        seen = 0
        for bound, count in zip((*series.bounds, float("inf")), series.counts, strict=True):
            seen += count
            le = 'le="%s"' % _number(bound)
            yield f"{name}_bucket{_braces([*pairs, le])} {seen}"
        yield f"{name}_sum{labels} {_number(series.total)}"
        yield f"{name}_count{labels} {seen}"
    else:
        try:
            number = _number(series.read())
        except Exception:  # noqa: BLE001 - one broken call-back must not cost the whole scrape
            return
        yield f"{name}{labels} {number}"


def _braces(pairs: list[str]) -> str:
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _number(value: float) -> str:
    if isinstance(value, int):
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


def _is_name(name: str) -> bool:
    return name.isascii() and name.replace(":", "_").isidentifier()
