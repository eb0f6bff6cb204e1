"""Mirrors that slept for longer than the source keeps its records: what is gone is said, and nothing is mixed up."""

from __future__ import annotations

import asyncio
import re
import signal
import struct
from pathlib import Path
from typing import Any

import pytest

from ottla.client.admin.admin import Admin
from ottla.client.producing.producer import Producer
from ottla.mirror.batches import Preparation, ReadyBatch
from ottla.mirror.clients import producer_id_of
from ottla.mirror.journal import PartitionJournal
from ottla.mirror.partition import PartitionCopy
from ottla.model import TopicPartition
from ottla.records.builder import BatchBuilder
from tests.mirror.flows import (
    SECONDS_MAX,
    Clusters,
    append,
    contents,
    create,
    limits,
    mirror,
    mirroring,
    produce,
    records_of,
    until,
)
from tests.mirror.processes import mirror_process
from tests.mirror.test_kills import until_end
from tests.mirror.test_verb import scraped


def numbers(first: int, behind: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, behind)]


async def removed(bootstrap: str, topic: str, below: int) -> None:
    """What retention does."""
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.delete_records({TopicPartition(topic, 0): below})


async def values_of(bootstrap: str, topic: str) -> list[bytes | None]:
    return [record.value for record in await records_of(bootstrap, topic)]


async def test_a_mirror_that_wakes_goes_on_behind_what_is_gone_and_says_what_it_was(
    clusters: Clusters, tmp_path: Path
) -> None:
    await create(clusters.source, "slept")
    await produce(clusters.source, "slept", numbers(0, 30))
    properties = clusters.properties(topics="slept")
    async with Admin(bootstrap_servers=clusters.target) as admin:
        with mirror_process(tmp_path, properties, "--metrics-port", "0") as running:
            running.started()
            await until_end(admin, "A.slept", 30)
            running.signal(signal.SIGSTOP)
            await produce(
                clusters.source, "slept", numbers(30, 31)
            )  # which answers its last fetch, if that still waits
            await produce(clusters.source, "slept", numbers(31, 60))
            await removed(clusters.source, "slept", 45)
            running.signal(signal.SIGCONT)
            async with asyncio.timeout(SECONDS_MAX):
                while (copy := await values_of(clusters.target, "A.slept"))[-1] != b"59":  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            log = running.log.read_text()
            address = re.search(r"metrics are served address=(\S+)", log)
            assert address is not None
            metrics = await asyncio.to_thread(scraped, address[1])
    # What it had at hand it has written.
    had = len(copy) - 15
    assert 30 <= had < 45
    assert copy == [*numbers(0, had), *numbers(45, 60)]
    assert f"removed at the source before they were copied partition=slept-0 first={had} behind=45" in log
    assert f'ottla_mirror_missed_total{{source="A",target="B",topic="slept",partition="0"}} {45 - had}' in metrics


async def test_where_a_gap_is_to_be_decided_by_a_person_the_copy_stops_at_it(clusters: Clusters) -> None:
    await create(clusters.source, "strict")
    await produce(clusters.source, "strict", numbers(0, 30))
    assert (await mirror(clusters, topics="strict", A_consumer_auto_offset_reset="none")).stopped == []
    await produce(clusters.source, "strict", numbers(30, 60))
    await removed(clusters.source, "strict", 45)
    (why,) = (await mirror(clusters, topics="strict", A_consumer_auto_offset_reset="none")).stopped
    assert "strict-0 begins at 45 now, and was copied up to 30" in why
    assert await limits(clusters.target, "A.strict") == (0, 30)
    assert (await mirror(clusters, topics="strict")).stopped == []
    assert await values_of(clusters.target, "A.strict") == [*numbers(0, 30), *numbers(45, 60)]


def five(first: int) -> bytes:
    builder = BatchBuilder()
    for value in numbers(first, first + 5):
        builder.append(1_700_000_000_000, None, value)
    return bytes(builder.build())


def lying_at(offset: int, batch: bytes) -> bytes:
    """As it is read from there."""
    data = bytearray(batch)
    struct.pack_into(">q", data, 0, offset)
    return bytes(data)


async def test_a_batch_of_another_mirror_is_not_taken_for_the_one_behind_a_gap(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One mirror sleeps with records at hand, which the source then removes. Another goes on behind them, and the first
    wakes and writes what it has where the other is about to write, in a batch of as many records.
    """
    await create(clusters.source, "mixed")
    for first in (0, 5):
        await append(clusters.source, "mixed", five(first))
    assert (await mirror(clusters, topics="mixed")).stopped == []
    for first in (10, 15):
        await append(clusters.source, "mixed", five(first))
    await removed(clusters.source, "mixed", 15)
    async with Admin(bootstrap_servers=clusters.source) as admin:
        writer = producer_id_of((await admin.describe_cluster()).cluster_id or "A")
    at_hand = Preparation(writer, 10, 10, None, check_crcs=True)
    at_hand.take(lying_at(10, five(10)), 0)

    saves = PartitionJournal.save
    waking = [bytes(at_hand.batches[0].data)]

    async def save(journal: PartitionJournal, *given: Any, nonce: int) -> None:
        await saves(journal, *given, nonce=nonce)
        while waking:
            assert await append(clusters.target, "A.mixed", waking.pop()) == 10

    monkeypatch.setattr(PartitionJournal, "save", save)
    (why,) = (await mirror(clusters, topics="mixed")).stopped
    assert "A.mixed-0 has another record at 14 than mixed-0 has at 19" in why
    assert await values_of(clusters.target, "A.mixed") == numbers(0, 15), "nothing is missing without a word"


async def test_a_batch_of_another_mirror_is_known_though_the_original_of_its_last_record_is_gone(
    clusters: Clusters, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As before; and by the time at which the copy is placed again the source has lost what was to be written."""
    await create(clusters.source, "mixed-gone")
    for first in (0, 5):
        await append(clusters.source, "mixed-gone", five(first))
    assert (await mirror(clusters, topics="mixed-gone")).stopped == []
    for first in (10, 15, 20):
        await append(clusters.source, "mixed-gone", five(first))
    await removed(clusters.source, "mixed-gone", 15)
    async with Admin(bootstrap_servers=clusters.source) as admin:
        writer = producer_id_of((await admin.describe_cluster()).cluster_id or "A")
    at_hand = Preparation(writer, 10, 10, None, check_crcs=True)
    at_hand.take(lying_at(10, five(10)), 0)

    sends = PartitionCopy._send
    waking = [bytes(at_hand.batches[0].data)]

    async def send(copy: PartitionCopy, batch: ReadyBatch) -> None:
        while waking:
            assert await append(clusters.target, "A.mixed-gone", waking.pop()) == 10
            await removed(clusters.source, "mixed-gone", 20)
        await sends(copy, batch)

    monkeypatch.setattr(PartitionCopy, "_send", send)
    (why,) = (await mirror(clusters, topics="mixed-gone")).stopped
    assert "A.mixed-gone-0 has another record at 10 than was sent there" in why


async def test_markers_that_retention_has_taken_are_no_records_that_are_missing(
    clusters: Clusters, log_lines: list[str]
) -> None:
    """Behind the last record of a topic of transactions lies a marker, and all of it is removed in time."""
    await create(clusters.source, "marked")
    async with (
        Producer(bootstrap_servers=clusters.source, transactional_id="marked") as producer,
        producer.transaction(),
    ):
        await producer.send("marked", b"x", partition=0)
    wanted = {"topics": "marked", "A_consumer_auto_offset_reset": "none"}
    assert (await mirror(clusters, **wanted)).stopped == []
    assert await limits(clusters.source, "marked") == (0, 2)
    await removed(clusters.source, "marked", 2)
    assert (await mirror(clusters, **wanted)).stopped == []
    assert [line for line in log_lines if "removed at the source" in line] == []


async def test_a_target_that_sets_times_is_no_duplicate(clusters: Clusters) -> None:
    """Each of its answers has a time, as otherwise only those to duplicates have."""
    await create(clusters.source, "stamped", message_timestamp_type="LogAppendTime")
    tp = TopicPartition("stamped", 0)
    async with mirroring(clusters, topics="stamped") as flow:
        for count in range(1, 6):
            await produce(clusters.source, "stamped", numbers(20 * count - 20, 20 * count))
            end = 20 * count
            await until(lambda end=end: tp in flow.copies and flow.copies[tp].copied == end, "it copies")
        assert flow.copies[tp]._placed <= 3, "at the beginning, and to learn that the target sets times"
        assert flow.copies[tp].stopped is None
    original = await records_of(clusters.source, "stamped")
    copy = await records_of(clusters.target, "A.stamped")
    assert [one[1:] for one in contents(copy)] == [one[1:] for one in contents(original)]
