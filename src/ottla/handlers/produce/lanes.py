"""Produce requests that compiled lanes have received and recognised: staged as a run, answered as a run.

A lane takes what `ProduceMemo` would recognise, without a step in the interpreter for each request. The log takes a
run's batches at the round's end, behind those of the ordinary way, if all of them fit; else each goes the ordinary way
then.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla import logs
from ottla.handlers.calls.peer import Peer
from ottla.handlers.produce.memo import ProduceMemo
from ottla.handlers.produce.waiting import ACKS_ALL, ACKS_NONE
from ottla.native import compiled_run
from ottla.replication.leader import Leader
from ottla.replication.writes import Writes
from ottla.security.policy import Policy
from ottla.storage.errors import StorageFault

if TYPE_CHECKING:
    from ottla.native.lane import Run

log_event = logs.logger("handlers")

#: A recognised request: who sent it, what it is like, its correlation id, and its first and last offset.
Recognised = tuple[Peer, ProduceMemo, int, int, int]


#: The longest frame that a lane takes: FRAME_MAX of `native/lane.c`.
LANE_FRAME_BYTES_MAX: Final = 4096


class Lanes:
    def __init__(
        self, writes: Writes, policy: Policy, request_bytes_max: int, hold: Callable[[Run, Leader], None]
    ) -> None:
        """`request_bytes_max`: a lane does not ask for it, and there is none where it could take longer requests.

        `hold` is called with a run that was written and cannot be answered yet, and takes out what is in it."""
        self._hold = hold
        self._run = compiled_run() if request_bytes_max >= LANE_FRAME_BYTES_MAX else None
        self._writes = writes
        self._policy = policy
        #: Those with something in them, in the order in which they got their first request of the round.
        self._gathered: list[Run] = []
        #: Those that are staged, with the offset behind them.
        self._staged: list[tuple[Run, int]] = []
        #: Requests of this round that are taken out of their runs already, and not served in another way yet.
        self._collected: list[tuple[Peer, ProduceMemo, int, bytearray]] = []
        self._waiting: list[Recognised] = []

    def open(self, peer: Peer, memo: ProduceMemo) -> None:
        """From the next request on the connection has a lane, where it can have one."""
        fd = peer.fileno()
        if self._run is None or fd < 0 or memo.acks == ACKS_NONE or not memo.log.staging.takes_runs:
            return
        leader = memo.leader
        if leader.run_policy != memo.policy:
            # What the lanes of another policy still bring stands in a run of theirs, and is taken apart.
            leader.run = leader.run_of_leader = None
            leader.run_policy = memo.policy
        run = leader.run if memo.acks == ACKS_ALL else leader.run_of_leader
        if run is None:
            run = self._run(leader, self._gathered)
            if memo.acks == ACKS_ALL:
                leader.run = run
            else:
                leader.run_of_leader = run
        lane = memo.lane(run, fd, peer)
        if lane is not None:
            peer.take_lane(lane)

    def stage(self, now_ms: int) -> list[tuple[Peer, ProduceMemo, int, bytearray]]:
        """Stages what the lanes have collected; returns the requests that need the ordinary way after all."""
        gathered = self._gathered
        if not gathered:
            return []
        for run in gathered:
            end = self._staged_end(run, now_ms)
            if end >= 0:
                self._staged.append((run, end))
                continue
            data, at = run.data(), 0
            for (peer, memo), correlation, size, _, _ in run.requests():
                peer.claim_places()
                self._collected.append((peer, memo, correlation, bytearray(data[at : at + size])))
                at += size
            run.clear()
        gathered.clear()
        collected, self._collected = self._collected, []
        return collected

    def _staged_end(self, run: Run, now_ms: int) -> int:
        """The offset behind a run that the log has taken; -1 where it has taken nothing of it."""
        leader: Leader = run.owner
        of_all = run is leader.run
        if not (of_all or run is leader.run_of_leader) or leader.run_policy != self._policy.number:
            return -1
        if not leader.active or leader.fault is not None or (of_all and not leader.has_enough_replicas()):
            return -1
        try:
            end = leader.log.staging.stage_run(run, leader.epoch, now_ms)
            if end >= 0:
                self._writes.staged(leader)
        except StorageFault as fault:
            self._writes.refused(leader, fault)
            return -1
        except Exception as fault:
            # The requests then learn from the leader's fault that they were not taken.
            self._writes.broke(leader, fault)
            return -1
        return end

    def answer(self) -> tuple[int, list[Recognised]]:
        """Answers what was written, or has it held; how many requests there were, and those that are neither."""
        requests = 0
        for run, end in self._staged:
            requests += len(run)
            try:
                self._answer(run, end)
            except Exception as fault:
                log_event.error("answers failed", error="".join(traceback.format_exception(fault)))
                _close_all(run)
            run.clear()
        self._staged.clear()
        waiting, self._waiting = self._waiting, []
        return requests, waiting

    def _answer(self, run: Run, end: int) -> None:
        leader: Leader = run.owner
        if leader.fault is None and leader.active:
            is_safe = leader.high_watermark >= end or (run is leader.run_of_leader and leader.durable_end >= end)
            held = leader.held
            # What is held was sent before: a lane may have requests in both.
            if is_safe and (held is None or held.is_empty):
                for (peer, _), rest in run.answer(leader.log.places.start_offset):
                    peer.left_over(rest)
            else:
                self._hold(run, leader)
            return
        for (peer, memo), correlation, _, first, last in run.requests():
            peer.claim_places()
            self._waiting.append((peer, memo, correlation, first, last))

    def give_up(self) -> None:
        """Forgets what the round has of them. Nothing of it is answered, so that its clients have to ask again."""
        runs = [*self._gathered, *(run for run, _ in self._staged)]
        peers = [*(entry[0] for entry in self._collected), *(entry[0] for entry in self._waiting)]
        for kept in (self._gathered, self._staged, self._collected, self._waiting):
            kept.clear()
        for peer in peers:
            peer.abort()
        for run in runs:
            _close_all(run)
            run.clear()


def _close_all(run: Run) -> None:
    for (peer, _), *_ in run.requests():
        peer.abort()
