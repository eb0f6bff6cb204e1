"""What a consumer reads: its partitions with their positions, what of them lies ready, and how it is given out.

Three things stand between what was fetched and the caller: a partition may be paused by the caller, be held because
another member of the group is to get it, or have an error that is raised when all before it has been given out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from ottla.client.admin.group_results import CommittedOffset
from ottla.client.consuming.assignment import AssignedPartition, FetchedBatches
from ottla.client.errors import CorruptRecords, KafkaError, LogTruncated, NoOffset, OffsetOutOfRange
from ottla.client.records import ConsumerRecord
from ottla.client.schemas import SchemaNotLoaded
from ottla.client.serializers import deserializer_for
from ottla.client.settings import ConsumerSettings
from ottla.model import TopicPartition


class RecordReading:
    def __init__(self, settings: ConsumerSettings) -> None:
        self._check_crcs = settings.check_crcs
        self._key_deserializer = deserializer_for(settings.key_deserializer, "key.deserializer", settings)
        self._value_deserializer = deserializer_for(settings.value_deserializer, "value.deserializer", settings)
        #: The fetcher has the same mapping.
        self.assigned: dict[TopicPartition, AssignedPartition] = {}
        #: Records that iteration has taken and not given out yet: before the positions of their partitions.
        self.ahead: deque[ConsumerRecord] = deque()
        #: The partition that batches were taken of last, and where they began.
        self._begun: tuple[TopicPartition, int] | None = None
        #: One whose error came behind what was taken of others: the next call begins with it.
        self._faulty: TopicPartition | None = None
        #: The schema that kept a partition's records back when records were taken last.
        self.missing: SchemaNotLoaded | None = None

    # Which partitions

    def replace(
        self, wanted: Iterable[TopicPartition], fresh: Callable[[TopicPartition], AssignedPartition]
    ) -> list[TopicPartition]:
        """Reads exactly these from now on; what was read before keeps its place. Gives those that are new."""
        kept = dict.fromkeys(wanted)
        self.drop(tp for tp in list(self.assigned) if tp not in kept)
        new = [tp for tp in kept if tp not in self.assigned]
        for tp in new:
            self.assigned[tp] = fresh(tp)
        return new

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        gone = set(partitions)
        self.drop_ahead(gone)
        for tp in gone:
            self.assigned.pop(tp, None)

    def want(self, wanted: Callable[[str], object]) -> None:
        """Gives out nothing more of other topics than these; what lies ready of them counts as not read."""
        for tp, one in self.assigned.items():
            one.unwanted = not wanted(tp.topic)
        self.count_as_not_read([tp for tp, one in self.assigned.items() if one.unwanted])

    def hold(self, partitions: Iterable[TopicPartition]) -> None:
        """Gives out nothing more of these; what lies ready of them counts as not read."""
        held = [tp for tp in partitions if tp in self.assigned]
        for tp in held:
            self.assigned[tp].held = True
        self.count_as_not_read(held)

    def count_as_not_read(self, partitions: Iterable[TopicPartition]) -> None:
        """What iteration has taken of these and not given out is read again."""
        chosen = list(partitions)
        for tp, place in self.positions(chosen).items():
            if place.offset != self.assigned[tp].position:
                self.assigned[tp].seek(place.offset, place.leader_epoch)
        self.drop_ahead(chosen)

    def drop_ahead(self, partitions: Iterable[TopicPartition]) -> None:
        if self.ahead:
            gone = set(partitions)
            self.ahead = deque(record for record in self.ahead if TopicPartition(record[0], record[1]) not in gone)

    # Positions

    def position(self, tp: TopicPartition) -> int | None:
        """The offset of the next record that the caller will see, if it is known."""
        one = self.assigned.get(tp)
        if one is None or one.position is None:
            return None
        for record in self.ahead:
            if (record[0], record[1]) == tp:
                return record.offset
        return one.position

    def positions(self, partitions: Iterable[TopicPartition] | None = None) -> dict[TopicPartition, CommittedOffset]:
        """How far these, or all, have been read, as it is committed; those without a position are left out."""
        first: dict[tuple[str, int], ConsumerRecord] = {}
        for record in self.ahead:
            first.setdefault((record[0], record[1]), record)
        found: dict[TopicPartition, CommittedOffset] = {}
        for tp in self.assigned if partitions is None else partitions:
            one = self.assigned.get(tp)
            if one is not None and one.position is not None:
                found[tp] = CommittedOffset(one.position, "", one.position_epoch)
                if tp in first:
                    found[tp] = CommittedOffset(first[tp].offset, "", first[tp].leader_epoch)
        return found

    def place(self, one: AssignedPartition, committed: CommittedOffset) -> None:
        """Goes on where the group has come to."""
        one.seek(committed.offset, committed.leader_epoch)

    # Records

    def take(self, limit: int) -> list[ConsumerRecord]:
        """What is there, of one partition after the other; an error where it comes before anything else."""
        taken: list[ConsumerRecord] = []
        if self.ahead:
            while self.ahead and len(taken) < limit:
                taken.append(self.ahead.popleft())
            return taken
        self.missing = None
        for tp, one in self._turns():
            if not one.gives_out:
                continue
            fault: KafkaError | None = None
            try:
                while len(taken) < limit and one.has_records:
                    taken += one.take(
                        limit - len(taken),
                        check_crcs=self._check_crcs,
                        key_deserializer=self._key_deserializer,
                        value_deserializer=self._value_deserializer,
                    )
            except SchemaNotLoaded as missing:
                self.missing = self.missing or missing
            except KafkaError as error:
                fault = error
            if fault is not None or _has_only_an_error(one):
                if not taken:
                    raise self._raised(one, fault)
                self._faulty = self._faulty or tp
            if len(taken) >= limit:
                self._turn_is_over(tp)
                break
        if not taken and self.missing is not None:
            raise self.missing
        return taken

    def _turns(self) -> list[tuple[TopicPartition, AssignedPartition]]:
        """Partitions in their order, one first whose error came behind what the last call gave."""
        turns = list(self.assigned.items())
        first, self._faulty = self._faulty, None
        if first is not None and first in self.assigned:
            turns.insert(0, (first, self.assigned[first]))
        return turns

    def _turn_is_over(self, tp: TopicPartition) -> None:
        """The others come first next time."""
        self.assigned[tp] = self.assigned.pop(tp)

    def _raised(self, one: AssignedPartition, fault: KafkaError | None) -> KafkaError:
        """An error is raised in its partition's turn: others have theirs, but may not keep it from being heard."""
        self._turn_is_over(one.tp)
        return fault if fault is not None else error_to_raise(one)

    def take_arrow(self, columns: tuple[str, ...], rows_max: int) -> Any:
        """An Arrow batch of the partition whose turn it is, None where there is none; an error as `take` raises it."""
        self._give_back_ahead()
        for tp, one in list(self.assigned.items()):
            if not one.gives_out:
                continue
            self._begins(one)
            try:
                batch = one.take_arrow(columns, rows_max, check_crcs=self._check_crcs) if one.has_records else None
            except KafkaError:
                self._turn_is_over(tp)
                raise
            if batch is not None:
                self._turn_is_over(tp)
                return batch
            if _has_only_an_error(one):
                raise self._raised(one, None)
        return None

    def take_batches(self) -> FetchedBatches | None:
        """The same of undecoded batches. Who reads these looks for places himself: that one is missing comes last."""
        self._give_back_ahead()
        unplaced: AssignedPartition | None = None
        for tp, one in list(self.assigned.items()):
            if not one.gives_out:
                continue
            self._begins(one)
            fetched = one.take_batches()
            if fetched is not None:
                self._turn_is_over(tp)
                return fetched
            if isinstance(one.error, NoOffset):
                unplaced = unplaced or one
            elif _has_only_an_error(one):
                raise self._raised(one, None)
        if unplaced is not None:
            raise self._raised(unplaced, None)
        return None

    def _begins(self, one: AssignedPartition) -> None:
        self._begun = None if one.position is None else (one.tp, one.position)

    def take_back(self, records: list[ConsumerRecord] | None) -> None:
        """What was taken last is given out again: these records, or the batches (None)."""
        if records is not None:
            self.ahead.extendleft(one for one in reversed(records) if TopicPartition(one[0], one[1]) in self.assigned)
        elif self._begun is not None and self._begun[0] in self.assigned:
            self.assigned[self._begun[0]].seek(self._begun[1])

    def _give_back_ahead(self) -> None:
        """What iteration has taken and not given out is read again."""
        for tp, place in self.positions({TopicPartition(record[0], record[1]) for record in self.ahead}).items():
            self.assigned[tp].seek(place.offset, place.leader_epoch)
        self.ahead.clear()

    @property
    def deserializes(self) -> bool:
        return self._key_deserializer is not None or self._value_deserializer is not None


def _has_only_an_error(one: AssignedPartition) -> bool:
    return one.error is not None and not one.has_records


def error_to_raise(one: AssignedPartition) -> KafkaError:
    """The partition's error. One that does not lie in the position is forgotten, so that it is tried again."""
    error = one.error
    assert error is not None
    if not isinstance(error, CorruptRecords | NoOffset | OffsetOutOfRange | LogTruncated):
        one.error = None
    return error
