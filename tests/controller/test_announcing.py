"""A broker's queue: what goes out, in which order, what supersedes what, and what is bounded."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from tests.searches import seeds

from ottla.controller.announcing.announcements import (
    Announcement,
    LostTrack,
    Metadata,
    NewLogs,
    Roles,
    RolesAnswer,
    Stops,
    StopsAnswer,
)
from ottla.controller.announcing.queue import GONE_MAX, REPLICAS_AT_ONCE, SMALL_MAX, BrokerQueue
from ottla.controller.deciding.orders import EPOCH_DURING_DELETE, MetadataOrder, ReplicaStop, RoleOrder, StopOrder
from ottla.metadata import MetadataCache, MetadataUpdate, PartitionState
from ottla.model import BrokerId, Epoch, ErrorCode, TopicId, TopicPartition

ME = BrokerId(1)
EPOCH = Epoch(1)


def state(topic: str, partition: int = 0, epoch: int = 0, *, generation: int = 0) -> PartitionState:
    topic_id = TopicId(topic.encode().ljust(15, b"-") + bytes([generation]))
    return PartitionState(topic, partition, topic_id, EPOCH, ME, Epoch(epoch), (ME,), (ME,), epoch)


def shown(*states: PartitionState) -> MetadataOrder:
    return MetadataOrder(MetadataUpdate(controller_epoch=EPOCH, partitions=states))


def configs(**of_topics: dict[str, str]) -> MetadataOrder:
    return MetadataOrder(MetadataUpdate(controller_epoch=EPOCH, topic_configs=of_topics))


def deleted(*topics: str) -> MetadataOrder:
    return MetadataOrder(MetadataUpdate(controller_epoch=EPOCH, topics_deleted=topics))


def roles(*states: PartitionState, is_new: bool = False) -> RoleOrder:
    return RoleOrder(ME, states, is_new)


def stops(*topics: str) -> StopOrder:
    return StopOrder(ME, [stop(topic) for topic in topics])


def stop(topic: str, partition: int = 0, leader_epoch: int = EPOCH_DURING_DELETE) -> ReplicaStop:
    return ReplicaStop(TopicPartition(topic, partition), leader_epoch, delete=True)


def call_of(queue: BrokerQueue) -> Announcement:
    call = queue.next()
    assert call is not None
    return call


def worked_off(queue: BrokerQueue) -> list[Announcement]:
    calls: list[Announcement] = []
    while call := queue.next():
        calls.append(call)
        queue.done(isinstance(call, NewLogs) or None)
    return calls


def test_settings_roles_what_is_seen_and_then_what_goes() -> None:
    queue = BrokerQueue(ME)
    for order in (stops("gone"), shown(state("t")), roles(state("t")), configs(t={"a": "1"}), deleted("gone")):
        queue.add(order)
    first, second, third, last = worked_off(queue)
    assert isinstance(first, Metadata)
    assert (first.update.topics_deleted, first.update.topic_configs) == (["gone"], {"t": {"a": "1"}})
    assert not first.update.partitions
    assert second == Roles([state("t")])
    assert isinstance(third, Metadata)
    assert third.update.partitions == [state("t")]
    assert last == Stops([stop("gone")])
    assert queue.is_idle


def test_of_two_decisions_the_later_is_announced() -> None:
    queue = BrokerQueue(ME)
    for epoch in range(5):
        queue.add(roles(state("t", epoch=epoch)))
        queue.add(shown(state("t", epoch=epoch)))
        queue.add(configs(t={"a": str(epoch)}))
    settings, role, seen = worked_off(queue)
    assert isinstance(settings, Metadata)
    assert isinstance(seen, Metadata)
    assert (settings.update.topic_configs, role) == ({"t": {"a": "4"}}, Roles([state("t", epoch=4)]))
    assert seen.update.partitions == [state("t", epoch=4)]
    # A replica that goes needs no role, and one that comes back does not go.
    queue.add(roles(state("x"), state("y")))
    queue.add(stops("x"))
    assert worked_off(queue) == [Roles([state("y")]), Stops([stop("x")])]
    queue.add(stops("x", "y"))
    queue.add(roles(state("x")))
    assert worked_off(queue) == [Roles([state("x")]), Stops([stop("y")])]


def test_what_failed_goes_out_again_under_what_was_decided_meanwhile() -> None:
    queue = BrokerQueue(ME)
    confirmed: list[str] = []
    queue.add(roles(state("a"), state("b")))
    queue.add(shown(state("a"), state("b")))
    queue.wait(lambda: confirmed.append("first"))
    assert call_of(queue) == Roles([state("a"), state("b")])
    queue.add(roles(state("b", epoch=1)))
    queue.add(shown(state("b", epoch=1)))
    queue.wait(lambda: confirmed.append("second"))
    queue.failed()
    assert call_of(queue) == Roles([state("a"), state("b", epoch=1)])
    queue.done({})
    call = call_of(queue)
    assert isinstance(call, Metadata)
    assert call.update.partitions == [state("a"), state("b", epoch=1)]
    assert confirmed == []
    queue.done(None)
    assert queue.next() is None
    assert confirmed == ["first", "second"]


def test_a_role_that_was_not_taken_on_is_not_shown_before_the_controller_has_decided() -> None:
    queue = BrokerQueue(ME)
    bad = TopicPartition("bad", 0)
    confirmed: list[str] = []
    queue.add(roles(state("good"), state("bad")))
    queue.add(shown(state("good"), state("bad")))
    queue.wait(lambda: confirmed.append("all"))
    call = call_of(queue)
    failed = {bad: ErrorCode.KAFKA_STORAGE_ERROR, TopicPartition("good", 0): ErrorCode.NONE}
    assert queue.done(failed) == [RolesAnswer(ME, call.states, {bad: ErrorCode.KAFKA_STORAGE_ERROR})]  # type: ignore[union-attr]
    assert queue.next() is None
    assert not queue.is_idle
    nobody = state("bad", epoch=1)._replace(leader=BrokerId(-1))
    queue.add(shown(nobody))
    queue.go_on()
    (seen,) = worked_off(queue)
    assert isinstance(seen, Metadata)
    assert seen.update.partitions == [state("good"), nobody]
    assert confirmed == ["all"]


def many(topic: str, count: int) -> list[PartitionState]:
    return [state(topic, partition)._replace(is_new=True) for partition in range(count)]


def test_many_new_replicas_are_made_in_pieces_that_others_pass() -> None:
    queue = BrokerQueue(ME)
    queue.add(configs(large={"a": "1"}))
    queue.add(roles(*many("large", REPLICAS_AT_ONCE + 1), is_new=True))
    queue.add(roles(*many("next", SMALL_MAX + 1), is_new=True))
    calls: list[Announcement] = []
    number = 0
    while call := queue.next():
        calls.append(call)
        queue.done(isinstance(call, NewLogs) or None)
        if number < 10:
            number += 1
            queue.add(roles(*many(f"small{number}", SMALL_MAX), is_new=True))
    shapes = [(type(call), len(call.states) if isinstance(call, NewLogs | Roles) else 0) for call in calls]
    # Its settings first, then one of its steps and one of the others' in turn.
    assert shapes[:6] == [
        (Metadata, 0),
        (NewLogs, REPLICAS_AT_ONCE),
        (Roles, 2 * SMALL_MAX),
        (NewLogs, 1),
        (Roles, 2 * SMALL_MAX),
        (Roles, REPLICAS_AT_ONCE + 1),
    ]
    # What is not small has waited for the large one.
    assert [shape for shape in shapes if shape[1] == SMALL_MAX + 1] == [(Roles, SMALL_MAX + 1)]
    assert sum(size for _, size in shapes) == 2 * (REPLICAS_AT_ONCE + 1) + SMALL_MAX + 1 + 10 * SMALL_MAX


def test_logs_are_not_made_before_their_settings_are_announced_though_that_fails_at_first() -> None:
    queue = BrokerQueue(ME)
    queue.add(configs(other={"a": "1"}))
    worked_off(queue)
    queue.add(configs(large={"a": "1"}))
    queue.add(roles(*many("large", SMALL_MAX + 1), is_new=True))
    assert isinstance(queue.next(), Metadata)
    queue.failed()
    first, second = worked_off(queue)
    assert isinstance(first, Metadata)
    assert first.update.topic_configs == {"large": {"a": "1"}}
    assert isinstance(second, Roles)


def test_a_flood_of_small_ones_is_announced_in_parts() -> None:
    queue = BrokerQueue(ME)
    for number in range(100):
        queue.add(roles(*many(f"t{number}", 10), is_new=True))
    sizes = [len(call.states) for call in worked_off(queue) if isinstance(call, Roles)]
    assert sizes == [REPLICAS_AT_ONCE] * 4


def test_logs_that_cannot_be_made_are_found_out_with_their_roles() -> None:
    queue = BrokerQueue(ME)
    queue.add(roles(*many("large", 3 * REPLICAS_AT_ONCE), is_new=True))
    assert isinstance(queue.next(), NewLogs)
    queue.done(False)
    assert isinstance(queue.next(), Roles)


def test_a_deleted_topic_is_not_made_any_more() -> None:
    queue = BrokerQueue(ME)
    queue.add(roles(*many("large", 3 * REPLICAS_AT_ONCE), is_new=True))
    queue.add(roles(*many("small", 2), *many("other", 1), is_new=True))
    gone = [*many("large", 3 * REPLICAS_AT_ONCE), *many("small", 2)]
    queue.add(StopOrder(ME, [stop(state.topic, state.partition) for state in gone]))
    calls = worked_off(queue)
    assert [call.states for call in calls if isinstance(call, Roles)] == [many("other", 1), []]
    assert not any(isinstance(call, NewLogs) for call in calls)


def test_what_was_decided_on_a_new_partition_that_waits_is_not_undone_by_its_turn() -> None:
    queue = BrokerQueue(ME)
    first, later, again = state("t"), state("t", epoch=2), state("t", generation=1)
    queue.add(roles(first, state("x"), is_new=True))
    # It was made by its leader, and shown; then another one was elected, while this broker did not answer.
    queue.add(roles(later))
    assert worked_off(queue) == [Roles([later._replace(is_new=True), state("x")])]
    # Another topic under its name is new.
    queue.add(roles(later))
    queue.add(roles(again, is_new=True))
    assert worked_off(queue) == [Roles([again])]


@pytest.mark.parametrize("others", [0, SMALL_MAX, 5 * REPLICAS_AT_ONCE])
def test_what_was_decided_on_some_of_many_new_partitions_passes_them_as_new(others: int) -> None:
    """This broker makes their logs late, and one of their leaders is another one by then."""
    queue = BrokerQueue(ME)
    queue.add(roles(*many("t", others + 1), is_new=True))
    for number in range(10):  # more small ones than one sweep takes
        queue.add(roles(*many(f"small{number}", SMALL_MAX), is_new=True))
    later = state("t", 0, epoch=2), state("small9", 0, epoch=2)
    queue.add(roles(*later))
    calls = [call for call in worked_off(queue) if isinstance(call, NewLogs | Roles)]
    announced = [(each.topic, each.partition) for call in calls if isinstance(call, Roles) for each in call.states]
    assert len(announced) == len(set(announced)) == others + 1 + 10 * SMALL_MAX
    for role in later:
        found = [each for call in calls for each in call.states if (each.topic, each.partition) == (role.topic, 0)]
        assert found == [role._replace(is_new=True)]
    if others > REPLICAS_AT_ONCE:
        # The others' logs are made in pieces all the same.
        assert sum(len(call.states) for call in calls if isinstance(call, NewLogs)) == others


def test_a_decision_on_new_logs_that_are_just_being_made_is_behind_them() -> None:
    queue = BrokerQueue(ME)
    queue.add(roles(*many("t", 2 * REPLICAS_AT_ONCE), is_new=True))
    assert isinstance(queue.next(), NewLogs)
    queue.add(roles(state("t", 0, epoch=1)))
    queue.done(True)
    calls = worked_off(queue)
    states = {each.partition: each for call in calls if isinstance(call, Roles) for each in call.states}
    assert len(states) == 2 * REPLICAS_AT_ONCE
    assert [number for number, each in states.items() if each.leader_epoch == 1] == [0]


def test_a_partition_that_has_moved_away_takes_no_other_of_its_topic_with_it() -> None:
    queue = BrokerQueue(ME)
    queue.add(roles(*many("t", 3), is_new=True))
    queue.add(StopOrder(ME, [stop("t", 1, leader_epoch=3)]))
    (call,) = [call for call in worked_off(queue) if isinstance(call, Roles)]
    assert [state.partition for state in call.states] == [0, 2]


def test_of_two_stops_the_later_is_announced_also_when_the_first_has_failed() -> None:
    queue = BrokerQueue(ME)
    queue.add(StopOrder(ME, [stop("t", leader_epoch=3), stop("u", leader_epoch=5)]))
    assert call_of(queue) == Stops([stop("t", leader_epoch=3), stop("u", leader_epoch=5)])
    queue.add(stops("t"))
    queue.failed()
    assert worked_off(queue) == [Stops([stop("t"), stop("u", leader_epoch=5)])]


def test_names_of_the_gone_are_bounded() -> None:
    queue = BrokerQueue(ME)
    queue.add(configs(t={"a": "1"}))
    assert isinstance(queue.next(), Metadata)
    lost: list[LostTrack] = []
    for number in range(2 * GONE_MAX):
        lost += queue.add(deleted(f"gone{number}"))
        if lost and number == GONE_MAX + 10:
            everything = MetadataUpdate(controller_epoch=EPOCH, whole=True, partitions=[state("t")], brokers=[])
            queue.add(MetadataOrder(everything))
    assert lost == [LostTrack(ME)]
    queue.done(None)
    first, second = worked_off(queue)
    assert isinstance(first, Metadata)
    assert isinstance(second, Metadata)
    assert len(first.update.topics_deleted) < GONE_MAX
    assert second.update.whole


class PlainBroker:
    """Does at once what it is announced."""

    def __init__(self) -> None:
        self.cache = MetadataCache()
        self.roles: dict[TopicPartition, PartitionState] = {}

    def take(self, call: Announcement) -> None:
        if isinstance(call, Metadata):
            assert self.cache.apply(call.update)
        elif isinstance(call, Roles):
            self.roles.update({TopicPartition(each.topic, each.partition): each for each in call.states})
        elif isinstance(call, Stops):
            for tp, _, _ in call.stops:
                self.roles.pop(tp, None)

    def known(self) -> object:
        return (
            {name: (topic.id, topic.partitions) for name, topic in self.cache.topics.items()},
            {name: dict(self.cache.topic_config(name)) for name in "abc"},
            self.roles,
        )


@pytest.mark.parametrize("seed", seeds(40, 300))
def test_a_broker_that_is_slow_and_fails_ends_where_one_is_that_was_announced_each_thing_at_once(seed: int) -> None:
    random = Random(seed)
    queue, behind, direct = BrokerQueue(ME), PlainBroker(), PlainBroker()
    epochs = dict.fromkeys("abc", 0)
    generations = dict.fromkeys("abc", 0)
    unstopped: set[str] = set()

    def some_orders() -> Sequence[MetadataOrder | RoleOrder | StopOrder]:
        topic = random.choice("abc")
        epochs[topic] += 1
        kind = random.randrange(5)
        if kind == 0:
            # As the controller does: a name is free when the broker has given up what it had.
            unstopped.add(topic)
            return [deleted(topic), stops(topic)]
        if topic in unstopped:
            return []
        found = state(topic, 0, epochs[topic], generation=generations[topic])
        if kind == 1:
            return [configs(**{topic: {"n": str(epochs[topic])}})]
        if kind == 2:
            return [roles(found), shown(found)]
        if kind == 3:
            return [shown(found)]
        states = [each for topic in direct.cache.topics.values() for each in topic.partitions]
        named = {name: dict(direct.cache.topic_config(name)) for name in "abc" if direct.cache.topic_config(name)}
        whole = MetadataUpdate(controller_epoch=EPOCH, whole=True, partitions=states, topic_configs=named)
        return [MetadataOrder(whole)]

    def one_call() -> bool:
        call = queue.next()
        if call is None:
            return False
        if random.random() < 0.3:
            if random.random() < 0.5:
                behind.take(call)  # it was carried out, and nobody knows
            queue.failed()
            return True
        behind.take(call)
        for answer in queue.done(None):
            if isinstance(answer, StopsAnswer):
                for tp in answer.partitions:
                    unstopped.discard(tp.topic)
                    generations[tp.topic] += 1
        return True

    for _ in range(60):
        for order in some_orders():
            queue.add(order)
            if isinstance(order, MetadataOrder):
                direct.take(Metadata(order.update))
            elif isinstance(order, RoleOrder):
                direct.take(Roles(order.states))
            else:
                direct.take(Stops(order.stops))
        while random.random() < 0.5 and one_call():
            pass
    while one_call():
        pass
    assert queue.is_idle
    assert behind.known() == direct.known()
