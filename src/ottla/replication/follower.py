"""The follower's side of a partition: a copy of the leader's log, byte for byte, cut by terms and never by watermark.

Cutting a follower's log at its own high watermark loses committed records, since the watermark lags one fetch behind.
A follower therefore asks the leader where its own last term ended, and cuts there (Kafka's KIP-101).
"""

from __future__ import annotations

from ottla.model import TopicPartition
from ottla.storage.log import Log


class Follower:
    __slots__ = ("epoch", "high_watermark", "leader_id", "log", "tp")

    def __init__(self, tp: TopicPartition, log: Log, epoch: int, leader_id: int, high_watermark: int) -> None:
        self.tp = tp
        self.log = log
        self.epoch = epoch
        #: -1 while the partition has no leader.
        self.leader_id = leader_id
        self.high_watermark = max(log.start_offset, min(high_watermark, log.end_offset))

    def append(self, records: memoryview, leader_high_watermark: int) -> None:
        """Takes what a fetch brought: batches that carry the leader's offsets and terms already."""
        if len(records):
            self.log.stage_replica(records)
            self.log.write_staged()
        self.leader_committed(leader_high_watermark)

    def leader_committed(self, leader_high_watermark: int) -> None:
        self.high_watermark = max(self.high_watermark, min(leader_high_watermark, self.log.end_offset))

    def truncate_to_leader(self, leader_epoch: int, leader_end: int) -> int:
        """Cuts what the leader does not have, given the leader's answer for our last term; returns the new end.

        The leader answers with the largest term it knows up to ours, and where that ended with it.
        """
        own = self.log.epochs.end_offset_for(leader_epoch, self.log.end_offset)
        cut = min(leader_end, self.log.end_offset) if own is None else min(leader_end, own[1])
        if cut < self.log.end_offset:
            self.log.truncate_to(cut)
            self.high_watermark = min(self.high_watermark, cut)
        return self.log.end_offset
