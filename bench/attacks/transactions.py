"""What transactions let one client do: wide ones, very many open ones, and long questions about them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any

from bench.attacks.attack import Attack, Attacker, Bound, Outcome, Victim
from bench.transactional_frames import Transaction
from bench.wire import create_topic
from ottla.protocol.generated.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.protocol.generated.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.generated.end_txn import EndTxnRequest
from ottla.protocol.generated.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.generated.list_transactions import ListTransactionsRequest
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.header import RequestHeader, decode_response_header, encode_request
from ottla.protocol.message import Message
from ottla.records.record import Record, encode_batch

PRODUCE, OFFSET_COMMIT, INIT_PRODUCER_ID, ADD_PARTITIONS, END_TXN = 0, 8, 22, 24, 26
DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 65, 66
TOPIC = "wide"
#: Of a transaction at the most, and of the topic.
PARTITIONS = 10_000
#: Transactions that are one partition short of it.
WIDE = 100
#: Partitions that the topic does not have.
MISSING = range(2 * PARTITIONS, 2 * PARTITIONS + 150_000)
OPEN = 20_000
TIMEOUT_MS = 600_000
IN_FLIGHT = 200
#: Of an id: nearly as long as one may be.
LONG_ID = 31_900
EXPRESSION = "[ab]*a[ab]{1000}"


def frame(key: int, version: int, message: Message) -> bytes:
    return encode_request(
        RequestHeader(api_key=key, api_version=version, correlation_id=1, client_id="attack"), message
    )


def ask_all(attackers: Sequence[Attacker], frames: Iterable[bytes]) -> Iterator[bytes]:
    """The answers to all of them, some of which are in flight at once; the attackers send them in turn."""
    left, waiting = zip(cycle(attackers), frames), deque[tuple[Attacker, bytes]]()
    while True:
        while len(waiting) < IN_FLIGHT and (next_one := next(left, None)) is not None:
            attacker, one = next_one
            attacker.send(one)
            waiting.append(next_one)
        if not waiting:
            return
        attacker, one = waiting.popleft()
        yield attacker.answer_to(one).raw


def producers(victim: Victim, names: list[str]) -> list[tuple[str, int, int]]:
    """Ids with their producers, each new."""
    Transaction(victim.port, "the-first")  # has the topic made
    with victim.connect() as attacker:
        return initialised([attacker], names, TIMEOUT_MS)


def initialised(attackers: Sequence[Attacker], names: list[str], timeout_ms: int) -> list[tuple[str, int, int]]:
    requests = (
        frame(INIT_PRODUCER_ID, 4, InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms))
        for name in names
    )
    found = []
    for name, raw in zip(names, ask_all(attackers, requests), strict=True):
        _, _, start = decode_response_header(raw, INIT_PRODUCER_ID, 4)
        answer = InitProducerIdResponse.decode(raw, 4, start)[0]
        assert not answer.error_code, f"InitProducerId: error {answer.error_code}"
        found.append((name, answer.producer_id, answer.producer_epoch))
    return found


def adds(producer: tuple[str, int, int], topic: str, partitions: Iterable[int]) -> bytes:
    name, producer_id, epoch = producer
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
    )
    return frame(ADD_PARTITIONS, 3, request)


def aborts(producer: tuple[str, int, int]) -> bytes:
    name, producer_id, epoch = producer
    request = EndTxnRequest(transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=False)
    return frame(END_TXN, 3, request)


def writes(producer: tuple[str, int, int], topic: str) -> bytes:
    name, producer_id, epoch = producer
    record = Record(offset=0, timestamp=int(time.time() * 1000), key=None, value=b"v", headers=())
    data = encode_batch([record], producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True)
    parts = [PartitionProduceData(index=0, records=data)]
    request = ProduceRequest(
        transactional_id=name,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=parts)],
    )
    return frame(PRODUCE, 9, request)


class Wide(Attack):
    """Wide transactions, each of a client of its own, to all of which the same happens in the same moment."""

    name = "wide-transactions"
    sends = f"{WIDE} clients, each with a transaction of {PARTITIONS - 1:,} partitions, add one more and end it at once"
    #: A crowd waits for the sum of what it asks; and what a transaction holds in memory is documented.
    bound = Bound(stall_ms=150, memory_mb=256)
    seconds_max = 300.0

    def prepare(self, victim: Victim) -> None:
        create_topic(victim.port, TOPIC, PARTITIONS)
        self._producers = producers(victim, [f"wide-{number:03}" for number in range(WIDE)])
        with victim.connect() as attacker:
            for each in self._producers:
                attacker.ask(adds(each, TOPIC, range(PARTITIONS - 1)))

    def run(self, victim: Victim) -> Outcome:
        outcome = Outcome()
        with ExitStack() as stack:
            clients = [stack.enter_context(victim.connect()) for _ in self._producers]
            for frames in (
                [adds(each, TOPIC, [PARTITIONS - 1]) for each in self._producers],
                [aborts(each) for each in self._producers],
            ):
                for client, one in zip(clients, frames, strict=True):
                    client.send(one)
                outcome.answers += [client.answer_to(one) for client, one in zip(clients, frames, strict=True)]
        return outcome


class Described(Attack):
    name = "describe-transactions"
    sends = (
        f"DescribeTransactions of {WIDE} transactions of {PARTITIONS:,} partitions, and of one of them 100,000 times"
    )
    bound = Bound(memory_mb=160)
    seconds_max = 300.0

    def prepare(self, victim: Victim) -> None:
        create_topic(victim.port, TOPIC, PARTITIONS)
        names = [f"wide-{number:03}" for number in range(WIDE)]
        with victim.connect() as attacker:
            for each in producers(victim, names):
                attacker.ask(adds(each, TOPIC, range(PARTITIONS)))
        self._frames = [
            frame(DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest(transactional_ids=asked))
            for asked in (names, names[:1] * 100_000)
        ]

    def run(self, victim: Victim) -> Outcome:
        with victim.connect() as attacker:
            return Outcome(answers=[attacker.ask(each) for each in self._frames])


class Expression(Attack):
    name = "transactions-by-expression"
    sends = f"ListTransactions by {EXPRESSION} where 100 ids have {LONG_ID:,} characters"

    def prepare(self, victim: Victim) -> None:
        producers(victim, ["a" * LONG_ID + str(number) for number in range(100)])

    def run(self, victim: Victim) -> Outcome:
        request = ListTransactionsRequest(transactional_id_pattern=EXPRESSION)
        with victim.connect() as attacker:
            return Outcome(answers=[attacker.ask(frame(LIST_TRANSACTIONS, 2, request))])


class ManyOpen(Attack):
    name = "open-transactions"
    sends = f"{OPEN:,} transactions that are open in one partition are aborted in their order"
    seconds_max = 300.0

    def prepare(self, victim: Victim) -> None:
        create_topic(victim.port, "open")
        self._producers = producers(victim, [f"open-{number:06}" for number in range(OPEN)])
        with victim.connect() as attacker:
            for _ in ask_all([attacker], (adds(each, "open", [0]) for each in self._producers)):
                pass
            for _ in ask_all([attacker], (writes(each, "open") for each in self._producers)):
                pass

    def run(self, victim: Victim) -> Outcome:
        with victim.connect() as attacker:
            ended = sum(1 for _ in ask_all([attacker], map(aborts, self._producers)))
        return Outcome(said=f"{ended:,} ended")


@dataclass
class NotThere(Attack):
    """Partitions that a wide topic does not have."""

    name: str
    sends: str
    #: Makes the request.
    request: Any
    bound: Bound = field(default_factory=Bound)

    def prepare(self, victim: Victim) -> None:
        create_topic(victim.port, TOPIC, PARTITIONS)
        self._frame = self.request(producers(victim, ["id"])[0])

    def run(self, victim: Victim) -> Outcome:
        with victim.connect() as attacker:
            return Outcome(sent=len(self._frame), answers=[attacker.ask(self._frame)])


def missing_in_transaction(producer: tuple[str, int, int]) -> bytes:
    return adds(producer, TOPIC, MISSING)


def missing_in_commit(_: tuple[str, int, int]) -> bytes:
    partitions = [OffsetCommitRequestPartition(partition_index=number, committed_offset=0) for number in MISSING]
    topics = [OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)]
    return frame(OFFSET_COMMIT, 8, OffsetCommitRequest(group_id="g", topics=topics))


def attacks() -> list[Attack]:
    count = f"{len(MISSING):,} partitions that a topic of {PARTITIONS:,} does not have"
    return [
        Wide(),
        Described(),
        Expression(),
        ManyOpen(),
        NotThere("missing-in-transaction", f"AddPartitionsToTxn of {count}", missing_in_transaction),
        NotThere("missing-in-commit", f"OffsetCommit of {count}", missing_in_commit),
    ]
