"""The state that the invariants speak of: replicas, their logs and watermarks, what the tree says, what is committed.

It is filled by observers (`take_role`, `log_grew`, `tree_changed`, ...). `settle` ends a turn: every invariant
is called for what has changed in it, and then the changes are forgotten. Tests of the invariants fill it by hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.model import TopicPartition
from ottla.testing.sim.invariants.shadow_log import SeenBatch, ShadowLog
from ottla.testing.sim.invariants.shadow_transactions import CommittedDecisions, SeenDecision

if TYPE_CHECKING:
    from ottla.testing.sim.invariants.invariant import Invariant

#: A topic that is deleted and created again is another one.
PartitionKey = tuple[TopicPartition, bytes]


class Changed:
    """Bits. (Plain numbers: an IntFlag costs a microsecond for each `|`.)"""

    NOTHING: Final = 0
    ROLE: Final = 1
    WATERMARK: Final = 2
    GREW: Final = 4
    CUT: Final = 8
    ISR: Final = 16


@dataclass(slots=True, eq=False)
class Replica:
    """As it was seen last. Of a broker that is gone: as its last life left it."""

    partition: Partition
    broker: int
    #: What two processes of a broker differ in.
    life: object = None
    leads: bool = False
    follows: bool = False
    epoch: int = -1
    high_watermark: int = 0
    #: Of a leader: the members that it counts now, and with those that a pending change adds or removes.
    isr: frozenset[int] = frozenset()
    maximal_isr: frozenset[int] = frozenset()
    #: The latter, and where the log ended, before this turn.
    maximal_before: frozenset[int] = frozenset()
    end_before: int = 0
    log: ShadowLog = field(default_factory=ShadowLog)
    #: Of one that goes on leading, in the same leader epoch or in its next one, in this turn: followers of which it
    #: knows less than before, and whether those who waited were left to the leader that it was.
    forgotten: frozenset[int] = frozenset()
    left_waiting: bool = False
    #: In this turn.
    changed: int = Changed.NOTHING
    #: Batches that came in this turn: their places in the log begin here.
    new_from: int = 0
    #: Batches below the watermark that were compared with what is committed.
    compared: int = 0
    #: The watermark that this life had, as far as its log was not cut since.
    watermark_before: int = 0
    #: The last stable offset that it shows; -1 while nobody has looked, or where no batch is in a transaction.
    stable: int = -1

    def __str__(self) -> str:
        role = "leader" if self.leads else "follower" if self.follows else "no role"
        return (
            f"broker {self.broker} ({role} in {self.epoch}, log to {self.log.end}, watermark {self.high_watermark}"
            + (f", isr {sorted(self.isr)}, maximal {sorted(self.maximal_isr)})" if self.leads else ")")
        )


class TreeState(NamedTuple):
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    #: The version of its znode.
    partition_epoch: int
    controller_epoch: int


class TreeChange(NamedTuple):
    """A write of a partition's state."""

    partition: Partition
    before: TreeState | None
    after: TreeState | None
    #: Who wrote it, and who owned /controller when it was written. 0: nobody.
    session: int
    controller_session: int
    #: As /controller_epoch was when it was written.
    controller_epoch: int
    #: Whether its topic lets replicas outside of the ISR lead.
    unclean_allowed: bool = False
    #: For how many seconds each broker has not been registered that was once and is not.
    gone_s: Mapping[int, float] = {}
    #: When it was.
    seconds: float = 0.0


class CommitAnswered(NamedTuple):
    transactional_id: str
    producer_id: int
    #: In which the decision is written.
    producer_epoch: int
    #: How many commits in that epoch were answered.
    answered: int


class Election(NamedTuple):
    """The tree has named another leader, or the same one in another leader epoch."""

    leader_epoch: int
    leader: int
    seconds: float


@dataclass(slots=True, eq=False)
class Partition:
    tp: TopicPartition
    topic_id: bytes
    #: By broker.
    replicas: dict[int, Replica] = field(default_factory=dict)
    tree: TreeState | None = None
    #: Who led in which leader epoch.
    leaders: dict[int, int] = field(default_factory=dict)
    #: Sums of all logs, by the end and the leader epoch of a batch.
    chains: dict[tuple[int, int], int] = field(default_factory=dict)
    #: Sums of what was below anybody's watermark, by the end of a batch.
    committed: dict[int, int] = field(default_factory=dict)
    #: The highest watermark that anybody ever had, as far as whole batches go.
    watermark: int = 0
    #: `min.insync.replicas` of its topic, where it is known and stays.
    minimum: int = 1
    #: Whether each replica cleans its log for itself: what is below the end is no more the same everywhere.
    is_compacted: bool = False
    #: Somebody outside of the ISR was elected, as its topic allows: nothing committed is certain any more.
    unclean: bool = False
    #: In the order in which the tree had them.
    elections: list[Election] = field(default_factory=list)
    #: Of the transaction topic: what was decided in a batch, by the sum up to it.
    decided: dict[int, tuple[SeenDecision, ...]] = field(default_factory=dict)
    #: Of that, what is committed.
    decisions: CommittedDecisions = field(default_factory=CommittedDecisions)

    def __str__(self) -> str:
        replicas = "; ".join(str(replica) for _, replica in sorted(self.replicas.items()))
        return f"{self.tp}: tree {self.tree}, committed to {self.watermark}: {replicas}"

    def replaced_at(self, broker: int) -> float | None:
        """When another leader was elected in the place of a broker that leads on, since it has not heard of it."""
        replica = self.replicas.get(broker)
        if replica is None or not replica.leads:
            return None
        for election in self.elections:
            if election.leader_epoch > replica.epoch and election.leader != broker:
                return election.seconds
        return None

    def holds_committed(self, replica: Replica | None, end: int | None = None) -> bool:
        """Whether a replica has everything that is committed, or all of that below `end`."""
        wanted = self.watermark if end is None else min(end, self.watermark)
        if wanted == 0:
            return True
        return replica is not None and replica.log.holds(wanted, self.committed.get(wanted))


class Cluster:
    def __init__(self, invariants: Sequence[Invariant] = ()) -> None:
        self.partitions: dict[PartitionKey, Partition] = {}
        #: `min.insync.replicas` of topics that keep theirs, at most as many as they have replicas.
        self.minima: dict[str, int] = {}
        #: Topics whose logs are cleaned.
        self.compacted: set[str] = set()
        #: Whether a machine may lose what its broker had, which has left the tree's ISR by then: a leader that has not
        #: heard of that yet counts it still, and waits for it in vain.
        self.forgets = False
        #: Who uses which session.
        self.session_owners: dict[int, object] = {}
        #: How each transaction with an epoch of its own has ended: whether it was committed, by producer and epoch.
        self.outcomes: dict[tuple[int, int], bool] = {}
        self._invariants = tuple(invariants)
        self._changed: dict[Replica, None] = {}
        self._tree_changes: list[TreeChange] = []
        #: How often what happened.
        self.events: Counter[str] = Counter()

    def partition(self, tp: TopicPartition, topic_id: bytes = b"") -> Partition:
        found = self.partitions.get((tp, topic_id))
        if found is None:
            found = self.partitions[tp, topic_id] = Partition(tp, topic_id)
            found.minimum = self.minima.get(tp.topic, 1)
            found.is_compacted = tp.topic in self.compacted
        return found

    def replica(self, tp: TopicPartition, broker: int, topic_id: bytes = b"") -> Replica:
        partition = self.partition(tp, topic_id)
        found = partition.replicas.get(broker)
        if found is None:
            log = ShadowLog(is_compacted=partition.is_compacted)
            found = partition.replicas[broker] = Replica(partition, broker, log=log)
        return found

    # What observers have seen

    def note(self, replica: Replica, changed: int) -> None:
        if replica not in self._changed:
            self._changed[replica] = None
            replica.new_from = len(replica.log.ends)
            replica.maximal_before = replica.maximal_isr
            replica.end_before = replica.log.end
        replica.changed |= changed

    def take_role(self, replica: Replica, *, leads: bool, epoch: int, life: object = None) -> None:
        self.note(replica, Changed.ROLE)
        if life is not replica.life:
            replica.watermark_before = 0
        replica.leads, replica.follows, replica.epoch, replica.life = leads, not leads, epoch, life

    def leads_on(self, replica: Replica, *, forgotten: frozenset[int], left_waiting: bool) -> None:
        """It leads as it did, in the same leader epoch or in its own next one: nobody has led in between."""
        self.note(replica, Changed.ROLE)
        replica.forgotten, replica.left_waiting = forgotten, left_waiting

    def resign(self, replica: Replica) -> None:
        self.note(replica, Changed.ROLE)
        replica.leads = replica.follows = False

    def begin_log(self, replica: Replica, start: int) -> None:
        """It is read anew from its start."""
        self.note(replica, Changed.CUT)
        self.events["logs begun"] += 1
        replica.log = ShadowLog(start, is_compacted=replica.partition.is_compacted)
        replica.compared = replica.new_from = 0

    def log_grew(self, replica: Replica, batches: Iterable[SeenBatch]) -> None:
        self.note(replica, Changed.GREW)
        for batch in batches:
            replica.log.append(batch, replica.partition.chains)
            if batch.decided:
                replica.partition.decided[replica.log.chains[-1]] = batch.decided

    def log_was_cut(self, replica: Replica, end: int) -> None:
        self.note(replica, Changed.CUT)
        self.events["truncations"] += 1
        replica.log.cut(end)
        kept = len(replica.log.ends)
        replica.compared = min(replica.compared, kept)
        replica.new_from = min(replica.new_from, kept)
        replica.watermark_before = min(replica.watermark_before, replica.log.end)

    def take_watermark(self, replica: Replica, high_watermark: int) -> None:
        self.note(replica, Changed.WATERMARK)
        replica.high_watermark = high_watermark

    def take_isr(self, replica: Replica, isr: frozenset[int], maximal: frozenset[int]) -> None:
        self.note(replica, Changed.ISR)
        replica.isr, replica.maximal_isr = isr, maximal

    def tree_changed(self, change: TreeChange) -> None:
        before, after = change.before, change.after
        if before is not None and after is not None:
            self._count(before, after)
            if after.leader >= 0 and after.leader not in before.isr and change.unclean_allowed:
                change.partition.unclean = True
                self.events["unclean elections"] += 1
        if after is not None and (before is None or before.leader_epoch != after.leader_epoch):
            change.partition.elections.append(Election(after.leader_epoch, after.leader, change.seconds))
        change.partition.tree = after
        self._tree_changes.append(change)

    def _count(self, before: TreeState, after: TreeState) -> None:
        events = self.events
        events["elections"] += before.leader_epoch != after.leader_epoch
        events["leaders moved"] += before.leader != after.leader
        events["partitions without a leader"] += before.leader >= 0 > after.leader
        events["ISR changes"] += set(before.isr) != set(after.isr)

    def uses_session(self, session: int, owner: object) -> None:
        for invariant in self._invariants:
            invariant.session_used(self, session, owner)

    def acknowledged(self, tp: TopicPartition, topic_id: bytes, end: int) -> None:
        """A client was answered, under acks=all, that everything of its own below `end` is stored."""
        for invariant in self._invariants:
            invariant.acknowledged(self, self.partition(tp, topic_id), end)

    def commit_acknowledged(self, partition: Partition, ended: CommitAnswered) -> None:
        """A client was answered that its transaction is committed. `partition`: of the transaction topic."""
        for invariant in self._invariants:
            invariant.commit_acknowledged(self, partition, ended)

    # The end of a turn

    def settle(self) -> None:
        """Raises InvariantBroken."""
        if not (self._changed or self._tree_changes):
            return
        changed, self._changed = self._changed, {}
        tree_changes, self._tree_changes = self._tree_changes, []
        for invariant in self._invariants:
            for replica in changed:
                if replica.changed & invariant.looks_at:
                    invariant.replica_changed(self, replica)
            for change in tree_changes:
                invariant.tree_changed(self, change)
        for replica in changed:
            replica.changed = Changed.NOTHING
            replica.forgotten, replica.left_waiting = frozenset(), False
