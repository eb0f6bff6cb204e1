"""All offsets that the groups of one shard have committed.

An offset is kept as the bytes of its record: that is what a commit makes anyhow and what a load finds, it takes eighty
bytes instead of three hundred, and the garbage collector need not look at it. A caller that needs its fields reads
it with `read_offset_value`.

Offsets of a transaction wait aside until its marker comes. What was written after them and has taken effect before
that is newer, and wins: then the transaction's offset is only remembered as open, because readers are in doubt until
its end.

A look-up in steps shows each transaction whole or not at all: where one ends meanwhile, what it replaced is kept for
the look-ups that began before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from sys import intern
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from ottla.steps import Steps

_NOTHING: Final[Mapping[str, dict[int, bytes]]] = {}

#: Groups whose offsets are let go of in one step.
GROUPS_A_STEP: Final = 16

_Place = tuple[str, str, int]


class _Doubt:
    """About one partition of a group, from the first offset that a transaction holds of it to the last one's end."""

    __slots__ = ("last", "last_number", "outdated", "transactions")

    def __init__(self) -> None:
        #: What a transaction wrote last, and under which number.
        self.last = b""
        self.last_number = 0
        #: How many hold an offset of it. 0 also behind a tombstone: what they hold is void then.
        self.transactions = 0
        #: What a transaction wrote under this number or a lower one is outdated: a newer offset has taken effect.
        self.outdated = 0


class _PendingOffset(NamedTuple):
    #: Which was written first, of two transactions' offsets of one partition.
    number: int
    value: bytes
    doubt: _Doubt


class _Removal:
    """Of a deleted topic's offsets, as long as some are left. What was written since it began is of another topic of
    that name.
    """

    __slots__ = ("last_number", "written")

    def __init__(self, last_number: int) -> None:
        #: What transactions wrote under this number or a lower one is the deleted topic's.
        self.last_number = last_number
        #: The groups' partitions that keep an offset which was written since.
        self.written: set[tuple[str, int]] = set()


class OffsetsView:
    """Of one group, for a look-up in steps: what transactions that end after its begin have replaced.

    It is a link of a chain, which grows with each such end: all look-ups that are under way share it.
    """

    __slots__ = ("__weakref__", "later", "replaced")

    def __init__(self) -> None:
        self.replaced: Mapping[tuple[str, int], bytes | None] = {}
        #: What look-ups go by that began after the next end.
        self.later: OffsetsView | None = None

    def change_of(self, topic: str, partition: int) -> Mapping[tuple[str, int], bytes | None] | None:
        """What the first transaction that has changed the offset of this partition since then has replaced."""
        if self.later is None:
            return None
        view: OffsetsView | None = self
        while view is not None:
            if (topic, partition) in view.replaced:
                return view.replaced
            view = view.later
        return None


_NONE_PENDING: Final[Mapping[_Place, _PendingOffset]] = {}


class OffsetStore:
    __slots__ = ("_groups", "_number", "_open", "_pending", "_removals", "_views", "count")

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, dict[int, bytes]]] = {}
        #: Offsets kept, without those that wait for a marker.
        self.count = 0
        #: By producer id.
        self._pending: dict[int, dict[_Place, _PendingOffset]] = {}
        self._number = 0
        #: By group: its partitions in doubt.
        self._open: dict[str, dict[tuple[str, int], _Doubt]] = {}
        #: By topic.
        self._removals: dict[str, _Removal] = {}
        #: By group, the last of its chain, as long as a look-up holds one.
        self._views: WeakValueDictionary[str, OffsetsView] = WeakValueDictionary()

    # Outside of transactions.

    def of_group(self, group_id: str) -> Mapping[str, Mapping[int, bytes]]:
        """By topic and partition. Not to be kept: it changes."""
        return self._groups.get(group_id, _NOTHING)

    def group_ids(self) -> list[str]:
        """All groups that have offsets, or will have if a transaction is committed."""
        return list({**self._groups, **self._open})

    def get(self, group_id: str, topic: str, partition: int) -> bytes | None:
        topics = self._groups.get(group_id)
        partitions = topics.get(topic) if topics is not None else None
        return partitions.get(partition) if partitions is not None else None

    def view(self, group_id: str) -> OffsetsView:
        """For a look-up that begins now, and goes on while others write."""
        view = self._views.get(group_id)
        if view is None:
            view = self._views[group_id] = OffsetsView()
        return view

    def put(self, group_id: str, topic: str, partition: int, value: bytes) -> None:
        self._put(group_id, topic, partition, value)
        if self._removals and (removal := self._removals.get(topic)) is not None:
            removal.written.add((group_id, partition))
        if self._open and (places := self._open.get(group_id)) is not None:
            doubt = places.get((topic, partition))
            if doubt is not None:
                doubt.outdated = self._number

    def _put(self, group_id: str, topic: str, partition: int, value: bytes) -> None:
        topics = self._groups.get(group_id)
        if topics is None:
            topics = self._groups[group_id] = {}
        partitions = topics.get(topic)
        if partitions is None:
            # One string for each name, however many groups read the topic.
            partitions = topics[intern(topic)] = {}
        if partition not in partitions:
            self.count += 1
        partitions[partition] = value

    def remove(self, group_id: str, topic: str, partition: int) -> None:
        """A tombstone: of what waits for markers as well."""
        if group_id in self._open:
            self._close(group_id, topic, partition)
        topics = self._groups.get(group_id)
        partitions = topics.get(topic) if topics is not None else None
        if topics is None or partitions is None or partitions.pop(partition, None) is None:
            return
        self.count -= 1
        if not partitions:
            del topics[topic]
            if not topics:
                del self._groups[group_id]

    # Deleted topics.

    def begin_removing(self, topic: str) -> None:
        """Its offsets are removed some at a time; from here on others tell those that are written meanwhile."""
        self._removals[topic] = _Removal(self._number)

    def end_removing(self, topic: str) -> None:
        self._removals.pop(topic, None)

    def is_newer(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether the offset that is kept was written since `begin_removing`."""
        return (group_id, partition) in self._removals[topic].written

    def last_open(self, group_id: str, topic: str, partition: int) -> tuple[bytes, bool] | None:
        """What a transaction that is open has written last, and whether that was since `begin_removing`."""
        doubt = self._open.get(group_id, {}).get((topic, partition))
        return None if doubt is None else (doubt.last, doubt.last_number > self._removals[topic].last_number)

    # Transactions.

    def put_pending(self, producer_id: int, group_id: str, topic: str, partition: int, value: bytes) -> None:
        pending = self._pending.setdefault(producer_id, {})
        place = (group_id, topic, partition)
        known = pending.get(place)
        if known is not None and known.doubt.transactions:
            doubt = known.doubt
        else:
            doubt = self._open.setdefault(group_id, {}).setdefault((topic, partition), _Doubt())
            doubt.transactions += 1
        self._number += 1
        doubt.last, doubt.last_number = value, self._number
        pending[place] = _PendingOffset(self._number, value, doubt)

    def count_of(self, producer_id: int) -> int:
        """How many offsets its transaction holds."""
        return len(self._pending.get(producer_id, ()))

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """The marker came: what waited takes effect, or is forgotten."""
        replaced: dict[str, dict[tuple[str, int], bytes | None]] = {}
        for place, (number, value, doubt) in self._pending.pop(producer_id, _NONE_PENDING).items():
            if not doubt.transactions:
                continue
            doubt.transactions -= 1
            if not doubt.transactions:
                self._close(*place)
            if committed and number > doubt.outdated:
                if self._views and (group_id := place[0]) in self._views:
                    replaced.setdefault(group_id, {})[place[1:]] = self.get(*place)
                self._put(*place, value)
                doubt.outdated = number
                self._note_written(*place, number)
        for group_id, of_group in replaced.items():
            view = self._views.get(group_id)
            if view is not None:
                view.replaced, view.later = of_group, OffsetsView()
                self._views[group_id] = view.later

    def _note_written(self, group_id: str, topic: str, partition: int, number: int) -> None:
        """A transaction's offset has taken effect."""
        removal = self._removals.get(topic)
        if removal is not None and number > removal.last_number:
            removal.written.add((group_id, partition))

    def let_go(self) -> Steps[None]:
        """Forgets all of it, step by step: its partition is coordinated elsewhere."""
        self._open.clear()
        self._removals.clear()
        self.count = 0
        while self._pending:
            self._pending.popitem()
            yield
        while self._groups:
            for _ in range(min(len(self._groups), GROUPS_A_STEP)):
                self._groups.popitem()
            yield

    def has_open(self, group_id: str) -> bool:
        return group_id in self._open

    def is_open(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether a transaction that has not ended yet holds an offset of this partition."""
        places = self._open.get(group_id)
        return places is not None and (topic, partition) in places

    def open_partitions(self, group_id: str) -> Iterator[tuple[str, int]]:
        return iter(self._open.get(group_id, ()))

    def _close(self, group_id: str, topic: str, partition: int) -> None:
        """Nobody doubts any more what this partition's offset is."""
        places = self._open[group_id]
        doubt = places.pop((topic, partition), None)
        if doubt is not None:
            doubt.transactions = 0
        if not places:
            del self._open[group_id]
