"""Produce (0), versions 3 to 13; 0 to 2 carry the record format of before Kafka 0.11 and are not served.

A request is served inside a round, in two halves: `serve` checks each batch and stages it, `answer` answers after the
round's writes. Most clients send the same request again and again, with another batch in it: everything before
the batch is remembered as a prefix, and a request that begins with it needs no parsing.

A transactional batch without a transactional id that its client may use is refused as by Kafka, with the whole request.
The first one of a transaction in a partition waits until the transaction's coordinator has answered for it
(`handlers/transactions/verifying.py`); the others go on in it, recognised or not.
"""

from __future__ import annotations

import traceback
from functools import partial
from typing import TYPE_CHECKING

from ottla import logs
from ottla.handlers.calls.call import Services
from ottla.handlers.calls.peer import ANSWER_BYTES_MAX, Peer, RequestBuffer, Slot
from ottla.handlers.produce.admission import Admission
from ottla.handlers.produce.answer import PartitionAnswer, TopicAnswer, encode_answer
from ottla.handlers.produce.appends import Appends
from ottla.handlers.produce.checks import ProduceChecks, UncheckedBatch
from ottla.handlers.produce.held import HeldProduce, HeldProduces, WaitingRun
from ottla.handlers.produce.lanes import Lanes
from ottla.handlers.produce.memo import ProduceMemo, remember
from ottla.handlers.produce.parts import LongProduce, encoded, let_go
from ottla.handlers.produce.rules import any_transactional, is_to_be_parsed, is_transactional
from ottla.handlers.produce.waiting import ACKS_ALL, ACKS_NONE, PartitionOutcome, ProduceWait, acknowledged
from ottla.handlers.routes import HOT, PRODUCE
from ottla.handlers.transactions.verifying import ProducedTransaction, has_begun_with, may_begin
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.errors import DecodeError
from ottla.protocol.header import request_body_start
from ottla.protocol.hot.produce import PLAIN_PARTS_MAX, TooManyParts, parse_produce
from ottla.replication.round import Participant
from ottla.steps import Steps
from ottla.storage.errors import AppendRefused, RollDue, StorageFault
from ottla.storage.log.append import AppendResult

if TYPE_CHECKING:
    from ottla.native.lane import Run
    from ottla.replication.leader import Leader

log_event = logs.logger("handlers")

_VERSION_MIN, _VERSION_MAX = HOT[PRODUCE]

Outcomes = list[tuple[str | bytes, list[PartitionOutcome]]]
#: A recognised request between its two halves: with its correlation id, first and last offset, and append time.
Quick = tuple[Peer, ProduceMemo, int, int, int, int]


class ProduceHandler(Participant):
    def __init__(self, services: Services) -> None:
        self._services = services
        self._round = services.round
        self._writes = services.writes
        self._replicas = services.replicas
        self._metrics = services.metrics
        self._times = services.metrics.times_of("Produce")
        self._admission = Admission(services)
        self._appends = Appends(services.replicas, services.writes, services.round, services.questions)
        #: Memos are void once its number is another.
        self._policy = services.policy
        self._lanes = Lanes(services.writes, services.policy, services.config.server.request_bytes_max, self._hold_run)
        #: Requests that this round leaves waiting.
        self._left_waiting = 0
        #: Requests of this round in the order they came: recognised ones, and all others.
        self._open: list[Quick | tuple[Peer, ProduceWait]] = []
        #: Requests of earlier rounds whose last batches are staged in this one.
        self._resumed: list[ProduceWait] = []
        self.checks = ProduceChecks(services.checks, services.clock, self._resume)

    # -- first half: check and stage

    def serve(self, peer: Peer, buffer: RequestBuffer, start: int, end: int, version: int, correlation: int) -> None:
        memo = peer.produce_memo
        if (
            memo is not None
            and memo.version == version
            and memo.policy == self._policy.number
            and (leader := memo.leader).active
            and leader.fault is None
            and (memo.acks != ACKS_ALL or leader.has_enough_replicas())
            and memo.is_like(buffer.data, start, end)
        ):
            records = buffer.view[start + memo.records_at : start + memo.records_end]
            try:
                first = memo.stage(records, leader.epoch, self._round.wall_ms)
                if memo.transaction is not None:
                    first = self._in_transaction(peer, memo, records, first)
                if first >= 0:
                    last, append_time_ms = memo.log.staging.next_offset - 1, -1
                elif is_to_be_parsed(version, records):
                    self._serve_any(peer, buffer, start, end, version, correlation)
                    return
                else:
                    first, last, append_time_ms, *_ = leader.append(records, self._round.wall_ms)
                if not leader.dirty:
                    self._writes.staged(leader)
            except (AppendRefused, RollDue):
                pass  # it left no trace in the log: the long way says it again, with all its words
            except StorageFault as fault:
                # What this round staged and is not written is lost: nothing may take its offsets in this round.
                self._writes.refused(leader, fault)
            except Exception as fault:
                self._writes.broke(leader, fault)
            else:
                peer.staged()
                self._open.append((peer, memo, correlation, first, last, append_time_ms))
                return
        self._serve_any(peer, buffer, start, end, version, correlation)

    def _in_transaction(self, peer: Peer, memo: ProduceMemo, records: memoryview, first: int) -> int:
        """The first offset of a batch in a transaction, which is staged if its coordinator answers for it at once; -1
        where it is to be parsed."""
        transaction = memo.transaction
        assert transaction is not None
        if first >= 0:
            if not memo.is_in_lanes:
                self._open_lane(peer, memo)
            return first
        if is_transactional(records) and may_begin(self._services.questions, memo.leader.tp, records, transaction):
            return memo.stage_first(records, memo.leader.epoch, self._round.wall_ms)
        return -1

    def _serve_any(
        self, peer: Peer, buffer: RequestBuffer, start: int, end: int, version: int, correlation: int
    ) -> None:
        if not _VERSION_MIN <= version <= _VERSION_MAX:
            self._refuse(peer, f"Produce in version {version} is not served")
            return
        try:
            body = request_body_start(buffer.data, start, end)
            transactional_id, acks, timeout_ms, topics = parse_produce(buffer.data, body, version, end, PLAIN_PARTS_MAX)
        except TooManyParts:
            self._serve_parts(peer, buffer, start, end, version, correlation)
            return
        except DecodeError as error:
            self._refuse(peer, f"Produce in version {version} cannot be read: {error}")
            return
        admission = self._admission
        has_transactional = any_transactional(buffer.view, topics)
        foreign = has_transactional and not admission.may_use(peer, transactional_id)
        transaction = ProducedTransaction.of_request(transactional_id, version)
        outcomes: Outcomes = []
        unchecked: list[UncheckedBatch] = []
        for topic, partitions in topics:
            name, fault = admission.topic(topic, peer)
            if foreign:
                fault = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            rule = admission.rule_against(name, acks)
            served = []
            for partition, records_start, records_end in partitions:
                if fault is not None:
                    served.append(PartitionOutcome(partition, answer=PartitionAnswer(partition, fault)))
                    continue
                records = buffer.view[records_start:records_end] if records_end > records_start else None
                tp = TopicPartition(name, partition)
                served.append(self._appends.serve(tp, records, version, acks, unchecked, transaction, rule))
            outcomes.append((topic, served))
        if self._policy.remembers and len(outcomes) == 1 and len(outcomes[0][1]) == 1:
            _, records_start, records_end = topics[0][1][0]
            within = transaction if has_transactional else None
            self._remember(
                *(peer, buffer, start, end, version, acks, timeout_ms, records_start, records_end, outcomes[0], within)
            )
        throttle_ms = admission.throttle_ms(peer, buffer, start, end, acks, self._round.wall_ms)
        wait = self._wait(peer, version, correlation, acks, timeout_ms, outcomes, throttle_ms)
        self._opened(peer, wait, unchecked)

    def _opened(self, peer: Peer, wait: ProduceWait, unchecked: list[UncheckedBatch]) -> None:
        peer.staged()
        self._open.append((peer, wait))
        if unchecked:
            self.checks.begin(peer, wait, unchecked)

    # -- requests of very many partitions

    def _serve_parts(
        self, peer: Peer, buffer: RequestBuffer, start: int, end: int, version: int, correlation: int
    ) -> None:
        """The connection waits for this request, whose answer keeps its place behind those before it."""
        frame = buffer.keep(start, end)
        request = LongProduce(peer, frame, request_body_start(frame, 0, len(frame)), version, correlation)
        place = ProduceWait(peer, ACKS_NONE, 0, [], lambda *_: None)
        place.unchecked = True
        began_ms = self._round.began_ms
        self._opened(peer, place, [])

        def failed(fault: Exception) -> None:
            if isinstance(fault, DecodeError):
                self._refuse(peer, f"Produce in version {version} cannot be read: {fault}")
            else:
                self._end(peer, fault)

        def done(answer: bytearray | None) -> None:
            if answer is None:
                self._refuse(peer, "a Produce with acks=0 could not be served")
            else:
                self._times.took(self._services.clock.monotonic_ms() - began_ms, 1)
                peer.fill(place.slot, answer)
                peer.finish()

        job = self._services.turns.go_on(self._answered_parts(request), done, failed, end - start)
        peer.answer_later(partial(self._services.turns.give_up, job))

    def _is_staged(self, wait: ProduceWait) -> None:
        self._resumed.append(wait)

    def _answered_parts(self, request: LongProduce) -> Steps[bytearray | None]:
        answers = yield from request.steps(self._admission, self._appends, self._round, self._is_staged, self.checks)
        failed = 0
        for _, partitions in answers:
            failed += sum(answer.error != ErrorCode.NONE for answer in partitions)
            self._metrics.total_produces.value += len(partitions)
            yield
        self._metrics.failed_produces.value += failed
        if request.acks == ACKS_NONE:
            yield from let_go(answers)
            return None if failed else bytearray()
        return (yield from encoded(request, answers, ANSWER_BYTES_MAX))

    # -- batches that another process has looked into, or that have waited for their log

    def _resume(self, wait: ProduceWait, checked: list[UncheckedBatch]) -> list[UncheckedBatch]:
        """Stages what was found good, in a round of its own, and answers the request as at the end of any round.

        Unless some of it has to wait once more, which is returned: the request is answered behind that.
        """
        left: list[UncheckedBatch] = []

        def is_left(each: UncheckedBatch) -> bool:
            return each.outcome.answer is None and not self._appends.append_checked(
                each, wait.acks, may_be_looked_into=not wait.is_part
            )

        def stage() -> None:
            self._appends.fail_unknown(wait, self._services.metadata)
            left.extend(each for each in checked if is_left(each))
            wait.unchecked = bool(left)
            self._resumed.append(wait)

        self._round.within(stage)
        return left

    def _remember(
        self,
        peer: Peer,
        buffer: RequestBuffer,
        start: int,
        end: int,
        version: int,
        acks: int,
        timeout_ms: int,
        records_start: int,
        records_end: int,
        outcome: tuple[str | bytes, list[PartitionOutcome]],
        transaction: ProducedTransaction | None,
    ) -> None:
        topic, (only,) = outcome
        if only.leader is None or not self._admission.is_free(peer, buffer, start, end):
            peer.produce_memo = None
            return
        peer.produce_memo = memo = remember(
            *(buffer.data, start, end, version, records_start, records_end, acks, timeout_ms, only.leader, topic),
            policy=self._policy.number,
            transaction=transaction,
        )
        # A lane would not know the first batch of the next transaction either: many have no other.
        if memo is not None and (
            transaction is None
            or only.appended is None
            or not has_begun_with(memo.log, buffer.view[records_start:records_end], only.appended.first_offset)
        ):
            self._open_lane(peer, memo)

    def _open_lane(self, peer: Peer, memo: ProduceMemo) -> None:
        memo.is_in_lanes = True
        self._lanes.open(peer, memo)

    def stage(self) -> None:
        """What lanes have collected in this round."""
        for peer, memo, correlation, records in self._lanes.stage(self._round.wall_ms):
            try:
                self._stage_collected(peer, memo, correlation, memoryview(records))
            except Exception as fault:
                self._end(peer, fault)

    def _stage_collected(self, peer: Peer, memo: ProduceMemo, correlation: int, records: memoryview) -> None:
        unchecked: list[UncheckedBatch] = []
        # By the topic's id, where the client gave that: the name may be another topic's by now.
        name, fault = self._admission.topic(memo.topic, peer)
        partition = memo.leader.tp.partition
        transaction = memo.transaction
        if transaction is not None and not self._admission.may_use(peer, transaction.transactional_id):
            fault = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        if fault is None:
            tp = TopicPartition(name, partition)
            outcome = self._appends.append(tp, records, memo.acks, unchecked, memo.transaction)
        else:
            outcome = PartitionOutcome(partition, answer=PartitionAnswer(partition, fault))
        if not memo.leader.active or memo.policy != self._policy.number:
            peer.produce_memo = None
            peer.leave_lane()
        wait = self._wait(peer, memo.version, correlation, memo.acks, memo.timeout_ms, [(memo.topic, [outcome])])
        self._opened(peer, wait, unchecked)

    # -- second half: answer

    def answer(self) -> None:
        answered, waiting = self._lanes.answer()
        if self._resumed:
            self._answer_resumed()
        if not answered and not self._open:
            return
        for peer, memo, correlation, first, last in waiting:
            try:
                self._settle_alike(peer, memo, correlation, first, last, -1)
            except Exception as fault:
                self._end(peer, fault)
        opened, self._open = self._open, []
        more_partitions = 0
        for entry in opened:
            peer = entry[0]
            peer.written()
            try:
                if len(entry) == 2:
                    more_partitions += entry[1].partition_count - 1
                    self._settle(peer, entry[1])
                    continue
                _, memo, correlation, first, last, append_time_ms = entry
                leader = memo.leader
                if not (
                    leader.fault is None
                    and leader.high_watermark > last
                    and memo.acks
                    and peer.answer_in_turn(memo.fill(correlation, first, append_time_ms, memo.log.places.start_offset))
                ):
                    self._settle_alike(peer, memo, correlation, first, last, append_time_ms)
            except Exception as fault:
                self._end(peer, fault)
        self._count(answered + len(opened), more_partitions)

    def failed(self, fault: Exception) -> None:
        opened, self._open = self._open, []
        resumed, self._resumed = self._resumed, []
        for entry in opened:
            entry[0].written()
            entry[0].abort()
        for wait in resumed:
            wait.failed(fault)
        self._lanes.give_up()

    @staticmethod
    def _end(peer: Peer, fault: Exception) -> None:
        """A request cannot be answered for a fault of ours: whatever was written of it, its client has to ask again."""
        log_event.error("a request failed", api=PRODUCE, error="".join(traceback.format_exception(fault)))
        peer.abort()

    def _count(self, requests: int, more_partitions: int) -> None:
        self._metrics.total_produces.value += requests + more_partitions
        requests -= self._left_waiting
        self._left_waiting = 0
        took_ms = self._services.clock.monotonic_ms() - self._round.began_ms
        if took_ms:
            self._times.took(took_ms, requests)
        else:
            self._times.counts[0] += requests

    def _settle_alike(
        self, peer: Peer, memo: ProduceMemo, correlation: int, first: int, last: int, append_time_ms: int
    ) -> None:
        """A recognised request that cannot be answered at once, or not from its template."""
        leader = memo.leader
        if not memo.acks or leader.fault is not None or not leader.active:
            self._settle_quick(
                peer, memo, correlation, AppendResult(first, last, append_time_ms, False, memo.log.start_offset)
            )
        elif acknowledged(leader, last + 1, memo.acks):
            answer = memo.fill(correlation, first, append_time_ms, memo.log.places.start_offset)
            if not peer.answer_in_turn(answer):
                peer.hold(Slot(answer))
        else:
            self._hold(peer, memo, correlation, first, last, append_time_ms)

    def _hold(
        self, peer: Peer, memo: ProduceMemo, correlation: int, first: int, last: int, append_time_ms: int
    ) -> None:
        leader, began_ms = memo.leader, self._round.began_ms
        slot = Slot()
        peer.hold(slot)
        deadline_ms = began_ms + max(0, memo.timeout_ms)
        self._held(leader).hold(
            HeldProduce(last, peer, slot, memo, correlation, first, append_time_ms, began_ms, deadline_ms)
        )
        self._left_waiting += 1

    def _hold_run(self, run: Run, leader: Leader) -> None:
        began_ms, held = self._round.began_ms, self._held(leader)
        self._left_waiting += len(run)
        deadline_ms = began_ms + run.shortest_ms
        held.hold_run(WaitingRun(run.hold(), began_ms, deadline_ms), of_all=run is not leader.run_of_leader)
        # Some of it may be as safe as its clients want already.
        self._replicas.waiters.wake(held)

    def _held(self, leader: Leader) -> HeldProduces:
        held = leader.held
        if not isinstance(held, HeldProduces):
            held = leader.held = HeldProduces(leader, self._replicas.waiters, self._released)
        return held

    def _released(self, count: int, began_ms: int, failed: bool) -> None:
        self._times.took(self._services.clock.monotonic_ms() - began_ms, count)
        if failed:
            self._metrics.failed_produces.value += count

    def _settle_quick(self, peer: Peer, memo: ProduceMemo, correlation: int, appended: AppendResult) -> None:
        """The same for one that is not held: it is refused, or its client asked for no answer."""
        outcomes: Outcomes = [(memo.topic, [PartitionOutcome(memo.leader.tp.partition, memo.leader, appended)])]
        self._settle(peer, self._wait(peer, memo.version, correlation, memo.acks, memo.timeout_ms, outcomes))

    def _wait(
        self,
        peer: Peer,
        version: int,
        correlation: int,
        acks: int,
        timeout_ms: int,
        outcomes: Outcomes,
        throttle_ms: int = 0,
    ) -> ProduceWait:
        def answered(wait: ProduceWait, answers: list[TopicAnswer]) -> None:
            if wait.began_ms is not None:
                self._times.took(self._services.clock.monotonic_ms() - wait.began_ms, 1)
            self._answer(peer, wait.slot, version, correlation, acks, answers, throttle_ms)

        return ProduceWait(peer, acks, timeout_ms, outcomes, answered)

    def _settle(self, peer: Peer, wait: ProduceWait) -> None:
        peer.hold(wait.slot)
        wait.fail_unwritten()
        if wait.unchecked:
            self._leave_waiting(wait)
        else:
            self._answer_or_park(wait)

    def _leave_waiting(self, wait: ProduceWait) -> None:
        wait.began_ms = self._round.began_ms
        self._left_waiting += 1

    def _answer_resumed(self) -> None:
        resumed, self._resumed = self._resumed, []
        for wait in resumed:
            try:
                wait.fail_unwritten()
                if not wait.unchecked:
                    self._answer_or_park(wait)
            except Exception as fault:
                self._end(wait.peer, fault)

    def _answer_or_park(self, wait: ProduceWait) -> None:
        if not wait.try_complete(self._round.wall_ms):
            if wait.began_ms is None and not wait.is_part:
                self._leave_waiting(wait)
            deadline_ms = self._services.clock.monotonic_ms() + max(0, wait.timeout_ms)
            self._replicas.waiters.park(wait, wait.partitions(), deadline_ms)

    def _answer(
        self,
        peer: Peer,
        slot: Slot,
        version: int,
        correlation: int,
        acks: int,
        answers: list[TopicAnswer],
        throttle_ms: int,
    ) -> None:
        failed = sum(answer.error != ErrorCode.NONE for _, partitions in answers for answer in partitions)
        self._metrics.failed_produces.value += failed
        if peer.closed:
            return
        if acks == ACKS_NONE:
            if failed:
                # Nobody waits for an answer that could say so: closing makes the client look again, as Kafka does.
                self._refuse(peer, "a Produce with acks=0 could not be served")
            else:
                peer.fill(slot, b"")
            return
        peer.fill(slot, encode_answer(version, correlation, answers, throttle_ms))

    def _refuse(self, peer: Peer, reason: str) -> None:
        log_event.warning_limited("closing a connection", peer=peer.host, reason=reason)
        peer.refuse()
