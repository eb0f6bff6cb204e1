"""The registry and Prometheus' text."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from ottla.metrics import OVERFLOW, Buckets, Registry, Summary
from ottla.metrics import registry as registry_module
from ottla.metrics.registry import CHUNK_CHARACTERS, CUT
from ottla.steps import PIECE, at_once


def samples(registry: Registry) -> list[str]:
    """All lines of samples but those of the registry itself."""
    lines = registry.render().splitlines()
    return [line for line in lines if not line.startswith(("#", CUT))]


def test_a_counter_is_one_attribute_and_one_line() -> None:
    registry = Registry()
    messages = registry.counter("kafka_server_brokertopicmetrics_messagesin_total", "Records appended.")
    messages.value += 3
    messages.value += 1
    assert registry.render() == (
        "# HELP kafka_server_brokertopicmetrics_messagesin_total Records appended.\n"
        "# TYPE kafka_server_brokertopicmetrics_messagesin_total counter\n"
        "kafka_server_brokertopicmetrics_messagesin_total 4\n"
        "# HELP ottla_metrics_cut_families Families of which this scrape left series out.\n"
        "# TYPE ottla_metrics_cut_families gauge\n"
        "ottla_metrics_cut_families 0\n"
    )


def test_families_and_series_come_in_a_fixed_order() -> None:
    registry = Registry()
    by_topic = registry.counters("b_total", "B.", ("topic", "partition"))
    by_topic.labels("z", "0").value += 1
    by_topic.labels("a", "1").value += 2
    registry.gauge("a", "A.", lambda: 7)
    assert samples(registry) == ["a 7", 'b_total{topic="a",partition="1"} 2', 'b_total{topic="z",partition="0"} 1']


def test_the_same_labels_are_the_same_series_and_the_same_name_the_same_family() -> None:
    registry = Registry()
    first = registry.counters("x_total", "X.", ("topic",)).labels("t")
    assert registry.counters("x_total", "X.", ("topic",)).labels("t") is first
    with pytest.raises(AssertionError):
        registry.gauges("x_total", "X.", ("topic",), list)
    with pytest.raises(AssertionError):
        registry.counters("x_total", "X.", ("other",))


def test_values_of_labels_and_help_are_escaped() -> None:
    registry = Registry()
    registry.counters("x_total", "two\nlines \\", ("topic",)).labels('a"b\\c\nd').value += 1
    text = registry.render()
    assert "# HELP x_total two\\nlines \\\\\n" in text
    assert 'x_total{topic="a\\"b\\\\c\\nd"} 1\n' in text


def test_a_summary_has_quantiles_a_sum_and_a_count() -> None:
    registry = Registry()
    produce = Summary({"0.50": 1.5, "0.99": 3}, observed=2, total=3.5)
    registry.summaries("took", "T.", ("request",), lambda: [(("Produce",), produce)])
    assert "# TYPE took summary" in registry.render()
    assert samples(registry) == [
        'took{request="Produce",quantile="0.50"} 1.5',
        'took{request="Produce",quantile="0.99"} 3',
        'took_sum{request="Produce"} 3.5',
        'took_count{request="Produce"} 2',
    ]


def test_a_histograms_buckets_are_cumulative() -> None:
    registry = Registry()
    registry.histograms("h", "H.", (), lambda: [((), Buckets((0.5, 1.0), (1, 2, 1), 9.1))])
    assert "# TYPE h histogram" in registry.render()
    lines = ['h_bucket{le="0.5"} 1', 'h_bucket{le="1"} 3', 'h_bucket{le="+Inf"} 4', "h_sum 9.1", "h_count 4"]
    assert samples(registry) == lines


def test_a_sum_takes_a_step_for_each_of_its_parts() -> None:
    registry = Registry()
    registry.sum("s", "S.", lambda: iter([1, 0, 2]))
    assert samples(registry) == ["s 3"]
    registry.sum("s", "S.", lambda: iter([True] * PIECE * 10))
    assert samples(registry) == [f"s {PIECE * 10}"]
    assert sum(1 for _ in registry.rendering()) >= 10


def test_no_step_reads_more_than_a_piece() -> None:
    """Ten thousand partitions are not read in one go, and their lines are not joined in one go either."""
    read = 0

    def partitions() -> Iterator[tuple[tuple[str, str], float] | None]:
        nonlocal read
        for number in range(10_000):
            read += 1
            yield (("a" * 100, str(number)), number) if number % 3 else None

    registry = Registry()
    registry.gauges("kafka_log_log_size", "S.", ("topic", "partition"), partitions)
    steps, seen = registry.rendering(), 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            chunks = end.value
            break
        assert read - seen <= PIECE
        seen = read
    assert read == 10_000
    assert b"".join(chunks).decode() == registry.render()
    assert len(chunks) > 10
    assert max(map(len, chunks)) < CHUNK_CHARACTERS + PIECE * 200


def test_a_scrape_shows_what_comes_and_goes_in_its_middle() -> None:
    registry = Registry()
    sizes = {str(number): number for number in range(1_000)}
    registry.gauges("a", "A.", ("n",), lambda: [((name,), size) for name, size in list(sizes.items())])
    registry.counters("b_total", "B.", ("n",)).labels("1")
    steps = registry.rendering()
    next(steps)
    sizes.clear()
    registry.counters("b_total", "B.", ("n",)).labels("2")
    registry.gauge("c", "C.", lambda: 1)
    text = b"".join(at_once(steps)).decode()
    assert text.count("\na{") == 1_000
    assert text.count("\nb_total{") == 2


def test_gauges_are_read_when_scraped() -> None:
    registry = Registry()
    sizes = {"a": 1}
    registry.gauges("kafka_log_log_size", "S.", ("topic",), lambda: [((name,), size) for name, size in sizes.items()])
    assert 'kafka_log_log_size{topic="a"} 1\n' in registry.render()
    sizes.update(a=5, b=6)
    text = registry.render()
    assert 'kafka_log_log_size{topic="a"} 5\n' in text
    assert 'kafka_log_log_size{topic="b"} 6\n' in text


def test_a_gauge_that_fails_costs_only_itself() -> None:
    registry = Registry()
    registry.gauge("broken", "B.", lambda: 1 / 0)
    registry.gauge("whole", "W.", lambda: 1)
    assert "whole 1\n" in registry.render()
    assert "\nbroken " not in registry.render()
    assert f"{CUT} 1\n" in registry.render(), "and does not look whole"


def test_a_gauge_that_fails_in_its_middle_shows_what_it_had() -> None:
    def failing() -> Iterator[tuple[tuple[str], float]]:
        yield ("a",), 1
        raise OSError

    registry = Registry()
    registry.gauges("broken", "B.", ("n",), failing)
    assert samples(registry) == ['broken{n="a"} 1']
    assert f"{CUT} 1\n" in registry.render()


def test_labels_come_once() -> None:
    registry = Registry()
    registry.gauges("twice", "T.", ("n",), lambda: [(("a",), 1), (("a",), 2)])
    assert samples(registry) == ['twice{n="a"} 1']


def test_a_removed_series_is_not_scraped() -> None:
    registry = Registry()
    family = registry.counters("x_total", "X.", ("topic",))
    family.labels("gone").value += 1
    family.remove("gone")
    family.remove("never was")
    assert "gone" not in registry.render()


def test_series_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "SERIES_MAX", 3)
    registry = Registry()
    family = registry.counters("x_total", "X.", ("topic",))
    for number in range(10):
        family.labels(f"t{number}").value += 1
    assert f'x_total{{topic="{OVERFLOW}"}} 7\n' in registry.render()
    assert registry.render().endswith(f"\n{CUT} 0\n")
    registry.gauges("many", "M.", ("n",), lambda: (((str(number),), 1) for number in range(10**9)))
    assert registry.render().count("\nmany{") == 3
    assert registry.render().endswith(f"\n{CUT} 1\n")


def test_long_names_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "FAMILY_CHARACTERS_MAX", 100_000)
    registry = Registry()
    registry.gauges("many", "M.", ("n",), lambda: (((str(number) + "x" * 32_000,), 1) for number in range(10**9)))
    registry.gauge("other", "O.", lambda: 1)
    text = registry.render()
    assert len(text) < 100_000 + PIECE * 33_000
    assert "\nother 1\n" in text
    assert text.endswith(f"\n{CUT} 1\n")


@pytest.mark.parametrize(
    ("number", "text"),
    [(True, "1"), (2**70, str(2**70)), (0.25, "0.25"), (3.0, "3"), (1e300, "1e+300"), (float("inf"), "+Inf")],
)
def test_numbers(number: float, text: str) -> None:
    registry = Registry()
    registry.gauge("x", "X.", lambda: number)
    assert samples(registry) == [f"x {text}"]


def test_nan_and_negative_infinity() -> None:
    registry = Registry()
    registry.gauge("a", "A.", lambda: float("nan"))
    registry.gauge("b", "B.", lambda: float("-inf"))
    assert "\na NaN\n" in registry.render()
    assert "\nb -Inf\n" in registry.render()


@pytest.mark.parametrize("name", ["", "1a", "a-b", "ä", "a b"])
def test_bad_names_are_our_own_fault(name: str) -> None:
    with pytest.raises(AssertionError):
        Registry().counter(name, "X.")


def test_every_line_is_of_the_text_format() -> None:
    registry = Registry()
    registry.counters("x_total", "X.", ("topic",)).labels("\x00\u2028\r é").value += 0.1
    registry.summaries("t", "T.", (), lambda: [((), Summary({"0.5": float("nan")}, 0, 0))])
    registry.histograms("h", "H.", ("a",), lambda: [(("b",), Buckets((1, 2), (1, 0, 0), 1))])
    sample = re.compile(
        r'[a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-z]+="([^"\\\n]|\\.)*",?)+\})? ([0-9.e+-]+|NaN)|# (HELP|TYPE) .*'
    )
    for line in registry.render().split("\n")[:-1]:
        assert sample.fullmatch(line), line
