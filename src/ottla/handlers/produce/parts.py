"""Produce requests of more partitions than fit into one round: served piece by piece, and answered as a whole.

A client has some hundred partitions in a request at the most; a hundred thousand fit into a frame. They are parsed in
steps, and a piece of them is staged in each of the rounds that follow. The pieces wait for their acknowledgement by
themselves, and the last one makes the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Final, TypeVar

from ottla.handlers.calls.peer import Peer
from ottla.handlers.calls.turns import STEPS_A_LOOK
from ottla.handlers.produce.admission import Admission
from ottla.handlers.produce.answer import PartitionAnswer, TopicAnswer
from ottla.handlers.produce.appends import Appends
from ottla.handlers.produce.checks import ProduceChecks, UncheckedBatch
from ottla.handlers.produce.rules import is_transactional
from ottla.handlers.produce.waiting import PartitionOutcome, ProduceWait
from ottla.handlers.transactions.verifying import ProducedTransaction
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.hot.produce import ProduceParts
from ottla.protocol.hot.produce_steps import encode_produce_response_steps, parse_produce_steps
from ottla.protocol.primitives import Buffer
from ottla.protocol.stepping import DecodingAllowance
from ottla.replication.round import Round
from ottla.steps import Steps, pieces, taken

T = TypeVar("T")

#: Partitions of one round, each of some ten microseconds.
PIECE: Final = 16
#: Their topic; partition, beginning and end of its records.
Part = tuple[str | bytes, tuple[int, int, int]]


class LongProduce:
    """One such request; `steps` serves it, and returns its answer once all pieces are acknowledged."""

    def __init__(self, peer: Peer, frame: Buffer, body: int, version: int, correlation: int) -> None:
        self.peer = peer
        self.version = version
        self.correlation = correlation
        self.acks = 0
        self.throttle_ms = 0
        self._frame = frame
        self._body = body
        self._answers: list[list[TopicAnswer]] = []
        self._open = 0
        self._resume: Callable[[], None] | None = None

    def steps(
        self,
        admission: Admission,
        appends: Appends,
        this_round: Round,
        staged: Callable[[ProduceWait], None],
        checks: ProduceChecks,
    ) -> Steps[list[TopicAnswer]]:
        parts = yield from parse_produce_steps(
            self._frame, self._body, self.version, len(self._frame), DecodingAllowance()
        )
        transactional_id, self.acks, timeout_ms, topics = parts
        foreign = False
        transaction = ProducedTransaction.of_request(transactional_id, self.version)
        if not admission.may_use(self.peer, transactional_id):
            foreign = yield from self._any_transactional(parts)
        for some in pieces(topics):
            yield  # also where they name no partition
            for piece in pieces(((topic, each) for topic, partitions in some for each in partitions), PIECE):
                wait = self._piece_wait(timeout_ms)

                def stage(piece: tuple[Part, ...] = piece, wait: ProduceWait = wait) -> None:
                    held: list[UncheckedBatch] = []
                    wait.topics = list(self._append(piece, admission, appends, transaction, held, foreign=foreign))
                    if held:
                        checks.hold(self.peer, wait, held)
                    staged(wait)

                this_round.within(stage)
                # A piece may take a millisecond: the clock is looked at.
                for _ in range(STEPS_A_LOOK):
                    yield
        yield from let_go(topics)
        self.throttle_ms = admission.throttle_of_frame_ms(self.peer, self._frame, self.acks, this_round.wall_ms)
        while self._open:
            yield self  # type: ignore[misc]  # what drives the steps knows what to do with it
        of_pieces, self._answers = self._answers, []
        return [answer for answers in of_pieces for answer in answers]

    def wait(self, resume: Callable[[], None]) -> None:
        """Calls when the last piece is acknowledged."""
        self._resume = resume

    def _piece_wait(self, timeout_ms: int) -> ProduceWait:
        place = len(self._answers)
        self._answers.append([])
        self._open += 1

        def answered(_: ProduceWait, answers: list[TopicAnswer]) -> None:
            self._answers[place] = answers
            self._open -= 1
            if not self._open and self._resume is not None:
                resume, self._resume = self._resume, None
                resume()

        wait = ProduceWait(self.peer, self.acks, timeout_ms, [], answered)
        wait.is_part = True
        return wait

    def _any_transactional(self, parts: ProduceParts) -> Steps[bool]:
        frame = memoryview(self._frame)
        for some in pieces(parts[3]):
            yield
            for piece in pieces(each for _, partitions in some for each in partitions):
                if any(is_transactional(frame[start:end]) for _, start, end in piece if end > start):
                    return True
                yield
        return False

    def _append(
        self,
        piece: tuple[Part, ...],
        admission: Admission,
        appends: Appends,
        transaction: ProducedTransaction | None,
        held: list[UncheckedBatch],
        *,
        foreign: bool,
    ) -> Iterator[tuple[str | bytes, list[PartitionOutcome]]]:
        for topic, parts in groupby(piece, itemgetter(0)):
            name, fault = admission.topic(topic, self.peer)
            if foreign:
                fault = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            rule = admission.rule_against(name, self.acks)
            yield topic, [self._append_one(name, each, fault, rule, appends, transaction, held) for _, each in parts]

    def _append_one(
        self,
        topic: str,
        part: tuple[int, int, int],
        fault: ErrorCode | None,
        rule: ErrorCode | None,
        appends: Appends,
        transaction: ProducedTransaction | None,
        held: list[UncheckedBatch],
    ) -> PartitionOutcome:
        partition, start, end = part
        if fault is not None:
            return PartitionOutcome(partition, answer=PartitionAnswer(partition, fault))
        # A copy that may be written to: offsets are stamped into it.
        records = memoryview(bytearray(self._frame[start:end])) if end > start else None
        tp = TopicPartition(topic, partition)
        return appends.serve(tp, records, self.version, self.acks, held, transaction, rule, may_be_looked_into=False)


def encoded(request: LongProduce, answers: list[TopicAnswer], limit: int) -> Steps[bytearray]:
    """The answer as a frame. A topic whose partitions fell into several pieces stands in it once."""
    topics: list[TopicAnswer] = []
    for some in taken(answers):
        for topic, partitions in some:
            if topics and topics[-1][0] == topic:
                topics[-1][1].extend(partitions)
            else:
                topics.append((topic, partitions))
        yield
    answer = yield from encode_produce_response_steps(
        request.version, topics, request.throttle_ms, correlation_id=request.correlation, limit=limit
    )
    yield from let_go(topics)
    return answer


def let_go(topics: list[tuple[str | bytes, list[T]]]) -> Steps[None]:
    """Of many partitions some at a time: all others would wait until they are freed."""
    for some in taken(topics):
        for _, partitions in some:
            for _ in taken(partitions):
                yield
        yield
