"""Each invariant is broken once by a faked state, and holds in the sound states beside it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ottla.model import TopicPartition
from ottla.testing.sim.invariants import ALL, Cluster, InvariantBroken, TreeChange, TreeState, every_invariant
from ottla.testing.sim.invariants.cluster import CommitAnswered, Replica
from ottla.testing.sim.invariants.shadow_log import SeenBatch
from ottla.testing.sim.invariants.shadow_transactions import SeenDecision, SeenTransaction
from ottla.transactions.states import TransactionStatus

TP = TopicPartition("t", 0)


class Faked:
    """Three replicas of one partition, in the tree in leader epoch 1, led by broker 1."""

    def __init__(self) -> None:
        self.cluster = Cluster(every_invariant())
        self.version = -1
        self.tree(1, 1, (1, 2, 3))
        for broker in (1, 2, 3):
            self.role(broker, 1, leads=broker == 1)
        self.settle()

    def replica(self, broker: int) -> Replica:
        return self.cluster.replica(TP, broker)

    def role(self, broker: int, epoch: int, *, leads: bool, life: object = None) -> None:
        self.cluster.take_role(self.replica(broker), leads=leads, epoch=epoch, life=life)
        if leads:
            self.isr(broker, (1, 2, 3))

    def isr(self, broker: int, isr: tuple[int, ...], maximal: tuple[int, ...] | None = None) -> None:
        self.cluster.take_isr(self.replica(broker), frozenset(isr), frozenset(isr if maximal is None else maximal))

    def append(self, broker: int, *epochs: int, content: int = 0) -> None:
        """A batch of one record for each leader epoch."""
        replica = self.replica(broker)
        end = replica.log.end
        batches = [SeenBatch(end + n, end + n + 1, epoch, content) for n, epoch in enumerate(epochs)]
        self.cluster.log_grew(replica, batches)

    def cut(self, broker: int, end: int) -> None:
        self.cluster.log_was_cut(self.replica(broker), end)

    def watermark(self, broker: int, offset: int) -> None:
        self.cluster.take_watermark(self.replica(broker), offset)

    def tree(
        self,
        leader: int,
        epoch: int,
        isr: tuple[int, ...],
        *,
        version: int | None = None,
        session: int = 7,
        owner: int = 7,
        controller_epoch: int = 5,
        written: int = 5,
        unclean: bool = False,
        gone_s: dict[int, float] | None = None,
        seconds: float = 0.0,
    ) -> None:
        partition = self.cluster.partition(TP)
        self.version = self.version + 1 if version is None else version
        after = TreeState(leader, epoch, isr, self.version, written)
        self.cluster.tree_changed(
            TreeChange(
                partition, partition.tree, after, session, owner, controller_epoch, unclean, gone_s or {}, seconds
            )
        )

    def settle(self) -> None:
        self.cluster.settle()

    def committed(self) -> None:
        """Two records of leader epoch 1 everywhere, below everybody's watermark."""
        for broker in (1, 2, 3):
            self.append(broker, 1, 1)
        self.settle()
        for broker in (1, 2, 3):
            self.watermark(broker, 2)
        self.settle()


Scene = Callable[[Faked], None]


def one_leader(faked: Faked) -> None:
    faked.role(2, 1, leads=True)


def one_leader_in_time(faked: Faked) -> None:
    faked.cluster.resign(faked.replica(1))
    faked.settle()
    faked.role(3, 1, leads=True)


def other_content(faked: Faked) -> None:
    faked.append(1, 1)
    faked.append(2, 1, content=9)


def other_batches_before(faked: Faked) -> None:
    faked.append(1, 1, 2)
    faked.append(2, 2)
    faked.append(2, 2)


def shown_and_then_replaced(faked: Faked) -> None:
    faked.append(1, 1)
    faked.watermark(1, 1)
    faked.isr(1, (1,), (1, 2, 3))
    faked.cluster.partition(TP).tree = TreeState(1, 1, (1,), 0, 5)
    faked.settle()
    faked.role(2, 2, leads=False)
    faked.append(2, 2)
    faked.watermark(2, 1)


def falling(faked: Faked) -> None:
    faked.committed()
    faked.watermark(1, 1)


def falling_on_a_promotion(faked: Faked) -> None:
    faked.committed()
    faked.tree(2, 2, (2, 3))
    faked.role(2, 2, leads=True)
    faked.watermark(2, 1)


def above_the_log(faked: Faked) -> None:
    faked.watermark(2, 1)


def leader_outside(faked: Faked) -> None:
    faked.tree(1, 2, (2, 3))


def nobody_in_sync(faked: Faked) -> None:
    faked.tree(-1, 2, ())


def elected_from_outside(faked: Faked) -> None:
    faked.tree(1, 1, (1, 2))
    faked.tree(3, 2, (3,))


def not_counted(faked: Faked) -> None:
    faked.isr(1, (1, 2))


def joined_uncounted(faked: Faked) -> None:
    faked.tree(1, 1, (1, 2))
    faked.isr(1, (1, 2))
    faked.settle()
    faked.tree(1, 1, (1, 2, 3))


def behind_in_the_leaders_own(faked: Faked) -> None:
    """The tree's ISR has shrunk already, and everybody in it has all: only the leader's own set has not."""
    faked.tree(1, 1, (1, 2))
    faked.append(1, 1)
    faked.append(2, 1)
    faked.settle()
    faked.watermark(1, 1)


def behind_in_the_trees(faked: Faked) -> None:
    faked.isr(1, (1, 2), (1, 2, 3))
    faked.append(1, 1)
    faked.append(2, 1)
    faked.settle()
    faked.watermark(1, 1)


def cut_below_the_watermark(faked: Faked) -> None:
    faked.committed()
    faked.cut(3, 1)
    faked.watermark(3, 1)


def leader_that_lacks_some(faked: Faked) -> None:
    faked.tree(1, 1, (1, 2))
    faked.isr(1, (1, 2))
    faked.append(1, 1)
    faked.append(2, 1)
    faked.settle()
    faked.watermark(1, 1)
    faked.settle()
    faked.role(3, 2, leads=True)


def candidate_that_lacks_some(faked: Faked) -> None:
    faked.tree(1, 1, (1, 2))
    faked.isr(1, (1, 2), (1, 2, 3))
    faked.append(1, 1)
    faked.append(2, 1)
    faked.settle()
    faked.watermark(1, 1)
    faked.settle()
    # Nobody believes to lead.
    faked.cluster.resign(faked.replica(1))
    faked.settle()
    faked.tree(-1, 2, (2, 3))


def wrong_session(faked: Faked) -> None:
    faked.tree(1, 1, (1, 2), session=6)


def earlier_controller_epoch(faked: Faked) -> None:
    faked.tree(1, 1, (1, 2, 3), controller_epoch=6)


def controller_epoch_of_nobody(faked: Faked) -> None:
    faked.tree(1, 1, (1, 2), written=9)


def leader_epoch_falls(faked: Faked) -> None:
    faked.tree(1, 0, (1, 2, 3))


def written_over(faked: Faked) -> None:
    faked.tree(1, 1, (1, 2), version=4)


def two_leaders_in_the_tree(faked: Faked) -> None:
    faked.tree(2, 1, (1, 2, 3))


def one_session_twice(faked: Faked) -> None:
    faked.cluster.uses_session(4, "one")
    faked.cluster.uses_session(4, "one")
    faked.cluster.uses_session(4, "another")


def dead_found_by_its_leader(faked: Faked) -> None:
    faked.tree(1, 1, (1, 2), gone_s={3: 30.0})


def _alone(faked: Faked) -> None:
    """Under the minimum, with a record that nobody else has."""
    faked.cluster.partition(TP).minimum = 2
    faked.committed()
    faked.tree(1, 1, (1,))
    faked.isr(1, (1,))
    faked.append(1, 1)
    faked.settle()


def joins_before_the_end(faked: Faked) -> None:
    _alone(faked)
    faked.isr(1, (1,), (1, 2))


def moves_under_the_minimum(faked: Faked) -> None:
    _alone(faked)
    faked.watermark(1, 3)


def acknowledged_early(faked: Faked) -> None:
    faked.append(1, 1)
    faked.settle()
    faked.cluster.acknowledged(TP, b"", 1)


def in_transaction(
    faked: Faked, epoch: int, *, coordinator: int = -1, commits: bool = False, to: tuple[int, ...] = (1,)
) -> None:
    """A batch of producer 7, or its marker where a coordinator is given."""
    for broker in to:
        replica = faked.replica(broker)
        end = replica.log.end
        said = SeenTransaction(7, epoch, coordinator, commits)
        faked.cluster.log_grew(replica, [SeenBatch(end, end + 1, 1, hash(said), said)])


def stable_in_an_open_one(faked: Faked) -> None:
    in_transaction(faked, 0, to=(1, 2, 3))
    for broker in (1, 2, 3):
        faked.watermark(broker, 1)
    faked.replica(1).stable = 1


def stable_before_the_marker_is_committed(faked: Faked) -> None:
    in_transaction(faked, 0, to=(1, 2, 3))
    for broker in (1, 2, 3):
        faked.watermark(broker, 1)
    in_transaction(faked, 1, coordinator=3)
    faked.replica(1).stable = 1


def marked_by_an_old_coordinator(faked: Faked) -> None:
    in_transaction(faked, 0)
    in_transaction(faked, 1, coordinator=3)
    in_transaction(faked, 1, coordinator=2)


def behind_the_marker(faked: Faked) -> None:
    in_transaction(faked, 0)
    in_transaction(faked, 1, coordinator=3)
    in_transaction(faked, 0)


def two_outcomes(faked: Faked) -> None:
    in_transaction(faked, 0)
    in_transaction(faked, 1, coordinator=3, commits=True)
    faked.settle()
    other = faked.cluster.replica(TopicPartition("other", 0), 1)
    faked.cluster.take_role(other, leads=True, epoch=1)
    for said in (SeenTransaction(7, 0), SeenTransaction(7, 1, 3, commits=False)):
        end = other.log.end
        faked.cluster.log_grew(other, [SeenBatch(end, end + 1, 1, 5, said)])


def commit_answered_undecided(faked: Faked) -> None:
    decided = SeenDecision("id", 7, 1, TransactionStatus.PREPARE_COMMIT)
    batch = SeenBatch(0, 1, 1, 5, decided=(decided,))
    for broker in (1, 2, 3):
        faked.cluster.log_grew(faked.replica(broker), [batch])
    faked.settle()
    faked.watermark(1, 1)
    faked.settle()
    answered = CommitAnswered("id", 7, 1, answered=1)
    faked.cluster.commit_acknowledged(faked.cluster.partition(TP), answered)
    faked.cluster.commit_acknowledged(faked.cluster.partition(TP), answered._replace(answered=2))


def forgets_a_follower(faked: Faked) -> None:
    faked.cluster.leads_on(faked.replica(1), forgotten=frozenset({2}), left_waiting=False)


def leaves_who_waits(faked: Faked) -> None:
    faked.role(1, 2, leads=True)
    faked.tree(1, 2, (1, 2, 3))
    faked.cluster.leads_on(faked.replica(1), forgotten=frozenset(), left_waiting=True)


BAD: dict[Scene, str] = {
    forgets_a_follower: "LeadsOn",
    leaves_who_waits: "LeadsOn",
    stable_in_an_open_one: "StableBelowOpen",
    stable_before_the_marker_is_committed: "StableBelowOpen",
    marked_by_an_old_coordinator: "OldCoordinatorsMarkNothing",
    behind_the_marker: "NothingBehindTheMarker",
    two_outcomes: "OneOutcome",
    commit_answered_undecided: "CommitIsDecided",
    one_leader: "OneLeaderPerEpoch",
    one_leader_in_time: "OneLeaderPerEpoch",
    other_content: "LogMatching",
    other_batches_before: "LogMatching",
    shown_and_then_replaced: "ConsistentRead",
    falling: "WatermarksNeverFall",
    falling_on_a_promotion: "WatermarksNeverFall",
    above_the_log: "WatermarkInLog",
    leader_outside: "LeaderInIsr",
    nobody_in_sync: "LeaderInIsr",
    elected_from_outside: "ElectedFromIsr",
    not_counted: "MaximalIsr",
    joined_uncounted: "MaximalIsr",
    behind_in_the_leaders_own: "WeakIsr",
    behind_in_the_trees: "StrongIsr",
    cut_below_the_watermark: "WeakIsr",
    leader_that_lacks_some: "LeaderCompleteness",
    candidate_that_lacks_some: "LeaderCandidateCompleteness",
    wrong_session: "FencedChangesNothing",
    earlier_controller_epoch: "FencedChangesNothing",
    controller_epoch_of_nobody: "FencedChangesNothing",
    leader_epoch_falls: "EpochsNeverFall",
    written_over: "EpochsNeverFall",
    two_leaders_in_the_tree: "EpochsNeverFall",
    one_session_twice: "OneOwnerPerSession",
    acknowledged_early: "AcknowledgedIsCommitted",
    dead_found_by_its_leader: "DeadLeaveAtOnce",
    joins_before_the_end: "JoinsAtTheEnd",
    moves_under_the_minimum: "WatermarkKeepsMinimum",
}


@pytest.mark.parametrize("scene", BAD, ids=lambda scene: scene.__name__)
def test_a_bad_state_is_caught_by_name(scene: Scene) -> None:
    faked = Faked()

    def play() -> None:
        scene(faked)
        faked.settle()

    with pytest.raises(InvariantBroken) as caught:
        play()
    assert caught.value.name == BAD[scene], caught.value


def test_every_invariant_has_a_bad_state() -> None:
    assert set(BAD.values()) == {kind.__name__ for kind in ALL}


def test_a_sound_failover_breaks_nothing() -> None:
    faked = Faked()
    faked.committed()
    # The leader appends alone, and dies; the next one cuts nothing, and the first cuts what nobody was shown.
    faked.append(1, 1)
    faked.settle()
    faked.cluster.resign(faked.replica(1))
    faked.tree(2, 2, (2, 3), controller_epoch=5)
    faked.role(2, 2, leads=True)
    faked.isr(2, (2, 3))
    faked.settle()
    faked.role(3, 2, leads=False)
    faked.append(2, 2)
    faked.append(3, 2)
    faked.settle()
    faked.watermark(2, 3)
    faked.settle()
    faked.role(1, 2, leads=False, life="next")
    faked.watermark(1, 0)
    faked.cut(1, 2)
    faked.append(1, 2)
    faked.settle()
    faked.isr(2, (2, 3), (1, 2, 3))
    faked.settle()
    faked.tree(2, 2, (2, 3, 1))
    faked.settle()
    assert [faked.cluster.events[kind] for kind in ("elections", "ISR changes", "truncations")] == [1, 2, 1]
    faked.cluster.acknowledged(TP, b"", 3)


def test_whoever_has_the_end_joins_under_the_minimum_and_moves_the_watermark() -> None:
    faked = Faked()
    _alone(faked)
    faked.append(2, 1)
    faked.settle()
    faked.isr(1, (1,), (1, 2))
    faked.settle()
    faked.tree(1, 1, (1, 2), gone_s={3: 30.0})
    faked.isr(1, (1, 2))
    faked.watermark(1, 3)
    faked.settle()


def test_a_transaction_that_ended_and_one_that_is_cut_hold_nothing_up() -> None:
    faked = Faked()
    in_transaction(faked, 0, to=(1, 2, 3))
    in_transaction(faked, 1, coordinator=3, commits=True, to=(1, 2, 3))
    for broker in (1, 2, 3):
        faked.watermark(broker, 2)
        faked.replica(broker).stable = 2
    faked.settle()
    in_transaction(faked, 1, to=(3,))
    faked.settle()
    log = faked.replica(3).log
    assert log.transactions is not None
    assert log.transactions.first_unstable(2) == 2
    assert list(log.transactions.open) == [7]
    faked.cut(3, 2)
    faked.settle()
    assert log.transactions.first_unstable(2) is None
    # Of a marker above the watermark the files, which a cut reads, do not say that it is above.
    assert log.transactions.first_unstable(1) is None
    # Without the marker the transaction is open again.
    log.cut(1)
    assert log.transactions.first_unstable(1) == 0


def test_a_fenced_leader_may_believe_to_lead_on() -> None:
    faked = Faked()
    faked.committed()
    faked.tree(2, 2, (2, 3))
    faked.role(2, 2, leads=True)
    faked.isr(2, (2, 3))
    faked.append(1, 1)
    faked.append(2, 2)
    faked.append(3, 2)
    faked.settle()
    faked.watermark(2, 3)
    faked.settle()


def test_an_unclean_election_may_lose_what_was_committed_and_still_logs_match() -> None:
    faked = Faked()
    faked.committed()
    faked.cut(3, 2)
    faked.tree(1, 1, (1,), unclean=True)
    faked.isr(1, (1,))
    faked.append(1, 1)
    faked.settle()
    faked.watermark(1, 3)
    faked.settle()
    faked.tree(3, 2, (3,), unclean=True)
    faked.role(3, 2, leads=True)
    faked.isr(3, (3,))
    faked.append(3, 2)
    faked.watermark(3, 3)
    faked.settle()
    faked.append(2, 2, content=9)
    with pytest.raises(InvariantBroken, match="LogMatching"):
        faked.settle()


def test_a_log_that_begins_at_the_leaders_start_agrees_with_it() -> None:
    faked = Faked()
    faked.committed()
    faked.cluster.begin_log(faked.replica(3), 1)
    faked.append(3, 1)
    faked.settle()
    assert faked.replica(3).log.chains == faked.replica(1).log.chains[1:]


def test_a_topic_that_is_created_again_is_another_one() -> None:
    faked = Faked()
    faked.committed()
    replica = faked.cluster.replica(TP, 1, b"another id")
    faked.cluster.take_role(replica, leads=True, epoch=0)
    faked.cluster.log_grew(replica, [SeenBatch(0, 1, 1, 77)])
    faked.settle()


def test_a_leader_is_replaced_when_another_one_is_elected_and_it_leads_on() -> None:
    faked = Faked()
    partition = faked.cluster.partition(TP)
    assert partition.replaced_at(1) is None
    # In its next leader epoch the same one leads.
    faked.tree(1, 2, (1, 2), seconds=5.0)
    assert partition.replaced_at(1) is None
    faked.tree(2, 3, (1, 2), seconds=7.0)
    faked.tree(3, 4, (1, 2, 3), seconds=9.0)
    assert partition.replaced_at(1) == 7.0
    assert partition.replaced_at(2) is None
    faked.role(1, 4, leads=False)
    assert partition.replaced_at(1) is None
