"""All journals of one kind of coordinator, and their part in each round of the network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ottla.model import TopicPartition
from ottla.ports import Clock, Workers
from ottla.replication.journal import JournalOwner, PartitionJournal
from ottla.replication.leader import Leader
from ottla.replication.replicas import Replicas
from ottla.replication.round import Participant, Round
from ottla.replication.writes import Writes

#: Records that are encoded in one round, of all journals, by a microsecond each; the rest is for the next round. What
#: belongs together is not torn apart: long writes come encoded (`built`), which takes as much time as these records.
RECORDS_A_ROUND_MAX: Final = 2_048


class JournalSettings(NamedTuple):
    #: How long a write may wait for the in-sync replicas.
    commit_timeout_ms: int
    #: The largest piece that is read at once when a journal is loaded.
    load_bytes_max: int
    #: By Kafka's number.
    compression: int


class Journals(Participant):
    """All journals of one kind of coordinator, and their part in each round."""

    def __init__(
        self,
        replicas: Replicas,
        this_round: Round,
        writes: Writes,
        workers: Workers,
        clock: Clock,
        settings: Callable[[], JournalSettings],
    ) -> None:
        self.replicas = replicas
        self.writes = writes
        self.workers = workers
        self.clock = clock
        self.settings = settings
        self._round = this_round
        self._open: dict[TopicPartition, PartitionJournal] = {}
        self._gathered: list[PartitionJournal] = []
        self._staged: list[PartitionJournal] = []

    def open(self, leader: Leader, owner: JournalOwner) -> PartitionJournal:
        """The journal of one leader epoch of a leader."""
        self._round.join(self)
        assert leader.tp not in self._open, leader.tp
        journal = self._open[leader.tp] = PartitionJournal(self, leader, owner)
        return journal

    def close(self, tp: TopicPartition) -> None:
        """The leader epoch is over: all writes that wait get NOT_COORDINATOR."""
        journal = self._open.pop(tp, None)
        if journal is not None:
            journal.close()

    def stop(self) -> None:
        for tp in list(self._open):
            self.close(tp)

    # -- rounds

    def gathered(self, journal: PartitionJournal) -> None:
        self._gathered.append(journal)
        self._round.soon()

    def stage(self) -> None:
        """Hands over what was gathered. What comes later is for the next round."""
        if not self._gathered:
            return
        gathered, self._gathered = self._gathered, []
        room = RECORDS_A_ROUND_MAX
        for number, journal in enumerate(gathered):
            if room <= 0:
                self._gathered += gathered[number:]
                self._round.soon()
                break
            self._staged.append(journal)
            try:
                room -= journal.stage(room)
            except Exception as fault:
                journal.give_up(fault)

    def answer(self) -> None:
        """Answers what is committed, and what was lost."""
        if self._staged:
            staged, self._staged = self._staged, []
            for journal in staged:
                try:
                    journal.round_written()
                except Exception as fault:
                    journal.give_up(fault)

    def failed(self, fault: Exception) -> None:
        staged, self._staged = [*self._staged, *self._gathered], []
        self._gathered = []
        for journal in staged:
            journal.give_up(fault)
