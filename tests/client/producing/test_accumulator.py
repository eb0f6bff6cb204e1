"""Batches as they fill, linger, are split and put back: without a loop, with the time as an argument."""

from __future__ import annotations

from ottla.client.producing.accumulator import RECORD_OVERHEAD, Accumulator
from ottla.client.producing.batches import Delivery, ProducerBatch
from ottla.client.producing.queues import PartitionQueue
from ottla.records.record import decode_batch


def accumulator(*, batch_bytes: int = 1000, linger_ms: int = 10, memory_bytes: int = 10_000) -> Accumulator:
    return Accumulator(
        batch_bytes=batch_bytes, linger_ms=linger_ms, delivery_timeout_ms=1000, memory_bytes=memory_bytes
    )


def add(queues: Accumulator, queue: PartitionQueue, value: bytes, now_ms: int = 0) -> tuple[Delivery, bool]:
    """Also says whether that began a batch."""
    cost = queues.cost(None, value, ())
    delivery = queues.add(queue, 5, None, value, (), cost)
    if delivery is not None:
        return delivery, False
    return queues.append(queue, 5, None, value, (), cost, now_ms), True


def values(batch: ProducerBatch) -> list[bytes | None]:
    return [record.value for record in decode_batch(batch.builder.build())]


def test_a_full_batch_is_ready_and_the_next_one_lingers() -> None:
    queues = accumulator()
    queue = queues.queue("t", 0)
    _, news = add(queues, queue, b"x" * 500)
    assert news  # there is a linger to wait for
    assert not queues.ready
    _, news = add(queues, queue, b"x" * 100)
    assert not news
    _, news = add(queues, queue, b"x" * 500)  # does not fit
    assert news
    assert list(queues.ready) == [queue]
    assert queues.take(queue).count == 2
    assert not queues.ready
    assert queues.take_due(9) == 10
    assert queues.take_due(10) is None
    assert list(queues.ready) == [queue]


def test_no_batch_is_larger_than_batch_size_but_of_one_record() -> None:
    queues = accumulator(batch_bytes=300, memory_bytes=10**6)
    queue = queues.queue("t", 0)
    for size in (1, 100, 250, 5, 5, 299, 1000, 17, 60, 60, 60, 60):
        add(queues, queue, b"x" * size)
    batches = list(queue.waiting)
    assert sum(batch.count for batch in batches) == 12
    assert all(len(batch.builder.build()) <= 300 or batch.count == 1 for batch in batches)


def test_an_open_batch_grows_until_it_is_taken() -> None:
    queues = accumulator(linger_ms=0)
    queue = queues.queue("t", 0)
    add(queues, queue, b"1")
    assert queue in queues.ready
    add(queues, queue, b"2")
    assert values(queues.take(queue)) == [b"1", b"2"]
    add(queues, queue, b"3")
    assert values(queues.take(queue)) == [b"3"]


def test_hurrying_ends_all_lingers() -> None:
    queues = accumulator()
    for partition in range(3):
        add(queues, queues.queue("t", partition), b"x")
    queues.hurry()
    assert [queue.partition for queue in queues.ready] == [0, 1, 2]
    assert queues.take_due(0) is None


def test_memory_is_taken_and_given_back() -> None:
    queues = accumulator(memory_bytes=1000)
    queue = queues.queue("t", 0)
    assert queues.has_room(840)
    assert not queues.has_room(841)
    add(queues, queue, b"x" * 500)
    assert queues.memory_used > 500 + RECORD_OVERHEAD
    assert not queues.has_room(500)
    queues.release(queues.take(queue))
    assert queues.memory_used == 0
    assert not queues.live


def test_what_is_put_back_stands_before_all_newer() -> None:
    queues = accumulator(batch_bytes=0, linger_ms=0)
    queue = queues.queue("t", 0)
    for n in range(4):
        add(queues, queue, b"%d" % n)
    taken = [queues.take(queue) for _ in range(3)]
    for batch in (taken[1], taken[0], taken[2]):
        queues.put_back(batch, 0)
    assert [values(batch) for batch in queue.waiting] == [[b"0"], [b"1"], [b"2"], [b"3"]]


def test_queues_take_turns() -> None:
    queues = accumulator(batch_bytes=0, linger_ms=0)
    one, two = queues.queue("t", 1), queues.queue("t", 2)
    for _ in range(2):
        add(queues, one, b"x")
        add(queues, two, b"x")
    queues.take(next(iter(queues.ready)))
    assert list(queues.ready) == [two, one]


def test_a_split_batch_keeps_deliveries_memory_and_place() -> None:
    queues = accumulator(batch_bytes=5000, linger_ms=0)
    queue = queues.queue("t", 0)
    called: list[Delivery] = []
    deliveries = [add(queues, queue, b"%d" % n)[0] for n in range(5)]
    deliveries[4].add_done_callback(called.append)
    whole = queues.take(queue)
    whole.sequence = 2**31 - 2
    used = queues.memory_used
    add(queues, queue, b"newer")
    newer = queues.memory_used - used
    parts = queues.split(whole)
    assert [values(part) for part in parts] == [[b"0", b"1"], [b"2", b"3", b"4"]]
    assert [part.sequence for part in parts] == [2**31 - 2, 0]  # numbers go round
    assert list(queues.live) == [*parts, *queue.waiting]  # they are over in time before what is newer
    assert [delivery.batch for delivery in deliveries] == [parts[0], parts[0], parts[1], parts[1], parts[1]]
    grandparts = queues.split(parts[1])
    for part in (grandparts[1], parts[0], grandparts[0]):
        queues.put_back(part, 0)
    assert [values(batch) for batch in queue.waiting] == [[b"0", b"1"], [b"2"], [b"3", b"4"], [b"newer"]]
    for part in (parts[0], *grandparts):
        queues.release(part)
        part.finish(10, -1, None)
    assert called == [deliveries[4]]
    assert queues.memory_used == newer
    assert [delivery.result().timestamp for delivery in deliveries] == [5] * 5
    assert [delivery.result().offset for delivery in deliveries] == [10, 11, 10, 10, 11]
