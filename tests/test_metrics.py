"""The registry and Prometheus' text."""

from __future__ import annotations

import re

import pytest

from ottla import metrics
from ottla.metrics import OVERFLOW, Registry


def test_a_counter_is_one_attribute_and_one_line() -> None:
    registry = Registry()
    messages = registry.counter("kafka_server_brokertopicmetrics_messagesin_total", "Records appended.")
    messages.value += 3
    messages.value += 1
    assert registry.render() == (
        "# HELP kafka_server_brokertopicmetrics_messagesin_total Records appended.\n"
        "# TYPE kafka_server_brokertopicmetrics_messagesin_total counter\n"
        "kafka_server_brokertopicmetrics_messagesin_total 4\n"
    )


def test_families_and_series_come_in_a_fixed_order() -> None:
    registry = Registry()
    by_topic = registry.counters("b_total", "B.", ("topic", "partition"))
    by_topic.labels("z", "0").value += 1
    by_topic.labels("a", "1").value += 2
    registry.gauge("a", "A.", lambda: 7)
    lines = [line for line in registry.render().splitlines() if not line.startswith("#")]
    assert lines == ["a 7", 'b_total{topic="a",partition="1"} 2', 'b_total{topic="z",partition="0"} 1']


def test_the_same_labels_are_the_same_series_and_the_same_name_the_same_family() -> None:
    registry = Registry()
    first = registry.counters("x_total", "X.", ("topic",)).labels("t")
    assert registry.counters("x_total", "X.", ("topic",)).labels("t") is first
    with pytest.raises(AssertionError):
        registry.timers("x_total", "X.", ("topic",))
    with pytest.raises(AssertionError):
        registry.counters("x_total", "X.", ("other",))


def test_values_of_labels_and_help_are_escaped() -> None:
    registry = Registry()
    registry.counters("x_total", "two\nlines \\", ("topic",)).labels('a"b\\c\nd').value += 1
    text = registry.render()
    assert "# HELP x_total two\\nlines \\\\\n" in text
    assert 'x_total{topic="a\\"b\\\\c\\nd"} 1\n' in text


def test_a_timer_is_a_summary_of_sum_and_count() -> None:
    registry = Registry()
    produce = registry.timers("kafka_network_requestmetrics_totaltimems", "T.", ("request",)).labels("Produce")
    produce.observe(1.5)
    produce.total += 2
    produce.count += 1
    text = registry.render()
    assert "# TYPE kafka_network_requestmetrics_totaltimems summary" in text
    assert 'kafka_network_requestmetrics_totaltimems_sum{request="Produce"} 3.5\n' in text
    assert 'kafka_network_requestmetrics_totaltimems_count{request="Produce"} 2\n' in text


def test_a_histograms_buckets_are_cumulative_and_their_bounds_included() -> None:
    registry = Registry()
    histogram = registry.histogram("h", "H.", (0.5, 1.0))
    for amount in (0.5, 0.6, 1.0, 7.0):
        histogram.observe(amount)
    lines = [line for line in registry.render().splitlines() if not line.startswith("#")]
    assert lines == ['h_bucket{le="0.5"} 1', 'h_bucket{le="1"} 3', 'h_bucket{le="+Inf"} 4', "h_sum 9.1", "h_count 4"]


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


def test_a_removed_series_is_not_scraped() -> None:
    registry = Registry()
    family = registry.counters("x_total", "X.", ("topic",))
    family.labels("gone").value += 1
    family.remove("gone")
    family.remove("never was")
    assert "gone" not in registry.render()


def test_series_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "SERIES_MAX", 3)
    registry = Registry()
    family = registry.counters("x_total", "X.", ("topic",))
    for number in range(10):
        family.labels(f"t{number}").value += 1
    assert f'x_total{{topic="{OVERFLOW}"}} 7\n' in registry.render()
    registry.gauges("many", "M.", ("n",), lambda: (((str(number),), 1) for number in range(10**9)))
    assert registry.render().count("\nmany{") == 3


@pytest.mark.parametrize(
    ("number", "text"),
    [(True, "1"), (2**70, str(2**70)), (0.25, "0.25"), (3.0, "3"), (1e300, "1e+300"), (float("inf"), "+Inf")],
)
def test_numbers(number: float, text: str) -> None:
    registry = Registry()
    registry.gauge("x", "X.", lambda: number)
    assert registry.render().endswith(f"\nx {text}\n")


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
    registry.timer("t", "T.").observe(3)
    registry.histogram("h", "H.", (1, 2)).observe(1)
    sample = re.compile(r'[a-zA-Z_:][a-zA-Z0-9_:]*(\{([a-z]+="([^"\\\n]|\\.)*",?)+\})? [0-9.e+-]+|# (HELP|TYPE) .*')
    for line in registry.render().split("\n")[:-1]:
        assert sample.fullmatch(line), line
