"""Groups in tests: waiting until they have caught up, and their sessions and offsets when time moves."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Consumer as ConfluentConsumer

from ottla import testing
from ottla.client.errors import KafkaError
from ottla.client.sync import Admin, Consumer, Producer
from ottla.model import ErrorCode, TopicPartition
from ottla.testing import InProcessBroker
from ottla.testing.lag import StillBehind

#: A new group's first member does not wait for others.
AT_ONCE = {"group.initial.rebalance.delay.ms": "0"}
SECONDS_MAX = 60.0


def fill(broker: InProcessBroker, topic: str, count: int, partition: int = 0) -> None:
    with Producer(bootstrap_servers=broker.bootstrap) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=partition)


def state_of(admin: Admin, group: str) -> str | None:
    try:
        return admin.describe_group(group).state
    except KafkaError as error:
        if error.code == ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        raise


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.005)


def test_wait_for_a_group_that_reads() -> None:
    with testing.broker(properties=AT_ONCE) as broker:
        broker.create_topic("orders", partitions=2)
        fill(broker, "orders", 5)
        settings = {"group_id": "billing", "auto_offset_reset": "earliest", "auto_commit_interval_ms": 50}
        with Consumer(bootstrap_servers=broker.bootstrap, **settings) as consumer:
            consumer.subscribe(["orders"])
            read = 0
            while read < 5:
                read += len(consumer.poll(timeout_ms=100))
            consumer.commit()
            broker.wait_for_lag("billing", 0)
            fill(broker, "orders", 3, partition=1)
            # A busy machine may not even have asked once by then, and says so: it is given longer.
            for seconds in (0.2, 2, 20):
                with pytest.raises(StillBehind) as behind:
                    broker.wait_for_lag("billing", 2, timeout=seconds)
                if "behind in" in str(behind.value):
                    break
            said = rf"group billing did not come within 2 in {seconds} s: .*orders-1 by 3$"
            assert re.match(said, str(behind.value)), behind.value
            broker.wait_for_lag("billing", 3)
            while read < 8:
                read += len(consumer.poll(timeout_ms=100))
            consumer.commit()
            broker.wait_for_lag("billing", timeout=10**400)


def test_what_is_waited_for_may_be_yet_to_come() -> None:
    async def scenario() -> None:
        async with testing.async_broker(properties=AT_ONCE) as broker:
            await broker.create_topic("orders")
            # A busy machine may not have been answered in a second, and says that: it is given longer.
            for seconds in (1, 20):
                with pytest.raises(TimeoutError) as none:
                    await broker.wait_for_lag("billing", timeout=seconds)
                if "nobody was asked yet" not in str(none.value):
                    break
            assert "there is no such group" in str(none.value)
            waiting = asyncio.create_task(broker.wait_for_lag("billing"))
            tp = TopicPartition("orders", 0)
            with Admin(bootstrap_servers=broker.bootstrap) as admin:
                await asyncio.to_thread(admin.alter_group_offsets, "billing", {tp: 0})
            await waiting

    asyncio.run(scenario())


#: No heartbeat comes in between: a member with these is as good as dead.
SILENT = {"heartbeat_interval_ms": 1_000_000, "session_timeout_ms": 1_100_000}


def test_a_member_that_hangs_has_lost_its_session() -> None:
    with testing.broker(properties=AT_ONCE) as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        broker.create_topic("orders")
        with Consumer(bootstrap_servers=broker.bootstrap, group_id="billing", **SILENT) as consumer:
            consumer.subscribe(["orders"])
            while not consumer.assignment():
                consumer.poll(timeout_ms=20)
            until(lambda: state_of(admin, "billing") == "Stable")
            broker.advance("15m")
            assert state_of(admin, "billing") == "Stable"
            broker.advance("5m")
            until(lambda: state_of(admin, "billing") in {"Empty", None})


def test_a_member_of_a_newer_group_too() -> None:
    with testing.broker(properties=AT_ONCE) as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        broker.create_topic("orders")
        settings = {"bootstrap.servers": broker.bootstrap, "group.id": "billing", "group.protocol": "consumer"}
        consumer = ConfluentConsumer({**settings, "log_level": 0})
        try:
            consumer.subscribe(["orders"])
            until(lambda: bool(consumer.poll(0.02) or consumer.assignment()))
            until(lambda: state_of(admin, "billing") == "Stable")
            before = admin.describe_group("billing").epoch
            broker.advance("10s")
            assert admin.describe_group("billing").epoch == before
            broker.advance("1m")  # group.consumer.session.timeout.ms is 45 s; with its next heartbeat it comes back
            until(lambda: admin.describe_group("billing").epoch != before)
        finally:
            consumer.close()


def test_offsets_of_an_empty_group_expire_after_their_retention() -> None:
    tp = TopicPartition("orders", 0)
    with testing.broker(properties=AT_ONCE) as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        broker.create_topic("orders", configs={"retention.ms": "-1"})
        admin.alter_group_offsets("gone", {tp: 0})
        broker.advance("6d")
        assert admin.list_group_offsets("gone")[tp].offset == 0
        admin.alter_group_offsets("kept", {tp: 0})
        broker.advance("2d")
        until(lambda: admin.list_group_offsets("gone") == {})
        until(lambda: state_of(admin, "gone") is None)
        assert admin.list_group_offsets("kept")[tp].offset == 0


def test_a_member_hangs_its_group_empties_and_its_offsets_expire_in_one_advance() -> None:
    with testing.broker(properties=AT_ONCE) as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        broker.create_topic("orders")
        fill(broker, "orders", 1)
        consumer = Consumer(
            bootstrap_servers=broker.bootstrap,
            group_id="billing",
            auto_offset_reset="earliest",
            **SILENT,
        )
        with consumer:
            consumer.subscribe(["orders"])
            while not consumer.poll(timeout_ms=100):
                pass
            consumer.commit()
            assert admin.list_group_offsets("billing")[TopicPartition("orders", 0)].offset == 1
            broker.advance("10m")
            assert state_of(admin, "billing") == "Stable"
            broker.advance("8d")
            until(lambda: state_of(admin, "billing") is None)
            assert admin.list_group_offsets("billing") == {}


def test_a_partition_whose_end_nobody_says_is_waited_for(tmp_path: Path) -> None:
    """Its log directory is lost, and it has no leader: the group may be behind in it by any number of records."""
    folders = [tmp_path / "data", tmp_path / "more"]
    properties = AT_ONCE | {"log.dirs": ",".join(map(str, folders)), "offsets.topic.num.partitions": "1"}
    with testing.broker(properties=properties) as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        broker.create_topic("orders")
        admin.alter_group_offsets("billing", {TopicPartition("orders", 0): 0})
        kept = 0 if (folders[0] / "__consumer_offsets-0").exists() else 1
        broker.create_topic("halved", partitions=2)
        lost = 1 if (folders[kept] / "halved-0").exists() else 0
        admin.alter_group_offsets("billing", {TopicPartition("halved", number): 0 for number in range(2)})
        broker.wait_for_lag("billing")
        shutil.rmtree(folders[1 - kept])
        folders[1 - kept].write_text("a file in its place")
        with suppress(KafkaError):  # the broker notices by this
            broker.create_topic("notices", partitions=2)
        # A busy machine may not have been answered in a second, and says that: it is given longer.
        for seconds in (1, 20):
            with pytest.raises(StillBehind) as unknown:
                broker.wait_for_lag("billing", timeout=seconds)
            if "nobody was asked yet" not in str(unknown.value):
                break
        said = f"nobody says where these end, which have no leader: .*halved-{lost}"
        assert re.search(said, str(unknown.value)), unknown.value
        command = [sys.executable, "-m", "ottla", "group", "describe", "billing", "-b", broker.bootstrap]
        told = json.loads(subprocess.check_output([*command, "-o", "json"]))[0]
        assert (told["lag"], told["lag_unknown"]) == (0, sum(row["end"] is None for row in told["partitions"]))
        unknown = "1 partition" if told["lag_unknown"] == 1 else "2 partitions"
        head = subprocess.check_output(command, text=True).splitlines()[0]
        assert head.endswith(f"no members  lag 0, in {unknown} unknown")
