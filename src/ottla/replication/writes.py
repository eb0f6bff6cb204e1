"""The logs of a round: which have something staged, the one write for each, and what becomes of a failed one.

A log whose write failed takes nothing more in that round: offsets that were given to lost batches must not be given to
others before the lost ones are answered (docs/decisions/write-failures.md).
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from contextlib import suppress

from ottla import logs
from ottla.model import ErrorCode
from ottla.replication.leader import Leader
from ottla.replication.replicas import Replicas
from ottla.storage.errors import FaultKind, StorageFault

log_event = logs.logger("replication")


class Writes:
    def __init__(self, replicas: Replicas, found_no_room: Callable[[Leader], None]) -> None:
        """`found_no_room` is called with each leader whose append a full disk refused, in the midst of the round."""
        self._replicas = replicas
        self._found_no_room = found_no_room
        #: With something staged, in the order in which they got their first batch; each is `dirty`.
        self._dirty: list[Leader] = []
        #: With a `fault` of this round.
        self._faulted: list[Leader] = []

    def staged(self, leader: Leader) -> None:
        """Notes that the round has something to write for this leader."""
        if not leader.dirty:
            leader.dirty = True
            self._dirty.append(leader)

    def write(self, now_ms: int) -> None:
        """Writes what the round of `now_ms` staged, one write a partition, and moves the high watermarks."""
        if not self._dirty:
            return
        dirty = self._dirty
        for leader in dirty:
            try:
                self._write(leader, now_ms)
            except StorageFault as fault:
                self.refused(leader, fault)
            except Exception as fault:
                self.broke(leader, fault)
            leader.dirty = False
        dirty.clear()

    def _write(self, leader: Leader, now_ms: int) -> None:
        if not leader.active:
            # Its directory has failed in this very round.
            self._set_fault(leader, leader.end_error)
            return
        log = leader.log
        places = log.places
        end, size = places.end_offset, places.size
        log.staging.write()
        traffic = self._replicas.traffic.of(leader.tp.topic)
        traffic.records_in += places.end_offset - end
        traffic.bytes_in += places.size - size
        isr = leader.isr
        if isr.followers:
            isr.leader_moved()
        leader.advance()
        # Followers may read up to the log's end, so they wait for it and not for the high watermark.
        self._replicas.waiters.changed(leader.tp)
        if log.durability.is_due(log.config, now_ms):
            self._replicas.files.flush(log)

    def answered(self) -> None:
        """All requests of the round were answered: a partition whose write failed may be tried again."""
        for leader in self._faulted:
            leader.fault = None
        self._faulted.clear()

    # -- faults

    def refused(self, leader: Leader, fault: StorageFault) -> None:
        """What the round staged and is not written is lost; a directory that failed goes offline."""
        self._set_fault(leader, ErrorCode.KAFKA_STORAGE_ERROR)
        if fault.directory_failed:
            self._replicas.fail_directory_of(leader.tp, str(fault))
        else:
            log_event.warning_limited("an append was refused", partition=leader.tp, reason=fault)
            if fault.kind is FaultKind.DISK_FULL:
                self._found_no_room(leader)

    def broke(self, leader: Leader, fault: Exception) -> None:
        """A fault of ours in staging or writing: the same. Clients are answered as for the disk's, and try again."""
        log_event.error(
            "a log could not be written for a fault of the broker",
            key=str(leader.tp),
            partition=leader.tp,
            error="".join(traceback.format_exception(fault)),
        )
        self._set_fault(leader, ErrorCode.KAFKA_STORAGE_ERROR)
        self._discard(leader)

    def discard(self) -> None:
        """Takes back all that is staged: the participant that staged it cannot answer for it any more."""
        for leader in self._dirty:
            leader.dirty = False
            self._set_fault(leader, ErrorCode.KAFKA_STORAGE_ERROR)
            with suppress(Exception):
                self._discard(leader)
        self._dirty.clear()

    def _discard(self, leader: Leader) -> None:
        try:
            leader.log.discard_staged()
        except Exception as fault:
            # Nobody knows what would be written next. A start reads the log again from its files.
            self._replicas.fail_directory_of(leader.tp, f"what was staged cannot be taken back: {fault!r}")

    def _set_fault(self, leader: Leader, error: ErrorCode) -> None:
        if leader.fault is None:
            leader.fault = error
            self._faulted.append(leader)
