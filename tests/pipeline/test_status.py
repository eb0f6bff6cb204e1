"""What a sink has counted, over runs that died between a micro-batch and the note of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.pipeline.conftest import Pipeline

from ottla.pipeline.status import FlowStatus

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark"), pytest.mark.timeout(1200)]


def test_a_sinks_micro_batch_counts_once(pipeline: Pipeline) -> None:
    pipeline.broker.create_topic(f"{pipeline.topic}-copy", partitions=1)
    pipeline.define(
        """
        @sink(topic="TOPIC-copy")
        def copied():
            return read_topic("TOPIC").select("key", "value")
        """
    )
    note = Path(pipeline.places.status("copied"))
    checkpoint = Path(pipeline.places.checkpoint("copied"))

    def caught_up() -> tuple[int | None, int, int]:
        (flow,) = pipeline.catch_up().flows
        assert FlowStatus(**json.loads(note.read_text())) == flow.status
        return flow.status.batch, flow.status.rows_in, flow.status.rows_out

    pipeline.send(1, 2)
    assert caught_up() == (0, 2, 2)
    # The run died before Spark had noted the micro-batch, which comes again.
    for file in (checkpoint / "commits").iterdir():
        file.unlink()
    assert caught_up() == (0, 2, 2)
    before = note.read_text()
    pipeline.send(3)
    assert caught_up() == (1, 3, 3)
    # It died before its status said so; the ledger knows it.
    note.write_text(before)
    assert caught_up() == (1, 3, 3)
    assert len(pipeline.records(f"{pipeline.topic}-copy")) == 3
