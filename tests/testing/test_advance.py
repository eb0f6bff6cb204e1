"""A broker whose clock a test moves: what is due by then is due now."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from ottla import testing
from ottla.client.admin.results import EARLIEST
from ottla.client.sync import Admin
from ottla.client.sync import Producer as OwnProducer
from ottla.durations import duration_ms
from ottla.model import TopicPartition
from ottla.testing import InProcessBroker
from ottla.testing.shifting import steps_ms

DAY_MS = 86_400_000
#: No wait here takes a second; this ends one that hangs.
SECONDS_MAX = 60.0


def fill(bootstrap: str, topic: str, count: int = 10) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(count):
        producer.produce(topic, str(number), partition=0)
    assert producer.flush(60) == 0


def first_offset(bootstrap: str, topic: str) -> int:
    tp = TopicPartition(topic, 0)
    with Admin(bootstrap_servers=bootstrap) as admin:
        return admin.list_offsets({tp: EARLIEST})[tp].offset


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.005)


def segments(broker: InProcessBroker, topic: str) -> list[str]:
    """Its files, those that wait for their removal included."""
    (folder,) = Path(broker.data).rglob(f"{topic}-0")
    return sorted(path.name for path in folder.iterdir() if path.suffix in {".log", ".deleted"})


def test_retention_is_due_when_its_time_has_come_and_not_before() -> None:
    with testing.broker() as broker:
        broker.create_topic("week", configs={"retention.ms": str(7 * DAY_MS)})
        broker.create_topic("ever", configs={"retention.ms": "-1"})
        for topic in ("week", "ever"):
            fill(broker.bootstrap, topic)
        broker.advance("6d")
        assert first_offset(broker.bootstrap, "week") == 0
        broker.advance("2d")
        until(lambda: first_offset(broker.bootstrap, "week") == 10)
        assert first_offset(broker.bootstrap, "ever") == 0
        broker.advance("2m")  # file.delete.delay.ms
        until(lambda: segments(broker, "week") == ["00000000000000000010.log"])


def test_removed_segments_stay_for_as_long_as_their_topic_says() -> None:
    """file.delete.delay.ms: who reads from a segment when retention takes it may finish."""
    gone, waits = ["00000000000000000010.log"], "00000000000000000000.log.deleted"
    with testing.broker() as broker:
        for topic, delay_ms in (("soon", 60_000), ("late", 3_600_000)):
            broker.create_topic(topic, configs={"retention.ms": str(DAY_MS), "file.delete.delay.ms": str(delay_ms)})
            fill(broker.bootstrap, topic)
        broker.advance(timedelta(hours=24, minutes=30))
        for topic in ("soon", "late"):
            until(lambda topic=topic: first_offset(broker.bootstrap, topic) == 10)  # type: ignore[misc]
        # A retention check has rolled their only segments, and a later one, up to half an hour ago, took them out.
        broker.advance("2m")
        until(lambda: segments(broker, "soon") == gone)
        assert waits in segments(broker, "late")
        broker.advance("40m")
        assert waits in segments(broker, "late")
        broker.advance("30m")
        until(lambda: segments(broker, "late") == gone)


def test_the_same_in_an_event_loop_whose_own_timers_stay() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with testing.async_broker() as broker, asyncio.timeout(SECONDS_MAX):
            await broker.create_topic("week", configs={"retention.ms": str(7 * DAY_MS)})
            await asyncio.to_thread(fill, broker.bootstrap, "week")
            before = loop.time()
            await broker.advance(timedelta(days=8))
            assert loop.time() - before < 8 * 86_400
            while await asyncio.to_thread(first_offset, broker.bootstrap, "week") != 10:  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    asyncio.run(scenario())


def test_producers_are_forgotten() -> None:
    tp = TopicPartition("t", 0)
    with testing.broker() as broker:
        broker.create_topic("t")
        with OwnProducer(bootstrap_servers=broker.bootstrap) as producer:
            producer.send_and_wait("t", b"one")
            with Admin(bootstrap_servers=broker.bootstrap) as admin:
                assert len(admin.describe_producers([tp])[tp]) == 1
                broker.advance("23h")
                assert len(admin.describe_producers([tp])[tp]) == 1
                broker.advance("2h")  # producer.id.expiration.ms is a day
                until(lambda: admin.describe_producers([tp])[tp] == [])
            producer.send_and_wait("t", b"two")


def test_the_clock_stays_ahead_over_a_restart_and_clients_notice_nothing_else() -> None:
    with testing.broker() as broker:
        broker.create_topic("stamped", configs={"message.timestamp.type": "LogAppendTime"})
        with OwnProducer(bootstrap_servers=broker.bootstrap) as producer:
            broker.advance("3d")
            ahead = producer.send_and_wait("stamped", b"x").timestamp - time.time() * 1000
            broker.restart()
            still = producer.send_and_wait("stamped", b"y").timestamp - time.time() * 1000
        assert 3 * DAY_MS - 60_000 < ahead <= 3 * DAY_MS + 60_000
        assert 3 * DAY_MS - 60_000 < still <= 3 * DAY_MS + 60_000


def test_time_does_not_go_back_and_needs_a_duration() -> None:
    with testing.broker() as broker:
        with pytest.raises(ValueError, match="does not go back"):
            broker.advance(timedelta(days=-1))
        with pytest.raises(ValueError, match="'soon' is no duration"):
            broker.advance("soon")
        for too_far in timedelta.max, "999999999d":
            with pytest.raises(ValueError, match="is more than a thousand years"):
                broker.advance(too_far)
        broker.advance("0s")


@given(total=st.integers(0, 40 * 366 * DAY_MS))
def test_steps_double_halve_and_come_to_the_whole(total: int) -> None:
    steps = list(steps_ms(total))
    assert sum(steps) == total
    assert len(steps) < 100
    assert all(step > 0 for step in steps)
    for at, step in enumerate(steps):
        assert step <= 2 * (min(sum(steps[:at]), sum(steps[at + 1 :])) + 100)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        *(("8d", 8 * DAY_MS), ("1w", 7 * DAY_MS), ("90m", 5_400_000), ("1h30m", 5_400_000), ("250ms", 250)),
        *(("1.5s", 1500), ("P8D", 8 * DAY_MS), ("PT1H30M", 5_400_000), ("PT0.25S", 250), ("p1dt1h", 90_000_000)),
        *(("0s", 0), (" 3s ", 3000), ("2S", 2000)),
    ],
)
def test_durations(text: str, milliseconds: int) -> None:
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "8", "d", "8 d", "8x", "-1d", "P", "PT", "P1DT", "P1H", "1d1", "9" * 500 + "d"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|thousand years"):
        duration_ms(text)
