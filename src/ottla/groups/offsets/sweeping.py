"""Walks over all groups of a shard, some at a time: to expire offsets, and to drop those of deleted topics.

Ten thousand groups with ten offsets each take a few hundred milliseconds, which nobody should have to wait for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

from ottla import logs
from ottla.coordinators.caller import Now
from ottla.groups.group import Group
from ottla.groups.offsets.deleting import GroupPartition, remove_offsets
from ottla.groups.state import ShardState
from ottla.model import ZERO_TOPIC_ID, ErrorCode
from ottla.protocol.hot.offset_records import NO_EXPIRY, read_offset_value
from ottla.steps import Steps, pieces

log_event = logs.logger("groups")

#: Offsets of one group that are looked at together.
OFFSETS_A_LOOK: Final = 250
#: After so many offsets or groups the others have their turn: about a millisecond.
STEPS_AT_ONCE_MAX: Final = 500
PAUSE_MS: Final = 1
#: After the journal took nothing.
RETRY_MS: Final = 1_000
#: Before offsets of deleted topics are looked for once more, where transactions hold the next topics' in their places.
LOOK_AGAIN_MS: Final = 5_000
MINUTE_MS: Final = 60_000

_EXPIRY: Final = "expiry"
_TOPICS: Final = "deleted topics"
NO_DELETIONS_KNOWN: Final[Mapping[str, int]] = {}


class _Deletion(NamedTuple):
    number: int
    wall_ms: int
    #: Whether it came before the offsets were loaded: what was committed since is another topic's.
    is_earlier: bool


class Sweeps:
    __slots__ = (
        "_deleted",
        "_deletions",
        "_groups",
        "_rest",
        "_state",
        "_topics",
        "_undecided",
        "_under_way",
        "_unsettled",
    )

    def __init__(self, state: ShardState) -> None:
        self._state = state
        #: Groups that the expiry under way has not come to.
        self._rest: deque[str] = deque()
        #: A group whose offsets are being looked at.
        self._under_way: Steps[int] | None = None
        self._topics: deque[str] = deque()
        #: Groups that may hold offsets of the topics in `_deleted`.
        self._groups: deque[str] = deque()
        self._deleted: frozenset[str] = frozenset()
        #: Those of them that are looked at again: a transaction that is open decides what becomes of some offset.
        self._undecided: set[str] = set()
        self._deletions = 0
        #: Topics whose offsets are not removed for good, by the deletion that said so last: of some they are being
        #: removed, and of others it is not known yet whether that will last.
        self._unsettled: dict[str, _Deletion] = {}

    # Expiry.

    def start(self, now: Now) -> None:
        """The first look at what is expired comes after the interval."""
        self._next_check(now)

    def _next_check(self, now: Now) -> None:
        interval_ms = self._state.settings().offsets.retention_check_interval_ms
        self._state.timers.set(_EXPIRY, now.monotonic_ms + interval_ms, self.expire)

    def expire(self, now: Now) -> None:
        self._rest = deque(self._state.groups)
        self._expire_some(now)

    def _expire_some(self, now: Now) -> None:
        steps = 0
        while (self._under_way or self._rest) and steps < STEPS_AT_ONCE_MAX:
            if self._under_way is None:
                group = self._state.groups.get(self._rest.popleft())
                if group is None:
                    continue
                self._under_way = self._expire_group(group, now)
            try:
                next(self._under_way)
                steps += OFFSETS_A_LOOK
            except StopIteration as end:
                steps += 1 + end.value
                self._under_way = None
        if self._under_way or self._rest:
            self._state.timers.set(_EXPIRY, now.monotonic_ms + PAUSE_MS, self._expire_some)
        else:
            self._next_check(now)

    def _expire_group(self, group: Group, now: Now) -> Steps[int]:
        """Returns how many offsets it looked at since it last yielded."""
        offsets, group_id = self._state.offsets, group.id
        looked_at = 0
        for topic, partitions in list(offsets.of_group(group_id).items()):
            for piece in pieces(list(partitions.items()), OFFSETS_A_LOOK):
                if self._state.groups.get(group_id) is not group:
                    return looked_at
                if group.is_subscribed(topic):
                    break
                expired = [
                    place
                    for partition, value in piece
                    if self._is_expired(group, value, now.wall_ms)
                    and not offsets.is_open(*(place := GroupPartition(group_id, topic, partition)))
                    and offsets.get(*place) is value  # Else it was committed again while others were looked at.
                ]
                if expired and remove_offsets(self._state, expired, now, _not_told):
                    return looked_at  # What could not be written is still there, and found the next time.
                self._state.counts.expired += len(expired)
                looked_at += len(piece)
                if looked_at >= OFFSETS_A_LOOK:
                    looked_at = 0
                    yield
        # Behind the last piece somebody may have deleted it, or have made another group of that name.
        is_there = self._state.groups.get(group_id) is group
        if is_there and not offsets.of_group(group_id) and group.may_vanish() and not offsets.has_open(group_id):
            self._forget(group, now)
        return looked_at

    def _forget(self, group: Group, now: Now) -> None:
        if not self._state.write(group.tombstones(), now, _not_told):
            del self._state.groups[group.id]
            log_event.info("a group expired", group=group.id)

    def _is_expired(self, group: Group, value: bytes, now_ms: int) -> bool:
        stored = read_offset_value(value)
        base_ms = group.retention_base_ms(stored.commit_ms)
        if base_ms is None:
            return False
        if stored.expire_ms != NO_EXPIRY:
            return now_ms >= stored.expire_ms
        return now_ms - base_ms >= self._state.settings().offsets.retention_minutes * MINUTE_MS

    # Deleted topics.

    @property
    def unsettled_deletions(self) -> Mapping[str, int]:
        return {name: deletion.wall_ms for name, deletion in self._unsettled.items()}

    def topics_deleted(self, names: Iterable[str], now: Now, known_ms: Mapping[str, int] = NO_DELETIONS_KNOWN) -> None:
        self._deletions += 1
        for name in names:
            wall_ms = known_ms.get(name, now.wall_ms)
            self._unsettled[name] = _Deletion(self._deletions, wall_ms, is_earlier=name in known_ms)
            self._state.offsets.begin_removing(name)
            self._topics.append(name)
        if not self._groups:
            self._drop_some(now)

    def _drop_some(self, now: Now) -> None:
        if not self._groups:
            if not self._topics:
                return
            self._deleted = frozenset(self._topics)
            self._topics.clear()
            self._groups = deque(self._state.groups)
        places, steps = list[GroupPartition](), 0
        looked_at: list[str] = []
        while self._groups and steps < STEPS_AT_ONCE_MAX:
            group_id = self._groups.popleft()
            looked_at.append(group_id)
            found = list(islice(self._of_deleted_topics(group_id), STEPS_AT_ONCE_MAX))
            places += found
            steps += 1 + len(found)
            if len(found) == STEPS_AT_ONCE_MAX:
                self._groups.appendleft(group_id)
                looked_at.pop()
        pause_ms = PAUSE_MS
        if places and remove_offsets(self._state, places, now, _not_told):
            # The deletion is not announced again: a topic of that name would begin with the old one's offsets.
            self._groups.extendleft(reversed(looked_at))
            pause_ms = RETRY_MS
        else:
            self._state.counts.deletions += len(places)
        if not self._groups:
            if self._undecided and not self._topics:
                pause_ms = LOOK_AGAIN_MS
            self._dropped(now)
        if self._groups or self._topics:
            self._state.timers.set(_TOPICS, now.monotonic_ms + pause_ms, self._drop_some)

    def _dropped(self, now: Now) -> None:
        """Of all groups; but for topics that were deleted once more meanwhile, or are to be looked at again."""
        self._topics += sorted(self._undecided)
        done = {name: self._unsettled[name] for name in self._deleted.difference(self._topics)}
        self._deleted = frozenset()
        self._undecided.clear()
        for name in done:
            self._state.offsets.end_removing(name)
        if done:
            self._ask_whether_settled(done, now)

    def _ask_whether_settled(self, done: Mapping[str, _Deletion], now: Now) -> None:
        self._state.when_settled(partial(self._settled, done, now))

    def _settled(self, done: Mapping[str, _Deletion], now: Now, error: ErrorCode) -> None:
        if not error:
            for name, deletion in done.items():
                if self._unsettled.get(name) == deletion:
                    del self._unsettled[name]
        elif not self._state.is_over:
            timer = (_TOPICS, max(deletion.number for deletion in done.values()))
            self._state.timers.set(timer, now.monotonic_ms + RETRY_MS, partial(self._ask_whether_settled, done))

    def _of_deleted_topics(self, group_id: str) -> Iterator[GroupPartition]:
        """In an order that is the same in each run; none twice. Those of a new topic of that name stay: clients that
        commit in it may come before all of the old one's are removed, and not all of them say its id."""
        offsets = self._state.offsets
        kept = offsets.of_group(group_id)
        for name in sorted(self._deleted & kept.keys()):
            known = self._state.metadata.topic(name)
            present_id = ZERO_TOPIC_ID if known is None else known.id
            for number, value in kept[name].items():
                place = GroupPartition(group_id, name, number)
                if self._is_newer(name, value, is_known=offsets.is_newer(*place)):
                    continue
                if present_id != ZERO_TOPIC_ID and read_offset_value(value).topic_id == present_id:
                    continue
                if not self._is_open_anew(place):
                    yield place
        for name, number in offsets.open_partitions(group_id):
            if name in self._deleted and number not in kept.get(name, ()):
                place = GroupPartition(group_id, name, number)
                if not self._is_open_anew(place):
                    yield place

    def _is_open_anew(self, place: GroupPartition) -> bool:
        """Whether a transaction holds an offset of the new topic. A tombstone would void that; and if it is given up,
        what is kept is the deleted topic's still: that is looked at once more.
        """
        last = self._state.offsets.last_open(*place)
        if last is None or not self._is_newer(place.topic, last[0], is_known=last[1]):
            return False
        self._undecided.add(place.topic)
        return True

    def _is_newer(self, name: str, value: bytes, *, is_known: bool) -> bool:
        """Whether it was written since the topic was deleted, by the store or else by the time of the commit."""
        deletion = self._unsettled[name]
        return is_known or (deletion.is_earlier and read_offset_value(value).commit_ms > deletion.wall_ms)


def _not_told(_: ErrorCode) -> None:
    """Nobody waits for it."""
