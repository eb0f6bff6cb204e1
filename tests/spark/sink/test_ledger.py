"""The ledger: what one process writes another reads, whatever has become of the topic meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from tests.client.reading import read_all

from ottla.client import sync
from ottla.client.admin.results import ConfigResource
from ottla.client.wire.offsets import list_offsets
from ottla.model import TopicPartition
from ottla.spark.sink import ledger as ledger_module
from ottla.spark.sink.entries import LEDGER_TOPIC, LedgerEntry, is_finished
from ottla.spark.sink.errors import LedgerFault, QueryNameTaken
from ottla.spark.sink.ledger import Ledger, free_query_name
from ottla.testing.in_process import InProcessBroker

T = TypeVar("T")


def on(broker: InProcessBroker, name: str, work: Callable[[Ledger], Awaitable[T]]) -> T:
    """What a process that begins now does with the ledger."""

    async def run() -> T:
        ledger = Ledger({"bootstrap.servers": broker.bootstrap}, name)
        try:
            return await work(ledger)
        finally:
            await ledger.close()

    return asyncio.run(run())


def test_the_topic_is_made_when_it_is_first_needed(ottla_own_broker: InProcessBroker) -> None:
    assert on(ottla_own_broker, "orders", Ledger.entry) is None
    with sync.Admin(bootstrap_servers=ottla_own_broker.bootstrap) as admin:
        described = admin.describe_topic(LEDGER_TOPIC)
        resource = ConfigResource.topic(LEDGER_TOPIC)
        configs = admin.describe_configs([resource])[resource]
    assert len(described.partitions) == 1
    assert (configs["cleanup.policy"].value, configs["segment.bytes"].value) == ("compact", "1048576")


def test_what_is_finished_is_known_to_who_begins_later(ottla_broker: InProcessBroker, topic: str) -> None:
    assert on(ottla_broker, topic, Ledger.entry) is None
    on(ottla_broker, topic, lambda ledger: ledger.finish("q", 3, 70))
    on(ottla_broker, topic + "-other", lambda ledger: ledger.finish("p", 9, 1))
    entry = on(ottla_broker, topic, Ledger.entry)
    assert entry == LedgerEntry(query_id="q", batch=3, rows=70)
    assert [is_finished(entry, topic, "q", batch) for batch in (2, 3, 4)] == [True, True, False]
    assert not is_finished(None, topic, "q", 0)


def test_one_that_is_open_hears_of_another(ottla_broker: InProcessBroker, topic: str) -> None:
    async def both() -> list[int | None]:
        settings = {"bootstrap.servers": ottla_broker.bootstrap}
        reading, writing = Ledger(settings, topic), Ledger(settings, topic)
        heard = []
        for batch in range(3):
            await writing.finish("q", batch, 1)
            entry = await reading.entry()
            heard.append(None if entry is None else entry.batch)
        await reading.close()
        await writing.close()
        return heard

    assert asyncio.run(both()) == [0, 1, 2]


def test_a_finished_batch_is_not_written_again(ottla_broker: InProcessBroker, topic: str) -> None:
    for batch in (4, 4, 3):
        on(ottla_broker, topic, lambda ledger, batch=batch: ledger.finish("q", batch, 1))
    written = [one for one in asyncio.run(read_all(ottla_broker.bootstrap, LEDGER_TOPIC)) if one.key == topic.encode()]
    assert [json.loads(one.value) for one in written] == [
        {"version": 1, "query": "q", "batch": 4, "state": "DONE", "rows": 1}
    ]


def test_a_name_belongs_to_one_query_until_it_is_freed(ottla_broker: InProcessBroker, topic: str) -> None:
    on(ottla_broker, topic, lambda ledger: ledger.finish("q", 4, 1))
    with pytest.raises(QueryNameTaken) as caught:
        on(ottla_broker, topic, lambda ledger: ledger.finish("another", 5, 1))
    for said in (f"ottla.query={topic}", "id q", "another", "free_query_name"):
        assert said in str(caught.value)
    assert free_query_name(topic, bootstrap_servers=ottla_broker.bootstrap)
    assert not free_query_name(topic, bootstrap_servers=ottla_broker.bootstrap)
    on(ottla_broker, topic, lambda ledger: ledger.finish("another", 0, 1))
    assert on(ottla_broker, topic, Ledger.entry) == LedgerEntry(query_id="another", batch=0, rows=1)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"", "none of the ledger's"),
        (b"[1]", "none of the ledger's"),
        (b'{"version": 1}', "none of the ledger's"),
        (b'{"version": 2, "query": "q", "batch": 1, "state": "DONE"}', "a newer one wrote it"),
        (b'{"version": 1, "query": "q", "batch": 1, "state": "HALF"}', "a newer one wrote it"),
        (b'{"version": 1, "query": "q", "batch": 1, "state": "PREPARED", "tasks": 7}', "does not know"),
        (b'{"version": 1, "query": "q", "batch": 1, "state": "PREPARED", "tasks": [[0, 1]]}', "does not know"),
        (b'{"version": 1, "query": "q", "batch": 1, "state": "PREPARED", "tasks": [[0, 1, 2, []]]}', "does not know"),
        (b'{"version": 1, "query": "q", "batch": "1", "state": "DONE"}', "does not know"),
        (b'{"version": 1, "query": 7, "batch": 1, "state": "DONE"}', "does not know"),
        (b'{"version": 1, "query": "q", "batch": 1, "state": "DONE", "attempt": 7}', "does not know"),
        (b'{"version": 1, "query": "q", "batch": 1, "state": "DONE", "attempt": ["a", "7"]}', "does not know"),
        (b'{"version": 1, "query": "q", "batch": 1, "state": "DONE", "attempt": ["a"]}', "does not know"),
    ],
)
def test_records_of_others_are_never_taken_for_nothing(
    ottla_broker: InProcessBroker, topic: str, value: bytes, text: str
) -> None:
    on(ottla_broker, topic, Ledger.entry)
    with sync.Producer(bootstrap_servers=ottla_broker.bootstrap) as producer:
        producer.send_and_wait(LEDGER_TOPIC, value, topic.encode())

    async def twice(ledger: Ledger) -> list[str]:
        said = []
        for _ in range(2):
            with pytest.raises(LedgerFault) as caught:
                await ledger.entry()
            said.append(str(caught.value))
        return said

    for said in on(ottla_broker, topic, twice):
        assert text in said


def test_a_topic_that_forgets_is_refused(ottla_own_broker: InProcessBroker) -> None:
    ottla_own_broker.create_topic(LEDGER_TOPIC, configs={"cleanup.policy": "delete"})
    with pytest.raises(LedgerFault, match=r"cleanup\.policy=delete"):
        on(ottla_own_broker, "orders", Ledger.entry)


@pytest.mark.parametrize("noticed", [False, True], ids=["by its end", "by the consumer itself"])
def test_a_topic_that_was_made_again_is_read_from_its_beginning(
    ottla_own_broker: InProcessBroker, noticed: bool
) -> None:
    async def through_it() -> LedgerEntry | None:
        ledger = Ledger({"bootstrap.servers": ottla_own_broker.bootstrap}, "orders")
        for batch in range(3):
            await ledger.finish("q", batch, 1)
        await asyncio.to_thread(ottla_own_broker.delete_topic, LEDGER_TOPIC)
        await asyncio.to_thread(ottla_own_broker.create_topic, LEDGER_TOPIC, 1, {"cleanup.policy": "compact"})
        if noticed:
            consumer, place = ledger._consumer, TopicPartition(LEDGER_TOPIC, 0)
            assert consumer is not None
            consumer.resume(place)
            while await consumer.position(place):
                await consumer.poll(timeout_ms=50)
            consumer.pause(place)
        entry = await ledger.entry()
        await ledger.close()
        return entry

    assert asyncio.run(through_it()) is None


def test_what_others_write_while_it_is_read_makes_nothing_anew(
    ottla_own_broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader is beyond the end that it was told then, and the topic is still the same."""
    on(ottla_own_broker, "orders", lambda ledger: ledger.finish("q", 4, 9))
    ends = 0

    async def told_then_written(*asked: Any) -> Any:
        nonlocal ends
        ends += 1
        end = await list_offsets(*asked)
        await asyncio.to_thread(on, ottla_own_broker, f"other-{ends}", lambda ledger: ledger._write(b"{}"))
        return end

    monkeypatch.setattr(ledger_module, "list_offsets", told_then_written)
    entry = on(ottla_own_broker, "orders", Ledger.entry)
    assert entry is not None
    assert (entry.batch, ends) == (4, 1)
