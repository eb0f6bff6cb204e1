"""No descriptor is left, for a moment or longer: what needed one is refused, and everything else goes on.

The system's limit says nothing about a disk: no directory goes offline, no partition does, the broker does not end, and
nothing has to be started again.
"""

from __future__ import annotations

import asyncio
import errno
import os

import pytest
from tests.testing.sim.one_broker import TP, OneBroker
from tests.testing.sim.random_faults import RandomFaults

from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState

BUSY = {
    "log.flush.offset.checkpoint.interval.ms": "100",
    "replica.high.watermark.checkpoint.interval.ms": "100",
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "0",
    "log.segment.delete.delay.ms": "0",
    "log.dirs": "/data/a,/data/b",
}
CONFIGS = {"index.interval.bytes": "0", "segment.index.bytes": "64", "flush.messages": "1", "retention.bytes": "4000"}
#: What a broker opens in `_scenario`, as it starts, works and stops; runs beyond the last one would meet no fault.
OPENS = 400


def _nothing_is_lost(one: OneBroker) -> None:
    offline = [line for line in one.said("offline") if "it is tried again until it can be made" not in line]
    assert not offline, offline
    assert not one.said("gives up"), one.said("gives up")
    assert not one.said("unhandled"), one.said("unhandled")
    assert not one.said("a request failed"), one.said("a request failed")
    assert not one.said("begins anew"), one.said("begins anew")


@pytest.mark.parametrize(
    ("number", "times"),
    [
        pytest.param(errno.EMFILE, 1, id="EMFILE-1"),
        pytest.param(errno.ENFILE, 4, id="ENFILE-4"),
        pytest.param(errno.EMFILE, 4, id="EMFILE-4", marks=pytest.mark.slow),
        pytest.param(errno.ENFILE, 1, id="ENFILE-1", marks=pytest.mark.slow),
    ],
)
def test_each_single_open_may_fail(number: int, times: int) -> None:
    met = 0
    for after in range(0, OPENS, 13):
        with OneBroker(after, BUSY) as one:
            one.run(_scenario(one, number, after, times))
            met += bool(one.said(os.strerror(number)))
            _nothing_is_lost(one)
    assert met


async def _scenario(one: OneBroker, number: int, after: int, times: int) -> None:
    await one.broker.started()
    one.disk.fail("descriptor", "*", number, after=after, times=times)
    assert await _until_it_works(lambda: one.create("t", 2, CONFIGS))
    assert await _until_it_works(lambda: one.create("gone"))
    for round_ in range(12):
        for partition in range(2):
            tp = TopicPartition("t", partition)
            assert await _until_it_works(lambda tp=tp: one.produce(tp, padding=100))
        if round_ == 6:
            assert await _until_it_works(lambda: _delete(one, "gone"))
        await asyncio.sleep(0.1)
    await asyncio.sleep(1.0)
    one.disk.stop_failing()
    _nothing_is_lost(one)
    await one.must_produce(TP, batches=2)
    await one.stop_and_start()
    await one.must_produce(TP, batches=2)


async def _until_it_works(ask) -> bool:  # type: ignore[no-untyped-def]
    """Tries again where the code says that it makes sense."""
    for _ in range(20):
        error = await ask()
        if error in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}:
            return True
        assert error in {ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.REQUEST_TIMED_OUT}, error.name
        await asyncio.sleep(0.3)
    return False


async def _delete(one: OneBroker, name: str) -> ErrorCode:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=2000)
    answer = await one.client.ask(request, 6)
    return ErrorCode(answer.responses[0].error_code)


class NoDescriptors(RandomFaults):
    """The same load, and the only fault is that there is no descriptor."""

    async def _fault(self) -> None:
        random = self.random
        await asyncio.sleep(random.expovariate(1 / 0.2))
        self.one.disk.fail(
            "descriptor",
            random.choice(("*", "*", "*.log", "*index", "*.snapshot", "*checkpoint*", "/data/b", "*.coordination*")),
            random.choice((errno.EMFILE, errno.ENFILE)),
            after=random.choice((0, 0, 1, 3, 10)),
            times=random.choice((1, 2, 5, None)),
        )
        await asyncio.sleep(random.expovariate(1 / 0.3))
        if random.random() < 0.6:
            self.one.disk.stop_failing()

    async def _heal(self) -> None:
        self.one.disk.stop_failing()
        _nothing_is_lost(self.one)


@pytest.mark.parametrize("first", [0, pytest.param(15, marks=pytest.mark.slow)])
def test_random_shortage(first: int) -> None:
    acknowledged = 0
    for seed in range(first, first + 15):
        shortage = NoDescriptors(seed)
        shortage.run()
        acknowledged += shortage.one.history.acknowledged_count
    assert acknowledged > 500
