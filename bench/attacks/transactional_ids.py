"""Transactional ids and partitions of transactions, as many as a client likes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from bench.attacks.attack import Attack, Bound, Outcome, Victim
from bench.wire import Wire, create_topic
from ottla.model import ErrorCode
from ottla.protocol.generated.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.protocol.generated.end_txn import EndTxnRequest
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest
from ottla.protocol.generated.init_producer_id import InitProducerIdRequest
from ottla.protocol.header import RequestHeader, encode_request
from ottla.protocol.message import Message

FIND_COORDINATOR, INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, END_TXN = 10, 22, 24, 26
IDS = 50_000
#: What an id may cost where there are more of them: a million may have a gigabyte.
ID_MB = 0.001
#: On a machine with other work.
IDS_A_SECOND_MIN = 500
#: Sent before their answers are read.
IDS_AT_ONCE = 100
LONG_IDS = 2_000
ID_LENGTH_MAX = 32_767
TOPIC = "wide"
PARTITIONS = 10_000
#: After all of them were added but these: one more each time.
ONE_BY_ONE = 100
TIMEOUT_MS = 60_000
_PASSING = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS}


def request(key: int, version: int, message: Message) -> bytes:
    return encode_request(
        RequestHeader(api_key=key, api_version=version, correlation_id=1, client_id="attack"), message
    )


def initialising(name: str) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=TIMEOUT_MS)


def begun(port: int, name: str) -> Any:
    """The answer to the id's first producer; the coordinator's topic is made for it."""
    deadline = time.monotonic() + 60
    with Wire(port) as wire:
        while True:
            found = wire.call(FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=1, coordinator_keys=[name]))
            if not found.coordinators[0].error_code:
                answer = wire.call(INIT_PRODUCER_ID, 4, initialising(name))
                if not answer.error_code:
                    return answer
            assert time.monotonic() < deadline, "no coordinator"
            time.sleep(0.02)


class ManyIds(Attack):
    """One connection asks for one new id after the other."""

    def __init__(self, name: str, count: int, length: int, memory_mb: float) -> None:
        """What is asked for beyond a million is refused: POLICY_VIOLATION."""
        self.name = name
        self.sends = f"InitProducerId of {count:,} new transactional ids" + f" of {length:,} characters" * (
            length > 100
        )
        self.bound = Bound(memory_mb=memory_mb)
        self.seconds_max = max(Attack.seconds_max, count / IDS_A_SECOND_MIN)
        self._count, self._length = count, length

    def prepare(self, victim: Victim) -> None:
        begun(victim.port, "first")

    def run(self, victim: Victim) -> Outcome:
        outcome = Outcome()
        with victim.connect() as attacker:
            for first in range(0, self._count, IDS_AT_ONCE):
                names = [f"{number:08}".ljust(self._length, "x") for number in range(first, first + IDS_AT_ONCE)]
                frames = [request(INIT_PRODUCER_ID, 4, initialising(name)) for name in names]
                attacker.send(b"".join(frames))
                outcome.sent += sum(map(len, frames))
                outcome.answers += [attacker.answer_to(frame) for frame in frames]
        return outcome


class ManyPartitions(Attack):
    name = "txn-partitions"
    sends = (
        f"AddPartitionsToTxn of {2 * PARTITIONS:,} partitions that do not all exist, of all {PARTITIONS:,} but "
        f"{ONE_BY_ONE}, of these one by one, and the transaction's end, twice"
    )
    # 10,000 logs take part in the end: what they know of their producer is theirs.
    bound = Bound(memory_mb=None)

    def prepare(self, victim: Victim) -> None:
        create_topic(victim.port, TOPIC, PARTITIONS)
        self._producer = begun(victim.port, self.name)

    def run(self, victim: Victim) -> Outcome:
        outcome = Outcome()
        with victim.connect() as attacker:
            for key, version, message in self._requests():
                frame = request(key, version, message)
                while True:
                    outcome.sent += len(frame)
                    answer = attacker.ask(frame)
                    if not {each.name for each in _PASSING} & answer.codes().keys():
                        break
                    time.sleep(0.02)
                outcome.answers.append(answer)
        return outcome

    def _requests(self) -> Iterator[tuple[int, int, Message]]:
        for commits in (True, False):
            yield ADD_PARTITIONS_TO_TXN, 3, self._adding(0, 2 * PARTITIONS)
            yield ADD_PARTITIONS_TO_TXN, 3, self._adding(0, PARTITIONS - ONE_BY_ONE)
            for number in range(PARTITIONS - ONE_BY_ONE, PARTITIONS):
                yield ADD_PARTITIONS_TO_TXN, 3, self._adding(number, number + 1)
            made = self._producer
            ending = EndTxnRequest(
                transactional_id=self.name,
                producer_id=made.producer_id,
                producer_epoch=made.producer_epoch,
                committed=commits,
            )
            yield END_TXN, 3, ending

    def _adding(self, first: int, behind: int) -> AddPartitionsToTxnRequest:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=self._producer.producer_id,
            v3_and_below_producer_epoch=self._producer.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=list(range(first, behind)))],
        )


def attacks(ids: int = IDS) -> list[Attack]:
    return [
        ManyIds("txn-ids", ids, 20, max(64, ids * ID_MB)),
        # Names have 128 MiB together, and each is held twice.
        ManyIds("txn-long-ids", LONG_IDS, ID_LENGTH_MAX, 280),
        ManyPartitions(),
    ]
