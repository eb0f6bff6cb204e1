"""The synchronous producer's end: whatever ends the wait for it, no delivery stays open and no connection."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import pytest

from ottla.client import Producer as AsyncProducer
from ottla.client.errors import BadArgument, ClientClosed, KafkaError, WrongThread
from ottla.client.sync import Consumer, Producer
from ottla.model import TopicPartition

UNREACHED = "127.0.0.1:1"


@pytest.mark.parametrize("given", ["5", -1, True, float("nan")])
async def test_how_long_to_wait_is_checked_before_anything_ends(bootstrap: str, topic: str, given: Any) -> None:
    async with AsyncProducer(bootstrap_servers=bootstrap) as producer:
        with pytest.raises(BadArgument, match="timeout_ms must be"):
            await producer.close(given)
        await producer.send_and_wait(topic, b"x")


@pytest.mark.parametrize("given", ["5", -1])
def test_the_synchronous_face_checks_it_too(bootstrap: str, topic: str, given: Any) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        with pytest.raises(BadArgument, match="timeout_ms must be"):
            producer.close(given)
        producer.send_and_wait(topic, b"x")


@pytest.mark.parametrize("length", [float("inf"), 10**400, 10**5000], ids=["inf", "hundreds", "thousands"])
def test_a_length_that_no_clock_has_is_for_ever(bootstrap: str, topic: str, length: float) -> None:
    producer = Producer(bootstrap_servers=bootstrap)
    delivery = producer.send(topic, b"x")
    producer.close(length)
    assert delivery.result().offset == 0


def test_a_close_has_its_time_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was waited for records that are in no batch is not waited a second time for those that are."""
    producer = Producer(bootstrap_servers=UNREACHED)
    left: list[int | None] = []
    close = producer._inner.close

    async def closed(timeout_ms: int | None = None) -> None:
        left.append(timeout_ms)
        await close(timeout_ms)

    monkeypatch.setattr(producer._inner, "close", closed)
    delivery = producer.send("unreached", b"x")
    producer.close(100)
    assert left == [0]
    assert isinstance(delivery.exception(), KafkaError)


@pytest.mark.parametrize("where", ["before it is in a batch", "before it is acknowledged"])
def test_an_interrupted_close_ends_what_is_under_way(
    bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    in_batch = where == "before it is acknowledged"
    producer = Producer(
        bootstrap_servers=bootstrap if in_batch else UNREACHED, linger_ms=60_000, delivery_timeout_ms=120_000
    )
    waits = threading.Event()
    if in_batch:
        producer.partitions_for(topic)

        async def all_settled() -> None:
            waits.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(producer._inner, "_all_settled", all_settled)
    else:
        enters = producer.handed_over

        async def handed_over() -> None:
            waits.set()
            await enters()

        monkeypatch.setattr(producer, "handed_over", handed_over)
    deliveries = [producer.send(topic, b"x") for _ in range(3)]

    def interrupt() -> None:
        assert waits.wait(60)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        producer.close()
    interrupting.join(60)
    assert all(delivery.done() for delivery in deliveries)
    assert all(isinstance(delivery.exception(), ClientClosed) for delivery in deliveries)
    assert producer._inner.cluster._closed


def test_a_call_back_cannot_end_the_client_that_runs_it(bootstrap: str, topic: str) -> None:
    """Nor wait for it: both go on as they were."""
    raised: SimpleQueue[BaseException | None] = SimpleQueue()

    def ends(call: Callable[[], object]) -> Callable[..., None]:
        def call_back(*_: object) -> None:
            try:
                call()
            except KafkaError as error:
                raised.put(error)
            else:
                raised.put(None)

        return call_back

    with Producer(bootstrap_servers=bootstrap, linger_ms=0) as producer:
        for call in (producer.close, producer.flush):
            producer.send(topic, b"x", on_delivery=ends(call)).result(60)
            assert isinstance(raised.get(timeout=60), WrongThread)
    partition = TopicPartition(topic, 0)
    with Consumer(bootstrap_servers=bootstrap, group_id=topic) as consumer:
        consumer.assign([partition])
        consumer.commit_async({partition: 1}, ends(consumer.close))
        assert isinstance(raised.get(timeout=60), WrongThread)
        assert consumer.committed([partition])[partition] is not None


def test_a_fault_of_its_own_is_one_records(bootstrap: str, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The records behind it are sent without anybody's call."""
    with Producer(bootstrap_servers=bootstrap, linger_ms=60_000, delivery_timeout_ms=120_000) as producer:
        producer.partitions_for(topic)
        enter = producer._inner.try_enter
        all_there, known = threading.Event(), threading.Event()

        def fails_once(record: Any) -> Any:
            assert all_there.wait(60)
            if record.value == b"bad":
                raise LookupError("no such street")
            entered = enter(record)
            known.set()
            return entered

        monkeypatch.setattr(producer._inner, "try_enter", fails_once)
        bad, good = producer.send(topic, b"bad"), producer.send(topic, b"good")
        all_there.set()
        assert known.wait(60)
        with pytest.raises(KafkaError, match="the producer failed: LookupError: no such street"):
            bad.result(60)
        producer.flush()
        assert good.result(60).offset == 0
