"""Conversations with the transaction coordinator, and what Apache Kafka 4.3 answered (``transaction-answers.txt``).

OTTLA_INTEROP_TARGET=kafka python -m tests.interop.transaction_answers    writes it anew; needs Java

Producer ids are counted from the first that is seen, and times are left out.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from ottla.model import TRANSACTION_TOPIC, ErrorCode
from ottla.protocol.generated.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.generated.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.generated.end_txn import EndTxnRequest
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest
from ottla.protocol.generated.init_producer_id import InitProducerIdRequest
from ottla.protocol.generated.list_transactions import ListTransactionsRequest
from ottla.protocol.generated.transaction_log_key import TransactionLogKey
from ottla.protocol.generated.transaction_log_value import TransactionLogValue
from ottla.protocol.message import Message, Structure
from tests.interop.clients import SECONDS_MAX
from tests.interop.group_wire import Peer

ANSWERS = Path(__file__).with_name("transaction-answers.txt")
PROPERTIES = {
    "transaction.state.log.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "50",
    "offsets.topic.num.partitions": "5",
    "offsets.topic.replication.factor": "1",
}
TOPIC = "answers"
NOBODY = (-1, -1)
CONCURRENT, LOADING = ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
#: Of no interest, or different each time.
_LEFT_OUT = frozenset({"throttle_time_ms", "transaction_start_time_ms", "transaction_last_update_timestamp_ms"})
_PRODUCERS = frozenset({"producer_id", "previous_producer_id", "next_producer_id"})
_ERRORS = frozenset({"error_code", "partition_error_code"})

Producer = tuple[int, int]
_numbers = itertools.count()


class Talk:
    """One peer and one transactional id; ``lines`` is what was asked and answered."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.peer = Peer(bootstrap, "asking")
        self.id = f"id-{uuid.uuid4().hex[:8]}-{next(_numbers)}"
        self.lines: list[str] = []
        self._first_producer: int | None = None
        self._find(self.id)
        # From here on no producer has the id 0, which stands for none in errors.
        self.init("comes before", name=f"{self.id}-before")
        self.lines.clear()
        self._first_producer = None

    def _find(self, name: str) -> None:
        """The first question of all creates the topic, and loading it takes a moment."""
        deadline = time.monotonic() + SECONDS_MAX
        look = DescribeTransactionsRequest(transactional_ids=[name])
        while True:
            found = self.peer.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=[name]), 4).coordinators[0]
            if found.error_code == ErrorCode.NONE:
                described = self.peer.ask(look, 0).transaction_states[0]
                if described.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                    break
            assert time.monotonic() < deadline, found
            time.sleep(0.02)

    def ask(self, what: str, message: Message, version: int, *, while_concurrent: bool = False) -> Any:
        """``while_concurrent``: asked again while the transaction before ends; the last answer is written down."""
        deadline = time.monotonic() + SECONDS_MAX
        # Kafka's word while it has no producer ids yet.
        passing = [f"={LOADING.name}", *([f"={CONCURRENT.name}"] if while_concurrent else [])]
        answer = self.peer.ask(message, version)
        while any(each in self._written(answer) for each in passing):
            assert time.monotonic() < deadline, what
            time.sleep(0.02)
            answer = self.peer.ask(message, version)
        self.lines.append(f"{what}, version {version}: {self._written(answer)}")
        return answer

    # What is asked for

    def init(
        self,
        what: str,
        producer: Producer = NOBODY,
        *,
        version: int = 5,
        timeout_ms: int = 60_000,
        name: str | None = None,
        waits: bool = False,
    ) -> Producer:
        request = InitProducerIdRequest(
            transactional_id=self.id if name is None else name,
            transaction_timeout_ms=timeout_ms,
            producer_id=producer[0],
            producer_epoch=producer[1],
        )
        answer = self.ask(what, request, version, while_concurrent=waits)
        return answer.producer_id, answer.producer_epoch

    def add(
        self, what: str, producer: Producer, *partitions: int, version: int = 3, topic: str = TOPIC, waits: bool = False
    ) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )
        self.ask(what, request, version, while_concurrent=waits)

    def add_many(
        self,
        what: str,
        *transactions: tuple[str, Producer, bool, Sequence[int]],
        version: int = 5,
        topic: str = TOPIC,
        waits: bool = False,
    ) -> None:
        request = AddPartitionsToTxnRequest(
            transactions=[
                AddPartitionsToTxnTransaction(
                    transactional_id=name,
                    producer_id=producer[0],
                    producer_epoch=producer[1],
                    verify_only=verify,
                    topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
                )
                for name, producer, verify, partitions in transactions
            ]
        )
        self.ask(what, request, version, while_concurrent=waits)

    def end(
        self,
        what: str,
        producer: Producer,
        *,
        commit: bool = True,
        version: int = 4,
        name: str | None = None,
        waits: bool = False,
    ) -> Producer:
        request = EndTxnRequest(
            transactional_id=self.id if name is None else name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=commit,
        )
        answer = self.ask(what, request, version, while_concurrent=waits)
        return answer.producer_id, answer.producer_epoch

    def describe(self, *names: str, until: str | None = None) -> None:
        request = DescribeTransactionsRequest(transactional_ids=list(names or (self.id,)))
        deadline = time.monotonic() + SECONDS_MAX
        while until is not None:
            found = self.peer.ask(request, 0).transaction_states[0].transaction_state
            if found == until:
                break
            assert time.monotonic() < deadline, found
            time.sleep(0.02)
        self.ask("is described", request, 0)

    def stored(self) -> None:
        """All records of the id, field by field."""
        reader = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": self.id, "isolation.level": "read_committed"}
        )
        try:
            for partition in range(int(PROPERTIES["transaction.state.log.num.partitions"])):
                at = TopicPartition(TRANSACTION_TOPIC, partition, 0)
                _, end = reader.get_watermark_offsets(at, timeout=SECONDS_MAX)
                reader.assign([at])
                position = 0  # of a partition without records the reader knows none
                while position < end:
                    message = reader.poll(SECONDS_MAX)
                    assert message is not None
                    assert message.error() is None, message.error()
                    self._write_record(message.key(), message.value())
                    position = message.offset() + 1
        finally:
            reader.close()

    def _write_record(self, key: bytes, value: bytes) -> None:
        if TransactionLogKey.decode(key, 0, 2)[0].transactional_id != self.id:
            return
        version = int.from_bytes(value[:2], "big")
        read, end = TransactionLogValue.decode(value, version, 2)
        assert end == len(value)
        self.lines.append(f"a record of key {key[:2].hex()} and version {version}: {self._written(read)}")

    # Writing down

    def _written(self, value: Any, name: str = "") -> str:
        if isinstance(value, Structure):
            fields = [
                f"{each}={self._written(getattr(value, each), each)}"
                for each in value.__slots__
                if each not in _LEFT_OUT and not (each == "unknown_tags" and not getattr(value, each))
            ]
            return f"({' '.join(fields)})"
        if isinstance(value, list):
            return "[" + ", ".join(sorted(self._written(each, name) for each in value)) + "]"
        if name in _ERRORS:
            return ErrorCode(value).name
        if name in _PRODUCERS and value > 0:
            if self._first_producer is None:
                self._first_producer = value
            return f"first+{value - self._first_producer}"
        if name == "transaction_start_timestamp_ms" and value > 0:
            return "<a time>"
        text = repr(value)
        return f"'<long of {len(value)}>'" if len(text) > 1_000 else text.replace(self.id, "<id>")


def requests_without_sense(talk: Talk) -> None:
    talk.init("an empty id", name="")
    for timeout_ms in (0, -1, 900_001):
        talk.init(f"a time-out of {timeout_ms}", timeout_ms=timeout_ms)
    talk.init("the longest time-out", timeout_ms=900_000)
    talk.init("an id without an epoch", (7, -1))
    talk.init("an epoch without an id", (-1, 7))
    talk.end("an end of an empty id", (7, 0), name="")
    talk.end("an end of an empty id", (7, 0), name="", version=5)
    talk.add("an unknown producer", (7, 0), 0)
    talk.describe("", "nobody's", talk.id)


def unknown_ids(talk: Talk) -> None:
    for version in (0, 1, 2, 3):
        talk.add("adds under an unknown id", (7, 0), 0, version=version)
    for version in range(6):
        talk.end("ends under an unknown id", (7, 0), version=version)
    for version in range(5):
        request = AddOffsetsToTxnRequest(
            transactional_id=talk.id, producer_id=7, producer_epoch=0, group_id=f"group of {talk.id}"
        )
        talk.ask("adds offsets under an unknown id", request, version)
    talk.add_many("is asked about an unknown id", (talk.id, (7, 0), True, [0]), (talk.id + "-b", (7, 0), False, [1]))
    talk.init("goes on under an unknown id", (7, 3))


def classic_transactions(talk: Talk) -> None:
    producer = talk.init("comes", version=1)
    talk.end("commits nothing", producer)
    talk.end("aborts nothing", producer, commit=False)
    talk.add("adds", producer, 0)
    talk.describe()
    talk.add("adds again", producer, 0)
    talk.add("adds more", producer, 0, 1)
    talk.describe()
    talk.add("adds what is not there", producer, 0, 99)
    talk.add("adds a topic that is not there", producer, 0, topic="nowhere")
    talk.end("commits", producer)
    talk.end("commits again", producer, waits=True)
    talk.describe()
    talk.end("aborts what is committed", producer, commit=False)
    talk.add("begins anew", producer, 1, version=0)
    talk.end("aborts", producer, commit=False, version=1)
    talk.end("aborts again", producer, commit=False, waits=True)
    talk.end("commits what is aborted", producer)
    request = AddOffsetsToTxnRequest(
        transactional_id=talk.id, producer_id=producer[0], producer_epoch=producer[1], group_id="its group"
    )
    talk.ask("adds offsets", request, 3)
    talk.end("commits", producer, version=3)
    talk.describe(until="CompleteCommit")


def wrong_producers(talk: Talk) -> None:
    producer_id, epoch = talk.init("comes")
    talk.add("adds", (producer_id, epoch), 0)
    for what, wrong in (
        ("another id", (producer_id + 1_000_000, epoch)),
        ("a later epoch", (producer_id, epoch + 1)),
        ("an earlier epoch", (producer_id, epoch - 1)),
    ):
        for version in (0, 1, 2, 3):
            talk.add(f"adds with {what}", wrong, 1, version=version)
        for version in (0, 1, 2, 4, 5):
            talk.end(f"commits with {what}", wrong, version=version)
        talk.add_many(f"is looked up with {what}", (talk.id, wrong, True, [0]))
        talk.add_many(f"is added to with {what}", (talk.id, wrong, False, [0]))
    talk.init("goes on with another id", (producer_id + 1_000_000, epoch), waits=True)
    for version in (3, 4):
        talk.init("goes on with a later epoch", (producer_id, epoch + 7), version=version, waits=True)


def an_epoch_a_transaction(talk: Talk) -> None:
    first = talk.init("comes")
    talk.end("commits nothing", first, version=5)
    talk.add_many("a partition is added", (talk.id, first, False, [0, 1]))
    talk.add_many("they are looked up", (talk.id, first, True, [0, 1, 2]), version=4)
    second = talk.end("commits", first, version=5)
    talk.end("commits again", first, version=5, waits=True)
    talk.end("aborts what is committed", first, commit=False, version=5)
    talk.describe()
    talk.end("commits nothing under the new epoch", second, version=5)
    third = talk.end("aborts nothing", second, commit=False, version=5)
    talk.end("aborts nothing again", second, commit=False, version=5, waits=True)
    talk.end("commits what is aborted", second, version=5)
    talk.end("comes with an old epoch", first, version=5)
    talk.describe()
    talk.add_many("a partition is added", (talk.id, third, False, [2]), waits=True)
    talk.add_many("the old epoch adds", (talk.id, second, False, [2]))
    talk.end("aborts", third, commit=False, version=5)
    talk.end("commits what is aborted", third, version=5, waits=True)
    talk.describe()


def both_protocols(talk: Talk) -> None:
    producer = talk.init("comes")
    talk.add("adds in the old way", producer, 0)
    later = talk.end("commits in the new way", producer, version=5)
    talk.add("adds in the old way", later, 0, waits=True)
    talk.end("commits in the old way", later)
    talk.end("commits again in the new way", later, version=5, waits=True)
    talk.describe()


def several_at_once(talk: Talk) -> None:
    one = talk.init("comes")
    talk.add("adds", one, 0)
    other = talk.init("another comes", name=talk.id + "-b")
    talk.add_many(
        "many are asked about",
        (talk.id, one, True, [0, 1]),
        (talk.id + "-b", other, False, [1]),
        (talk.id + "-c", one, True, [0]),
        ("", one, True, [0]),
        ("", one, False, [0]),
    )
    talk.add_many("a topic that is not there", (talk.id, one, True, [0]), topic="nowhere")
    talk.add_many("a partition that is not there", (talk.id, one, True, [0, 99]))
    talk.describe(talk.id, talk.id + "-b")


def going_on(talk: Talk) -> None:
    """KIP-360."""
    producer_id, epoch = talk.init("comes")
    talk.init("goes on", (producer_id, epoch))
    talk.init("has missed the answer", (producer_id, epoch))
    talk.init("goes on again", (producer_id, epoch + 1))
    for version in (3, 4, 5):
        talk.init("comes with what is long over", (producer_id, epoch), version=version)
    newest = talk.init("another comes")
    talk.init("the one before goes on", (producer_id, newest[1] - 1))


def fences(talk: Talk) -> None:
    producer = talk.init("comes")
    talk.add("adds", producer, 0)
    talk.init("another comes")
    newest = talk.init("it comes again", waits=True)
    talk.describe()
    talk.add("the first one adds", producer, 1)
    for version in (1, 4, 5):
        talk.end("the first one commits", producer, version=version)
    talk.add("the newest adds", newest, 1)
    talk.init("it goes on in the middle of its transaction", newest)
    talk.init("it goes on", newest, waits=True)
    talk.describe()


def abandoned(talk: Talk) -> None:
    producer = talk.init("comes", timeout_ms=100)
    talk.add("adds", producer, 0)
    talk.describe(until="CompleteAbort")
    talk.end("commits after its time", producer)
    talk.end("commits after its time", producer, version=5)
    talk.end("aborts after its time", producer, commit=False, version=5)
    talk.init("goes on", producer)
    talk.describe()


def long_ids(talk: Talk) -> None:
    for length in (255, 32_767):
        name = talk.id + "x" * (length - len(talk.id))
        talk.init(f"an id of {length} characters", name=name, version=5)
        talk.end(f"an id of {length} characters", (7, 0), name=name, version=5)


def what_is_stored(talk: Talk) -> None:
    producer = talk.init("comes")
    talk.add("adds", producer, 0, 2)
    talk.end("commits", producer)
    talk.describe(until="CompleteCommit")
    talk.add_many("a partition is added", (talk.id, producer, False, [1]))
    later = talk.end("aborts", producer, commit=False, version=5)
    talk.describe(until="CompleteAbort")
    talk.add("adds", later, 1)
    talk.init("another comes")
    talk.init("it comes again", waits=True)
    talk.stored()


def lists(talk: Talk) -> None:
    producer = talk.init("comes")
    talk.add("adds", producer, 0)
    talk.init("another comes", name=talk.id + "-b")

    def listed(what: str, version: int = 2, **filters: Any) -> None:
        filters.setdefault("producer_id_filters", [producer[0], producer[0] + 1])
        talk.ask(f"is listed by {what}", ListTransactionsRequest(**filters), version)

    for version in range(3):
        listed("producers", version)
    listed("states", state_filters=["Ongoing"])
    listed("states", state_filters=["Empty", "CompleteCommit"])
    listed("states that are none", state_filters=["Nonsense", "Ongoing", "ongoing"])
    listed("one state that is none", state_filters=["Nonsense"])
    listed("a state that none is in", state_filters=["Dead"])
    listed("how long they are open", duration_filter=0)
    listed("how long they are open", duration_filter=3_600_000)
    listed("any duration", duration_filter=-5)
    listed("an expression", transactional_id_pattern=f"{talk.id}-.*")
    listed("an expression", transactional_id_pattern=talk.id)
    listed("an expression of a part", transactional_id_pattern="id-")
    listed("an empty expression", transactional_id_pattern="")
    listed("no expression", transactional_id_pattern="(")
    listed("another producer", producer_id_filters=[123_456_789])


SCENARIOS: dict[str, Callable[[Talk], None]] = {
    scenario.__name__.replace("_", " "): scenario
    for scenario in (
        requests_without_sense,
        unknown_ids,
        classic_transactions,
        wrong_producers,
        an_epoch_a_transaction,
        both_protocols,
        several_at_once,
        going_on,
        fences,
        abandoned,
        long_ids,
        what_is_stored,
        lists,
    )
}


def converse(bootstrap: str, scenario: str) -> list[str]:
    """Holds one conversation about a topic of three partitions; returns what was said."""
    talk = Talk(bootstrap)
    try:
        SCENARIOS[scenario](talk)
    finally:
        talk.peer.close()
    return talk.lines


def recorded() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in ANSWERS.read_text().splitlines():
        if line.startswith("== "):
            lines = found[line[3:]] = []
        elif line:
            lines.append(line)
    return found


def main() -> None:
    from tests.interop.conftest import TARGET, create_topic, new_broker

    assert TARGET == "kafka", "the answers are Apache Kafka's"
    with tempfile.TemporaryDirectory() as folder, new_broker(Path(folder), PROPERTIES).server as server:
        create_topic(AdminClient({"bootstrap.servers": server.bootstrap}), TOPIC, partitions=3)
        text = ""
        for scenario in SCENARIOS:
            lines = converse(server.bootstrap, scenario)
            text += f"== {scenario}\n" + "".join(f"{line}\n" for line in lines) + "\n"
    ANSWERS.write_text(text)


if __name__ == "__main__":
    os.environ.setdefault("OTTLA_INTEROP_TARGET", "kafka")
    main()
