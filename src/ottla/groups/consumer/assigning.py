"""Targets of large groups: computed in steps, beside requests, for one group once at a time.

A heartbeat that needs a new target of such a group takes effect as far as it can without one, with the target that
there is. Then it waits, and with it all that come before the computation begins: a thousand members who join together
are assigned together. A member that comes while it goes on waits for the next one, and one that only says that it is
alive waits for none.

    when_assigned -> waiting -> (the computation of this moment's group) -> written, applied -> each hears of it

Between two steps members come and go. What was computed stays right for all that are left: it gives no partition to two
members, and the epoch that it was computed for is written with it. A member that has left is left out, and one that has
come gets its share from the next.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Sequence
from typing import Final

from ottla import logs
from ottla.coordinators.caller import Now
from ottla.coordinators.journal import JournalRecord
from ottla.coordinators.long_work import Beside
from ottla.groups.consumer import records, replay
from ottla.groups.consumer.checks import assignor_of
from ottla.groups.consumer.group import ConsumerGroup, consumer_group
from ottla.groups.consumer.member import Member, Partitions
from ottla.groups.consumer.target import Basis, NewTarget, compute
from ottla.groups.state import Done, ShardState
from ottla.model import ErrorCode
from ottla.records.builder import BatchBuilder
from ottla.steps import Steps, pieces

log_event = logs.logger("groups")

#: Whose records are put into the batch in one step, by a microsecond or two each.
_MEMBERS_A_STEP: Final = 32
#: How often the batch is made anew where members came or left meanwhile, before it is made in one piece.
_TRIES: Final = 3


class _Assignment:
    """What goes on for one group."""

    __slots__ = ("group_id", "is_over", "now", "served", "waiting")

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id
        #: For the computation that is to begin next.
        self.waiting: deque[Done] = deque()
        #: For the one that goes on.
        self.served: deque[Done] = deque()
        #: Of the caller that asked last.
        self.now = Now(0, 0)
        #: The shard was given up.
        self.is_over = False

    def answer(self, error: ErrorCode) -> Steps[None]:
        """All for whom it was computed."""
        while self.served:
            try:
                self.served.popleft()(error)
            except Exception as fault:
                _log(fault, self)
            yield


class Assignments:
    """Of one shard."""

    def __init__(self, state: ShardState, beside: Beside) -> None:
        self._state = state
        self._beside = beside
        self._under_way: dict[str, _Assignment] = {}

    def is_under_way(self, group_id: str) -> bool:
        return group_id in self._under_way

    def when_assigned(self, group_id: str, now: Now, done: Done) -> None:
        """Calls when the group's target is that of its epoch of this moment, or of a later one."""
        assignment = self._under_way.get(group_id)
        begins = assignment is None
        if assignment is None:
            assignment = self._under_way[group_id] = _Assignment(group_id)
        assignment.waiting.append(done)
        assignment.now = now
        if begins:
            self._beside(self._all(assignment))

    def close(self, error: ErrorCode) -> None:
        """Answers all members that wait, and decides nothing from then on."""
        assignments = list(self._under_way.values())
        self._under_way.clear()
        for assignment in assignments:
            assignment.is_over = True
            assignment.served += assignment.waiting
            assignment.waiting.clear()
            self._state.do(assignment.answer(error))

    def _all(self, assignment: _Assignment) -> Steps[None]:
        """One computation after another, as long as somebody waits."""
        while assignment.waiting and not assignment.is_over:
            assignment.served, assignment.waiting = assignment.waiting, assignment.served
            error = ErrorCode.UNKNOWN_SERVER_ERROR
            try:
                error = yield from self._assign(assignment)
            except Exception as fault:
                _log(fault, assignment)
            yield from assignment.answer(error)
        if not assignment.is_over:
            del self._under_way[assignment.group_id]

    def _assign(self, assignment: _Assignment) -> Steps[ErrorCode]:
        """Gives the group, as it is now, its target."""
        group = self._group(assignment)
        if group is None or group.epoch <= group.assignment_epoch:
            return ErrorCode.NONE
        epoch = group.epoch
        members = list(group.members.values())
        assignor = assignor_of(group.assignor_counts, self._state.settings_of(group.id))
        basis = Basis(group.id, members, dict(group.regexes), dict(group.target), assignor)
        computation = compute(basis, self._state.metadata)
        while True:
            try:
                next(computation)
            except StopIteration as end:
                target: NewTarget = end.value
                break
            yield
            if assignment.is_over:
                return ErrorCode.NOT_COORDINATOR
        if self._group(assignment) is not group:
            return ErrorCode.NONE  # the caller that waits finds that it is gone
        return (yield from self._decide(assignment, group, members, target, epoch))

    def _group(self, assignment: _Assignment) -> ConsumerGroup | None:
        return consumer_group(self._state.groups.get(assignment.group_id))

    def _decide(
        self, assignment: _Assignment, group: ConsumerGroup, members: list[Member], target: NewTarget, epoch: int
    ) -> Steps[ErrorCode]:
        """Writes the target, and applies it: all in one batch, for the members that there are when it is written."""
        for _ in range(_TRIES):
            present, instances = set(group.members), dict(group.static_members)
            batch = _Batch(group, assignment.now.wall_ms)
            for piece in pieces(members, _MEMBERS_A_STEP):
                batch.add(piece, target)
                yield
                if assignment.is_over:
                    return ErrorCode.NOT_COORDINATOR
                if self._group(assignment) is not group:
                    return ErrorCode.NONE
            if present == group.members.keys() and instances == group.static_members:
                break
        else:
            # They come and go all the time. From here to the end nothing happens in between.
            batch = _Batch(group, assignment.now.wall_ms)
            batch.add(members, target)
        batch.end(epoch)
        error = self._state.write(batch.records, assignment.now, _ignored, batch.built)
        if not error:
            replay.put_targets(group, batch.changed, epoch)
        return error


class _Batch:
    """The records of a target on their way into one batch."""

    __slots__ = ("_group", "_wall_ms", "built", "changed", "records")

    def __init__(self, group: ConsumerGroup, wall_ms: int) -> None:
        self._group = group
        self._wall_ms = wall_ms
        self.records: list[JournalRecord] = []
        self.built = BatchBuilder()
        #: What they say.
        self.changed: dict[str, Partitions] = {}

    def add(self, members: Sequence[Member], target: NewTarget) -> None:
        """Of these members those that are left."""
        group = self._group
        for member in members:
            found = target.by_member[member.id]
            if member.id in group.members:
                if member.id in target.records:
                    self._put(target.records[member.id])
                    self.changed[member.id] = found
            elif (heir := group.static_member(member.instance_id)) is not None and heir.id not in target.by_member:
                # An instance came back under another member id, with what was to be its own by then.
                self._put(records.target(group.id, heir.id, found))
                self.changed[heir.id] = found

    def end(self, epoch: int) -> None:
        self._put(records.target_epoch(self._group.id, epoch, self._wall_ms))

    def _put(self, record: JournalRecord) -> None:
        self.records.append(record)
        self.built.append(self._wall_ms, record.key, record.value)


def _log(fault: Exception, assignment: _Assignment) -> None:
    """A fault of ours in one group must not cost the others their assignments."""
    text = "".join(traceback.format_exception(fault))
    log_event.error("a group could not be assigned", group=assignment.group_id, error=text)


def _ignored(_: ErrorCode) -> None:
    """A caller that waits writes something of its own behind it, or waits until all is committed."""
