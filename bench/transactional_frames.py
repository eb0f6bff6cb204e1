"""Small produces inside long transactions, under the raw load generator."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from bench.frames import PRODUCE, PRODUCE_VERSION, VALUE_SIZE, Frame, batch, first_difference, produce_answer
from bench.lifecycle import brokers
from bench.load import Outcome, Work, run
from bench.results import Figures, Goal, Measure, Results
from bench.scenario import Context
from bench.servers import Places, Running
from bench.throughput import P50, P99
from bench.wire import Wire, WireError, delete_topic, fresh_topic
from ottla.model import ErrorCode
from ottla.protocol.generated.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.protocol.generated.end_txn import EndTxnRequest
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest
from ottla.protocol.generated.init_producer_id import InitProducerIdRequest
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.header import RequestHeader, encode_request
from ottla.protocol.message import Message
from ottla.records.record import Record, encode_batch

FIND_COORDINATOR, INIT_PRODUCER_ID, ADD_PARTITIONS, END_TXN = 10, 22, 24, 26
TOPIC = "small"
#: For longer than any round.
TIMEOUT_MS = 600_000
ANSWER_SECONDS_MAX = 60.0
_OF_TRANSACTIONS = 1
#: What passes by itself.
_PASSES = frozenset(
    {
        *(ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR),
        *(ErrorCode.CONCURRENT_TRANSACTIONS,),
    }
)


class Transaction:
    """One producer's, spoken by hand: without an id it is an idempotent producer in no transaction."""

    def __init__(self, port: int, transactional_id: str | None) -> None:
        self._port = port
        self.id = transactional_id
        asked = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=TIMEOUT_MS)
        found = self._until_done(INIT_PRODUCER_ID, 3, asked)
        self.producer_id, self.epoch = found.producer_id, found.producer_epoch

    def begin(self, topic: str) -> None:
        asked = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id or "",
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
        )
        with Wire(self._port) as wire:
            added = wire.call(ADD_PARTITIONS, 3, asked).results_by_topic_v3_and_below[0].results_by_partition[0]
        if added.partition_error_code:
            raise WireError(f"AddPartitionsToTxn: error {added.partition_error_code}")

    def commit(self) -> None:
        asked = EndTxnRequest(
            transactional_id=self.id or "",
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=True,
        )
        self._until_done(END_TXN, 3, asked)

    def frame(self, topic: str) -> tuple[Frame, int]:
        """A Produce request of one record, and where it has the sequence of its batch."""
        requests = [self._request(topic, sequence) for sequence in (0, 1 << 24)]
        good, bad = (produce_answer(topic, error, PRODUCE_VERSION) for error in (0, 1))
        payload = len(batch(1))
        # The checksum differs too, and stands before.
        differs = [at for at, (one, two) in enumerate(zip(*requests, strict=True)) if one != two]
        return Frame(request=requests[0], error_position=first_difference(good, bad) - 1, payload=payload), differs[-1]

    def _request(self, topic: str, sequence: int) -> bytes:
        record = Record(offset=0, timestamp=int(time.time() * 1000), key=None, value=bytes(VALUE_SIZE), headers=())
        data = encode_batch(
            [record],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=sequence,
            transactional=self.id is not None,
        )
        parts = [PartitionProduceData(index=0, records=data)]
        message = ProduceRequest(
            transactional_id=self.id,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name=topic, partition_data=parts)],
        )
        header = RequestHeader(api_key=PRODUCE, api_version=PRODUCE_VERSION, correlation_id=7, client_id="bench")
        return encode_request(header, message)

    def _until_done(self, key: int, version: int, message: Message) -> Any:
        deadline = time.monotonic() + ANSWER_SECONDS_MAX
        with Wire(self._port) as wire:
            if self.id is not None:
                wire.call(FIND_COORDINATOR, 2, FindCoordinatorRequest(key=self.id, key_type=_OF_TRANSACTIONS))
            while (answer := wire.call(key, version, message)).error_code in _PASSES and time.monotonic() < deadline:
                time.sleep(0.02)
        if answer.error_code:
            raise WireError(f"API {key}: error {answer.error_code}")
        return answer


@dataclass(frozen=True, kw_only=True)
class SmallProduces:
    """One record each, with numbers of their producers: 50 connections, each a producer, in transactions or in none."""

    name: str = "transactions-produce-small"
    title: str = "produce, one 100-byte record, 50 producers in long transactions"
    connections: int = 50
    measures: Sequence[Measure] = (
        Measure(name="transactional", label="rate", unit="k requests/s", digits=1),
        Measure(name="idempotent", label="rate of idempotent ones", unit="k requests/s", digits=1),
        Measure(name="share", label="of the rate of idempotent ones", unit="", digits=2),
        Measure(name="cpu", label="server CPU", unit="us a request (s a million)", digits=1),
        P50,
        P99,
    )
    goals: Sequence[Goal] = (Goal(measure="share", at_least=0.9),)

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)

        def warm(kind: str) -> None:
            self._once(context.shared(kind), context.effort.warm_seconds, context.places, in_transaction=True)

        def take(kind: str) -> Figures:
            running = context.shared(kind)
            outcome = self._once(running, context.effort.seconds, context.places, in_transaction=True)
            idempotent = self._once(running, context.effort.seconds, context.places, in_transaction=False)
            return {
                "transactional": outcome.rate / 1000,
                "idempotent": idempotent.rate / 1000,
                "share": outcome.rate / idempotent.rate,
                "cpu": outcome.cpu_microseconds_per_request,
                "p50": outcome.p50,
                "p99": outcome.p99,
            }

        context.measure_in_turns(results, brokers(context), take, lambda _: context.effort.rounds, warm=warm)
        return results

    def _once(self, running: Running, seconds: float, places: Places, *, in_transaction: bool) -> Outcome:
        fresh_topic(running.port, TOPIC)
        names = [f"long-{number:02}" if in_transaction else None for number in range(self.connections)]
        transactions = [Transaction(running.port, name) for name in names]
        with ExitStack() as stack:
            stack.callback(delete_topic, running.port, TOPIC)
            if in_transaction:
                for each in transactions:
                    each.begin(TOPIC)
                    stack.callback(each.commit)
            frames, positions = zip(*(each.frame(TOPIC) for each in transactions), strict=True)
            work = Work(
                frame=joined(frames),
                connections=self.connections,
                seconds=seconds,
                frames=len(frames),
                sequence_position=positions[0],
            )
            return run(work, running, places)


def joined(frames: Sequence[Frame]) -> Frame:
    """Behind each other, all of one size."""
    assert len({len(each.request) for each in frames}) == 1, "producers have names of one length"
    first = frames[0]
    return Frame(
        request=b"".join(each.request for each in frames),
        error_position=first.error_position,
        payload=first.payload,
    )
