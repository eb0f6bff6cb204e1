"""What members of groups were answered: positions that were committed, and who had which partition in which epoch.

A `CommitHistory` knows what may not be: a commit of a generation that was over when it was sent, and a position that an
acknowledged commit had replaced. An `OwnershipHistory` knows of groups of the newer protocol (KIP-848) that two members
may not have a partition at once, as far as their coordinator has answered them.

A coordinator that was replaced and has not heard of it answers with what it knew then, as Kafka's do: it stores nothing
any more, and so acknowledges nothing, but it can be asked. `as_of` says from when such an answer is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from ottla.model import TopicPartition
from ottla.testing.sim.history import HistoryFault
from ottla.testing.sim.trace import Trace

#: A group's name and the number of a broker that is asked as its coordinator; when another one was elected in its place
#: of which it has not heard. None: it is the coordinator, or knows that it is not.
ReplacedAt = Callable[[str, int], float | None]


def _never(group: str, broker: int) -> float | None:
    del group, broker
    return None


@dataclass(frozen=True, slots=True)
class SentCommit:
    member: str
    #: Or the member's epoch, in a group of the newer protocol.
    generation: int
    position: int
    sent_at: float
    #: None where nobody knows whether it was stored.
    acknowledged_at: float | None = None
    #: A member may commit in an epoch that it has left, where it has had the partition since then (KIP-1251).
    by_epoch: bool = False

    def is_over(self, other: SentCommit) -> bool:
        """Whether another commit, which was acknowledged before this one was sent, shows that it came too late."""
        return other.generation > self.generation and not (self.by_epoch and other.member == self.member)


class CommitHistory:
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._commits: dict[tuple[str, TopicPartition], list[SentCommit]] = defaultdict(list)
        #: Positions that are on their way.
        self._sent: dict[tuple[str, TopicPartition], list[int]] = defaultdict(list)
        #: Those that members have entered.
        self.generations = 0
        self.replaced_at: ReplacedAt = _never

    @property
    def acknowledged_count(self) -> int:
        return sum(commit.acknowledged_at is not None for each in self._commits.values() for commit in each)

    def as_of(self, group: str, broker: int, now: float) -> float:
        """From when an answer is that this broker gives now."""
        replaced_at = self.replaced_at(group, broker)
        return now if replaced_at is None else min(now, replaced_at)

    def send(self, group: str, tp: TopicPartition, position: int) -> None:
        self._sent[group, tp].append(position)

    def refused(self, group: str, tp: TopicPartition, position: int) -> None:
        self._sent[group, tp].remove(position)

    def note(self, group: str, tp: TopicPartition, commit: SentCommit) -> None:
        """Raises HistoryFault where a generation was acknowledged that was over when the commit was sent."""
        self._trace.say("commit", f"{group} {tp} {commit}")
        if commit.position in self._sent[group, tp]:
            self._sent[group, tp].remove(commit.position)
        known = self._commits[group, tp]
        if commit.acknowledged_at is not None:
            for other in known:
                earlier = other.acknowledged_at is not None and other.acknowledged_at < commit.sent_at
                if earlier and commit.is_over(other):
                    raise HistoryFault(f"{group} {tp}: {commit} was taken after {other}: an old generation")
        known.append(commit)

    def check(self, group: str, tp: TopicPartition, found: int, asked_at: float = inf) -> None:
        """The position that was asked for then: that of a commit which no acknowledged one had replaced."""
        commits = self._commits[group, tp]
        acknowledged = [each for each in commits if each.acknowledged_at is not None]
        latest = max((each.sent_at for each in acknowledged if (each.acknowledged_at or 0.0) <= asked_at), default=None)
        possible = {
            each.position
            for each in commits
            if latest is None or each.acknowledged_at is None or each.acknowledged_at >= latest
        }
        if latest is None:
            possible.add(-1)
        possible.update(self._sent[group, tp])
        if found not in possible:
            raise HistoryFault(f"{group} {tp}: the position is {found}, and can be one of {sorted(possible)} only")


class Held(NamedTuple):
    """A member had a partition for certain: from the answer that gave it, to the last request that kept it."""

    member: str
    since: float
    until: float


class OwnershipHistory:
    """Of groups of the newer protocol: which member was answered to have which partitions."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._by_epoch: dict[tuple[str, TopicPartition, int], str] = {}
        #: The last span of each member that had the partition.
        self._held: dict[tuple[str, TopicPartition], dict[str, Held]] = defaultdict(dict)
        #: How often a partition was given to a member.
        self.given = 0

    def note_answer(self, group: str, member: str, epoch: int, partitions: Collection[TopicPartition]) -> None:
        """All that a member has after an answer. Raises HistoryFault where another one had some of it in that epoch."""
        for tp in partitions:
            known = self._by_epoch.setdefault((group, tp, epoch), member)
            if known != member:
                raise HistoryFault(f"{group} {tp}: {known} and {member} were both given it in epoch {epoch}")

    def committed(self, group: str, tp: TopicPartition, member: str, epoch: int) -> None:
        """It was acknowledged. Raises HistoryFault where another one had the partition in that epoch."""
        known = self._by_epoch.get((group, tp, epoch), member)
        if known != member:
            raise HistoryFault(f"{group} {tp}: {member} has committed in epoch {epoch}, in which {known} had it")

    def given_to(self, group: str, tp: TopicPartition, member: str, now: float) -> None:
        """By the answer of a coordinator that nobody has replaced."""
        self.given += 1
        self._trace.say("ownership", f"{group} {tp} is {member}'s")
        self._hold(group, tp, Held(member, now, now))

    def kept(self, group: str, tp: TopicPartition, member: str, asked_at: float) -> None:
        """That coordinator has answered the request of a member that had it, which was sent then."""
        known = self._held[group, tp][member]
        if asked_at > known.until:
            self._hold(group, tp, known._replace(until=asked_at))

    def _hold(self, group: str, tp: TopicPartition, held: Held) -> None:
        others = self._held[group, tp]
        for other in others.values():
            if other.member != held.member and other.since < held.until and held.since < other.until:
                raise HistoryFault(f"{group} {tp}: {other} and {held} had it at once")
        others[held.member] = held
