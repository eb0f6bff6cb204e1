"""The follower's side of a partition: a copy of the leader's log, byte for byte, cut by epochs and never by watermark.

Cutting a follower's log at its own high watermark loses committed records, since the watermark lags one fetch behind.
A follower therefore asks the leader where its own last leader epoch ended, and cuts there (Kafka's KIP-101).

What asks the leader is to come with a second broker: `append` and `truncate_to_leader` are for that.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.model import TopicPartition
from ottla.storage.errors import AppendRefused
from ottla.storage.log.log import Log


class Follower:
    __slots__ = ("_truncating", "epoch", "high_watermark", "leader_id", "log", "tp")

    def __init__(
        self,
        tp: TopicPartition,
        log: Log,
        epoch: int,
        leader_id: int,
        high_watermark: int,
        truncating: Callable[[TopicPartition, int], None],
    ) -> None:
        self.tp = tp
        self.log = log
        self.epoch = epoch
        #: -1 while the partition has no leader.
        self.leader_id = leader_id
        #: log.start_offset <= high_watermark <= log.end_offset
        self.high_watermark = max(log.start_offset, min(high_watermark, log.end_offset))
        #: Called with where the log will end, before it is cut: no checkpoint may speak of more.
        self._truncating = truncating

    def go_on_in(self, log: Log) -> None:
        """The same records stand in another directory now."""
        self.log = log

    def append(self, records: memoryview, leader_high_watermark: int) -> None:
        """Takes what a fetch brought: batches that carry the leader's offsets and leader epochs already.

        Raises AppendRefused where they do not go on from this log's end, and StorageFault.
        """
        if len(records):
            try:
                self.log.stage_replica(records)
            except AppendRefused:
                # Also what was sound before it: the leader is asked for all of it again.
                self.log.discard_staged()
                raise
            self.log.write_staged()
        self.leader_committed(leader_high_watermark)

    def leader_committed(self, leader_high_watermark: int) -> None:
        """What the leader says is committed is so here as far as it is here; it never goes back."""
        self.high_watermark = max(self.high_watermark, min(leader_high_watermark, self.log.end_offset))

    def truncate_to_leader(self, leader_epoch: int, leader_end: int) -> int:
        """Cuts what the leader does not have, given the leader's answer for our last leader epoch; returns the new end.

        The leader answers with the largest epoch it knows up to ours, and where that ended with it. Where this log does
        not know that very leader epoch, what is left may still part from the leader's: the next answer tells (KIP-279).
        """
        log = self.log
        own = log.epochs.end_offset_for(leader_epoch, log.end_offset)
        cut = leader_end if own is None else min(leader_end, own[1])
        if cut < log.end_offset:
            cut = log.end_if_cut_at(cut)
            self._truncating(self.tp, cut)
            log.truncate_to(cut)
            self.high_watermark = min(self.high_watermark, log.end_offset)
        return log.end_offset
