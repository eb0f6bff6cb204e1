"""Sequence numbers against a model of a broker: it takes what follows, knows the last five again, refuses a gap.

A network that loses requests and answers, in any pattern, must leave every record in the log once and in order, or
fail it; what was failed with its outcome known must not be there.
"""

from __future__ import annotations

from collections import deque
from random import Random

import pytest

from ottla.client.producing.accumulator import Accumulator
from ottla.client.producing.batches import ProducerBatch
from ottla.client.producing.queues import PartitionQueue
from ottla.client.producing.sequences import EPOCH_MAX, Identities, ProducerIdentity
from ottla.model import ErrorCode
from ottla.records.batch import INT32_MAX, add_to_sequence

REMEMBERED = 5


class ModelBroker:
    """One partition's view of one producer."""

    def __init__(self) -> None:
        self.log: list[bytes] = []
        self._epoch: tuple[int, int] | None = None
        self._last = -1
        self._recent: deque[tuple[int, int]] = deque(maxlen=REMEMBERED)

    def forget(self) -> None:
        self._epoch = None
        self._recent.clear()

    def append(self, batch: ProducerBatch) -> ErrorCode:
        assert batch.identity is not None
        assert batch.sequence is not None
        last = add_to_sequence(batch.sequence, batch.count - 1)
        identity = tuple(batch.identity)
        if self._epoch is not None and identity < self._epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if identity == self._epoch:
            if (batch.sequence, last) in self._recent:
                return ErrorCode.NONE
            if batch.sequence != add_to_sequence(self._last, 1):
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        elif self._epoch is not None and batch.sequence != 0:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if identity != self._epoch:
            self._recent.clear()
        self._epoch, self._last = identity, last
        self._recent.append((batch.sequence, last))
        self.log += values(batch)
        return ErrorCode.NONE


def values(batch: ProducerBatch) -> list[bytes]:
    from ottla.records.record import decode_batch

    return [record.value or b"" for record in decode_batch(batch.builder.build())]


def accumulator() -> Accumulator:
    return Accumulator(batch_bytes=0, linger_ms=0, delivery_timeout_ms=1000, memory_bytes=10**9)


def add(queues: Accumulator, queue: PartitionQueue, value: bytes) -> ProducerBatch:
    return queues.append(queue, 0, None, value, (), queues.cost(None, value, ()), 0).batch


class Driver:
    """What the sender does, one step at a time, over a network that a seed decides about."""

    def __init__(self, seed: int, *, start: int = 0) -> None:
        self.random = Random(seed)
        self.broker = ModelBroker()
        self.queues = accumulator()
        self.queue = self.queues.queue("t", 0)
        self.identities = Identities()
        self.identities.current = ProducerIdentity(7, 0)
        if start:
            self.queue.sequences._next = start
            self.queue.sequences._last_acked = start - 1
            self.queue.sequences._identity = self.identities.current
        #: On the wire, in order: the batch, and what the broker answered (None: it never heard of it).
        self.wire: deque[tuple[ProducerBatch, ErrorCode | None]] = deque()
        self.acknowledged: list[bytes] = []
        self.lost: list[bytes] = []

    def step(self) -> None:
        queue = self.queue
        if queue.waiting and queue.sequences.may_send(queue.waiting[0], self.identities, len(self.wire)):
            batch = self.queues.take(queue)
            queue.sequences.stamp(batch)
            batch.attempts += 1
            heard = self.random.random() < 0.8
            self.wire.append((batch, self.broker.append(batch) if heard else None))
        elif self.wire:
            self.answer()

    def answer(self) -> None:
        batch, answered = self.wire.popleft()
        sequences = self.queue.sequences
        if answered is None or self.random.random() < 0.2:  # the request or its answer is lost
            assert sequences.is_retriable(batch, ErrorCode.NETWORK_EXCEPTION, -1)
            self.retry(batch)
        elif answered is ErrorCode.NONE:
            sequences.acknowledged(batch)
            self.acknowledged += values(batch)
        else:
            assert sequences.is_retriable(batch, answered, -1)
            self.retry(batch)

    def retry(self, batch: ProducerBatch) -> None:
        if self.random.random() < 0.05:  # its time is over
            self.queue.sequences.given_up(batch)
            self.lost += values(batch)
        else:
            self.queues.put_back(batch, 0)


@pytest.mark.parametrize("start", [0, INT32_MAX - 20])
def test_once_and_in_order_over_any_network(start: int) -> None:
    for seed in range(300):
        driver = Driver(seed, start=start)
        if start:
            driver.broker._epoch, driver.broker._last = (7, 0), start - 1
        sent = []
        for n in range(60):
            sent.append(b"%d" % n)
            add(driver.queues, driver.queue, sent[-1])
            for _ in range(driver.random.randrange(4)):
                driver.step()
        for _ in range(10_000):
            if not driver.queue.waiting and not driver.wire:
                break
            driver.step()
        else:
            pytest.fail(f"seed {seed}: it never ends")
        log = driver.broker.log
        assert len(log) == len(set(log)), f"seed {seed}: twice"
        assert log == sorted(log, key=sent.index), f"seed {seed}: out of order"
        assert set(driver.acknowledged) <= set(log), f"seed {seed}: acknowledged and not there"
        assert set(driver.acknowledged) | set(driver.lost) == set(sent), f"seed {seed}: forgotten"


def test_a_forgetful_broker_costs_an_epoch_and_no_record() -> None:
    driver = Driver(1)
    first = add(driver.queues, driver.queue, b"0")
    driver.step()
    while not driver.acknowledged:
        driver.step()
    assert first.sequence == 0
    sequences = driver.queue.sequences
    batches = [add(driver.queues, driver.queue, b"%d" % n) for n in range(1, 4)]
    for batch in batches:
        assert sequences.may_send(driver.queue.waiting[0], driver.identities, 0)
        assert driver.queues.take(driver.queue) is batch
        sequences.stamp(batch)
    assert [batch.sequence for batch in batches] == [1, 2, 3]
    for batch in batches:
        assert sequences.is_retriable(batch, ErrorCode.UNKNOWN_PRODUCER_ID, 0)
        driver.queues.put_back(batch, 0)
    assert not sequences.may_send(batches[0], driver.identities, 1)  # something is on the wire still
    assert sequences.may_send(batches[0], driver.identities, 0)
    assert [(batch.identity, batch.sequence) for batch in batches] == [(ProducerIdentity(7, 1), n) for n in range(3)]


def test_at_the_last_epoch_another_id_is_needed() -> None:
    identities = Identities()
    identities.current = last = ProducerIdentity(7, EPOCH_MAX)
    assert identities.after(last) is None
    assert identities.current is None
    identities.current = ProducerIdentity(8, 0)
    assert identities.after(last) == ProducerIdentity(8, 0)


def test_a_partition_takes_the_epoch_that_another_one_raised() -> None:
    identities = Identities()
    identities.current = ProducerIdentity(7, 0)
    queues = accumulator()
    one, two = queues.queue("t", 1), queues.queue("t", 2)
    old = add(queues, two, b"x")
    assert two.sequences.may_send(old, identities, 0)
    two.sequences.stamp(queues.take(two))
    identities.after(ProducerIdentity(7, 0))  # partition 1 raises it
    assert identities.current == ProducerIdentity(7, 1)
    new = add(queues, two, b"y")
    assert not two.sequences.may_send(new, identities, 1)  # not while the old epoch is in flight
    two.sequences.acknowledged(old)
    assert two.sequences.may_send(new, identities, 0)
    two.sequences.stamp(queues.take(two))
    assert (new.identity, new.sequence) == (ProducerIdentity(7, 1), 0)
    assert one.sequences.in_flight == []


def test_five_in_flight_and_the_first_alone() -> None:
    identities = Identities()
    identities.current = ProducerIdentity(7, 0)
    queues = accumulator()
    queue = queues.queue("t", 0)
    batches = [add(queues, queue, b"%d" % n) for n in range(8)]

    def sendable() -> int:
        count = 0
        while queue.waiting and queue.sequences.may_send(queue.waiting[0], identities, 0):
            queue.sequences.stamp(queues.take(queue))
            count += 1
        return count

    assert sendable() == 1
    queue.sequences.acknowledged(batches[0])
    assert sendable() == 5
    queue.sequences.acknowledged(batches[1])
    assert sendable() == 1
