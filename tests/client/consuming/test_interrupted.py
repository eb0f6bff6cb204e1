"""A Ctrl-C in the moment in which a poll has its records: they are not lost."""

from __future__ import annotations

from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import pytest

from ottla.client.sync import Consumer, Producer
from ottla.model import TopicPartition
from ottla.records.record import decode_batch


class InterruptedQueue:
    """Waits for the poll's end, and is interrupted before it can say so."""

    def __init__(self, queue: SimpleQueue[Any]) -> None:
        self.put = queue.put
        self._queue = queue

    def get(self) -> Any:
        self._queue.get()
        raise KeyboardInterrupt


def values(records: list[Any]) -> list[bytes]:
    return [one.value for one in records]


def of_batches(fetched: Any) -> list[bytes]:
    return [one.value for one in decode_batch(bytes(fetched.records[fetched.begin : fetched.end]))]


WAYS: dict[str, Callable[[Consumer], list[bytes]]] = {
    "records": lambda consumer: values(consumer.poll(timeout_ms=30_000)),
    "Arrow": lambda consumer: consumer.poll_arrow(columns=["value"], timeout_ms=30_000).column(0).to_pylist(),
    "batches": lambda consumer: of_batches(consumer.poll_batches(timeout_ms=30_000)),
}


@pytest.mark.parametrize("way", WAYS)
def test_what_an_interrupted_poll_had_is_given_out_by_the_next_one(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    partition = TopicPartition(topic, 0)
    settings: dict[str, Any] = {"bootstrap_servers": bootstrap, "auto_offset_reset": "earliest", "group_id": topic}
    # In one batch, however long the three calls take: closing sends it.
    with Producer(bootstrap_servers=bootstrap, linger_ms=60_000, delivery_timeout_ms=120_000) as producer:
        for number in range(3):
            producer.send(topic, b"%d" % number)
    with Consumer(settings) as consumer:
        consumer.assign([partition])
        with monkeypatch.context() as patch:
            patch.setattr(consumer._calls, "_queue", InterruptedQueue(consumer._calls._queue))
            with pytest.raises(KeyboardInterrupt):
                WAYS[way](consumer)
        assert consumer.position(partition) == 0
        assert WAYS[way](consumer) == [b"0", b"1", b"2"]
        assert consumer.position(partition) == 3
