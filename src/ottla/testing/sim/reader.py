"""Reading a partition over the wire: once from its start to its end, or on and on as a consumer does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.generated.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.message import Message
from ottla.records.batch import LOG_OVERHEAD, batch_size, iterate
from ottla.records.record import decode_batch
from ottla.testing.sim.history import History, HistoryFault, Row
from ottla.testing.sim.producer import Routes
from ottla.testing.sim.routing import MOVED, ClusterClient
from ottla.testing.sim.transaction_history import TransactionHistory
from ottla.testing.sim.wire import Unreachable

_READ_COMMITTED: Final = 1
_EARLIEST: Final = -2

#: Between two reads of a consumer that leaves what it reads to gather.
_SELDOM_S: Final = 2.0

#: One request of one broker.
Ask = Callable[[Message, int], Awaitable[Any]]


class ReadFault(Exception):
    """The broker answered with an error."""

    def __init__(self, tp: TopicPartition, error: ErrorCode) -> None:
        super().__init__(f"{tp}: {error.name}")
        self.tp = tp
        self.error = error


async def fetch(
    client: Routes, tp: TopicPartition, offset: int, *, wait_ms: int = 0, version: int = 12, bytes_max: int = 1 << 20
) -> tuple[list[Row], int]:
    """Records from `offset` on, and the high watermark. Raises Unreachable and ReadFault."""
    await client.leader_of(tp)
    asked = FetchPartition(
        partition=tp.partition,
        # A leader that does not know yet that it was replaced would call what others showed out of range.
        current_leader_epoch=client.epoch_of(tp),
        fetch_offset=offset,
        partition_max_bytes=bytes_max,
    )
    request = FetchRequest(
        max_wait_ms=wait_ms, min_bytes=1, max_bytes=bytes_max, topics=[FetchTopic(topic=tp.topic, partitions=[asked])]
    )
    answer: Any = await client.ask_leader(tp, request, version)
    partition = answer.responses[0].partitions[0]
    if partition.error_code != ErrorCode.NONE:
        raise _refused(client, tp, ErrorCode(partition.error_code))
    return _rows(bytes(partition.records or b""), offset), partition.high_watermark


def _refused(client: Routes, tp: TopicPartition, error: ErrorCode) -> ReadFault:
    """Before it is read again who leads it is looked up: asking the same broker again and again would never end."""
    if error in MOVED:
        client.forget(tp)
    return ReadFault(tp, error)


def _rows(data: bytes, offset: int) -> list[Row]:
    """The records of all whole batches, from `offset` on: a fetch begins with the batch that holds it."""
    rows: list[Row] = []
    at = 0
    while at + LOG_OVERHEAD <= len(data):
        size = batch_size(data, at)
        if at + size > len(data):
            break
        rows += [(record.offset, record.value or b"") for record in decode_batch(data, at) if record.offset >= offset]
        at += size
    return rows


class CommittedRows(NamedTuple):
    rows: list[Row]
    #: Where to read on: markers and what was aborted are passed over.
    next_offset: int
    high_watermark: int


async def fetch_committed(
    client: Routes,
    tp: TopicPartition,
    offset: int,
    *,
    wait_ms: int = 0,
    bytes_max: int = 1 << 20,
    ask: Ask | None = None,
) -> CommittedRows:
    """As a read_committed consumer, which leaves out by itself what was aborted. Raises Unreachable and ReadFault.

    The leader is asked, unless `ask` asks another replica.
    """
    await client.leader_of(tp)
    asked = FetchPartition(
        partition=tp.partition,
        current_leader_epoch=client.epoch_of(tp),
        fetch_offset=offset,
        partition_max_bytes=bytes_max,
    )
    request = FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        max_bytes=bytes_max,
        isolation_level=_READ_COMMITTED,
        topics=[FetchTopic(topic=tp.topic, partitions=[asked])],
    )
    answer: Any = await (client.ask_leader(tp, request, 12) if ask is None else ask(request, 12))
    partition = answer.responses[0].partitions[0]
    if partition.error_code != ErrorCode.NONE:
        raise _refused(client, tp, ErrorCode(partition.error_code))
    aborted = sorted((each.first_offset, each.producer_id) for each in partition.aborted_transactions or ())
    rows, next_offset = _committed_rows(bytes(partition.records or b""), offset, aborted)
    if next_offset > max(offset, partition.last_stable_offset):
        raise HistoryFault(f"{tp}: {next_offset - 1} was given out, above all below {partition.last_stable_offset}")
    return CommittedRows(rows, next_offset, partition.high_watermark)


def _committed_rows(data: bytes, offset: int, aborted: list[tuple[int, int]]) -> tuple[list[Row], int]:
    """`aborted`: first offset and producer of transactions, in order. A producer's is over with its marker."""
    rows: list[Row] = []
    leaving_out: set[int] = set()
    at, next_offset, begun = 0, offset, 0
    for at, header in iterate(data, 0, len(data)):
        while begun < len(aborted) and aborted[begun][0] <= header.last_offset:
            leaving_out.add(aborted[begun][1])
            begun += 1
        next_offset = max(next_offset, header.next_offset)
        if header.is_control:
            leaving_out.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in leaving_out):
            found = decode_batch(data, at)
            rows += [(record.offset, record.value or b"") for record in found if record.offset >= offset]
    return rows, next_offset


async def follow_committed(
    client: ClusterClient, tp: TopicPartition, history: TransactionHistory, *, of_followers: bool = False
) -> None:
    """A consumer of what is committed that never stops.

    One `of_followers` has them in its rack (KIP-392), and reads now and then: what it finds are several transactions.
    """
    offset = 0
    while True:
        if of_followers:
            await asyncio.sleep(_SELDOM_S)
        began = history.now()
        try:
            ask = (await client.follower_of(tp)).ask if of_followers else None
            found = await fetch_committed(client, tp, offset, wait_ms=500, ask=ask)
        except Unreachable:
            await asyncio.sleep(0.1)
            continue
        except ReadFault as fault:
            # A follower may not have come so far yet.
            if fault.error == ErrorCode.OFFSET_OUT_OF_RANGE and not of_followers:
                raise HistoryFault(f"{tp}: offset {offset} follows what was seen and is out of range") from fault
            await asyncio.sleep(0.1)
            continue
        history.read(client.name, began, tp, offset, found.next_offset, found.rows)
        offset = found.next_offset


async def read_all_committed(client: Routes, tp: TopicPartition) -> list[Row]:
    """Everything to the high watermark, while no transaction is open."""
    end, rows, offset = await end_offset(client, tp), list[Row](), 0
    while offset < end:
        found = await fetch_committed(client, tp, offset)
        if found.next_offset == offset:
            raise ReadFault(tp, ErrorCode.OFFSET_NOT_AVAILABLE)
        rows += found.rows
        offset = found.next_offset
    return rows


async def end_offset(client: Routes, tp: TopicPartition, timestamp: int = -1) -> int:
    await client.leader_of(tp)
    asked = ListOffsetsPartition(
        partition_index=tp.partition, current_leader_epoch=client.epoch_of(tp), timestamp=timestamp
    )
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=tp.topic, partitions=[asked])])
    partition = (await client.ask_leader(tp, request, 7)).topics[0].partitions[0]
    if partition.error_code != ErrorCode.NONE:
        raise _refused(client, tp, ErrorCode(partition.error_code))
    offset: int = partition.offset
    return offset


async def start_offset(client: Routes, tp: TopicPartition) -> int:
    return await end_offset(client, tp, timestamp=_EARLIEST)


async def read_all(client: Routes, tp: TopicPartition, *, start: int = 0) -> list[Row]:
    """Everything from `start` to the high watermark."""
    end, rows = await end_offset(client, tp), []
    offset = start
    while offset < end:
        found, _ = await fetch(client, tp, offset)
        if not found:
            raise HistoryFault(f"{tp}: ends at {end}, and there is nothing at {offset}")
        rows += found
        offset = found[-1][0] + 1
    return rows


async def follow(client: Routes, tp: TopicPartition, history: History) -> None:
    """A consumer that never stops: what it sees must stay, and its position must stay valid."""
    offset, epoch = 0, -1
    while True:
        try:
            if epoch != client.epoch_of(tp):
                # A leader that does not know yet what is committed may not answer from what it knows (KIP-207).
                end = await end_offset(client, tp)
                if end < offset:
                    raise HistoryFault(f"{tp}: offset {offset - 1} was seen, and the end is {end} now")
                epoch = client.epoch_of(tp)
            rows, high_watermark = await fetch(client, tp, offset, wait_ms=500)
        except Unreachable:
            await asyncio.sleep(0.1)
            continue
        except ReadFault as fault:
            if fault.error == ErrorCode.OFFSET_OUT_OF_RANGE:
                if offset >= history.trimmed.get(tp, 0):
                    raise HistoryFault(f"{tp}: offset {offset} follows what was seen and is out of range") from fault
                offset = await _next_start(client, tp, offset)
            await asyncio.sleep(0.1)
            continue
        if rows and rows[0][0] != offset:
            raise HistoryFault(f"{tp}: asked for {offset} and got {rows[0][0]}")
        history.see(tp, rows)
        if rows:
            offset = rows[-1][0] + 1
            if offset > high_watermark:
                raise HistoryFault(f"{tp}: {offset - 1} was given out, above the high watermark {high_watermark}")


async def _next_start(client: Routes, tp: TopicPartition, offset: int) -> int:
    """Where to go on: what is at `offset` was deleted, or another leader has it still."""
    try:
        return max(offset, await start_offset(client, tp))
    except (Unreachable, ReadFault):
        return offset
