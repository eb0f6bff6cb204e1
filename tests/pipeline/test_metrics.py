"""What a scraper sees of flows."""

from __future__ import annotations

from ottla.metrics import Registry
from ottla.pipeline.metrics import register
from ottla.pipeline.status import FAILED, FlowStatus


def test_every_flow_has_its_numbers() -> None:
    flows = [
        FlowStatus(
            flow="orders",
            kind="table",
            batch=41,
            rows_in=5000,
            rows_out=4990,
            dropped=10,
            dead=9,
            failed={"positive amount": 10},
            passed={"positive amount": 4980},
            lag=120,
            late=3,
            rows_a_second=812.5,
        ),
        FlowStatus(flow="out", kind="sink", state=FAILED, error="broken"),
    ]
    registry = Registry()
    register(registry, "shop", lambda: flows)
    labels = '{pipeline="shop",flow="orders"}'
    lines = registry.render().splitlines()
    for line in (
        f"ottla_pipeline_lag{labels} 120",
        f"ottla_pipeline_micro_batch{labels} 41",
        f"ottla_pipeline_rows_per_second{labels} 812.5",
        f"ottla_pipeline_rows_in_total{labels} 5000",
        f"ottla_pipeline_rows_out_total{labels} 4990",
        f"ottla_pipeline_rows_dropped_total{labels} 10",
        f"ottla_pipeline_dead_letters_total{labels} 9",
        f"ottla_pipeline_rows_late_total{labels} 3",
        f"ottla_pipeline_failed{labels} 0",
        'ottla_pipeline_failed{pipeline="shop",flow="out"} 1',
        'ottla_pipeline_rule_broken_total{pipeline="shop",flow="orders",rule="positive amount"} 10',
        'ottla_pipeline_rule_kept_total{pipeline="shop",flow="orders",rule="positive amount"} 4980',
    ):
        assert line in lines
    # What is not known yet is not there.
    assert not any(line.startswith('ottla_pipeline_lag{pipeline="shop",flow="out"}') for line in lines)


def test_flows_that_come_are_seen() -> None:
    flows: list[FlowStatus] = []
    registry = Registry()
    register(registry, "shop", lambda: flows)
    assert "flow=" not in registry.render()
    flows.append(FlowStatus(flow="raw", kind="table", rows_in=7))
    assert 'ottla_pipeline_rows_in_total{pipeline="shop",flow="raw"} 7' in registry.render()
