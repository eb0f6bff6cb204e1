"""Partitions that move to other brokers: in Kafka's phases, called off, sent elsewhere, and gone on with."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.controller.several import Brokers, ids

from ottla.controller.interface import NewPartitions, Reassignment, TopicRef
from ottla.coordination.notifications import decode_reassignments, encode_reassignments
from ottla.coordination.znodes import TopicAssignment, decode_topic
from ottla.model import ErrorCode, TopicPartition

TP = TopicPartition("orders", 0)
PATH = "/admin/reassign_partitions"


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    made = Brokers(5, auto_leader_rebalance=False)
    made.settle(made.begin())
    made.settle(made.create("orders", 1, 2))
    yield made
    made.close()


def move(brokers: Brokers, *target: int, tp: TopicPartition = TP, keeps_factor: bool = False) -> tuple[str, str | None]:
    """Nobody named: called off."""
    change = Reassignment(tp, ids(*target) or None, keeps_factor)
    error, (result,) = brokers.settle(brokers.controller.alter_reassignments([change]))  # type: ignore[misc]
    assert error is ErrorCode.NONE
    return result.error.name, result.message


def assignment(brokers: Brokers, topic: str = "orders") -> TopicAssignment:
    path = f"/brokers/topics/{topic}"
    return decode_topic(path, brokers.person.store._tree.nodes[path].data)


def stands(brokers: Brokers, partition: int = 0) -> tuple[object, object, object]:
    found = assignment(brokers)
    return found.replicas[partition], found.adding.get(partition), found.removing.get(partition)


def catch_up(brokers: Brokers, *isr: int, partition: int = 0) -> ErrorCode:
    result = brokers.settle(brokers.change_isr("orders", *isr, partition=partition))
    assert result is not None
    return result.error


def holders(brokers: Brokers, tp: TopicPartition = TP) -> list[int]:
    """Brokers with a log of it."""
    return [number for number, broker in brokers.all.items() if tp in broker.roles]


def test_a_partition_moves_in_phases(brokers: Brokers) -> None:
    assert move(brokers, 3, 4) == ("NONE", None)
    assert stands(brokers) == ((3, 4, 1, 2), (3, 4), (1, 2))
    # All hear of it under the next leader epoch, and those that are new make their logs.
    assert brokers.state("orders") == (1, 1, (1, 2))
    assert holders(brokers) == [1, 2, 3, 4]
    assert [brokers.all[number].roles[TP].is_new for number in (1, 2, 3, 4)] == [False, False, True, True]
    state = brokers.seen_by(5, "orders")
    assert (state.replicas, state.adding_replicas, state.removing_replicas) == ((3, 4, 1, 2), (3, 4), (1, 2))
    (ongoing,) = brokers.run(brokers.controller.reassignments(None))[1]
    assert ongoing == (TP, (3, 4, 1, 2), (3, 4), (1, 2))
    # One of two is not enough.
    assert catch_up(brokers, 1, 2, 3) is ErrorCode.NONE
    assert stands(brokers)[1] == (3, 4)
    assert catch_up(brokers, 1, 2, 3, 4) is ErrorCode.NEW_LEADER_ELECTED
    assert stands(brokers) == ((3, 4), None, None)
    assert brokers.state("orders") == (3, 2, (3, 4))
    assert holders(brokers) == [3, 4]
    state = brokers.seen_by(5, "orders")
    assert (state.leader, state.replicas, state.adding_replicas, state.removing_replicas) == (3, (3, 4), (), ())
    assert brokers.run(brokers.controller.reassignments(None)) == (ErrorCode.NONE, [])


def test_the_leader_stays_where_it_is_among_the_new(brokers: Brokers) -> None:
    assert move(brokers, 3, 1)[0] == "NONE"
    assert catch_up(brokers, 1, 2, 3) is ErrorCode.NONE
    assert stands(brokers) == ((3, 1), None, None)
    assert brokers.state("orders") == (1, 2, (1, 3))


def test_an_order_a_larger_and_a_smaller_number_of_replicas(brokers: Brokers) -> None:
    assert move(brokers, 2, 1)[0] == "NONE"
    assert stands(brokers) == ((2, 1), None, None)
    assert brokers.state("orders")[0] == 1
    assert move(brokers, 2, 1, 5)[0] == "NONE"
    assert stands(brokers) == ((2, 1, 5), (5,), None)
    assert catch_up(brokers, 1, 2, 5) is ErrorCode.NONE
    assert stands(brokers) == ((2, 1, 5), None, None)
    # Nobody has to catch up.
    assert move(brokers, 5)[0] == "NONE"
    assert stands(brokers) == ((5,), None, None)
    assert brokers.state("orders")[::2] == (5, (5,))
    assert holders(brokers) == [5]
    version = brokers.controller.context.topics["orders"].states[0].version
    assert move(brokers, 5)[0] == "NONE"
    assert brokers.controller.context.topics["orders"].states[0].version == version


def test_what_is_refused(brokers: Brokers) -> None:
    includes = "The manual partition assignment includes"
    brokers.settle(brokers.die(5))
    assert move(brokers, 1, 5) == (
        "INVALID_REPLICA_ASSIGNMENT",
        f"{includes} broker 5, but no such broker is registered.",
    )
    assert move(brokers, 3, 3) == ("INVALID_REPLICA_ASSIGNMENT", f"{includes} the broker 3 more than once.")
    assert move(brokers, 3, tp=TopicPartition("none", 0)) == (
        "UNKNOWN_TOPIC_OR_PARTITION",
        "Unable to find a topic named none.",
    )
    assert move(brokers, 3, tp=TopicPartition("orders", 4)) == (
        "UNKNOWN_TOPIC_OR_PARTITION",
        "Unable to find partition orders:4.",
    )
    assert move(brokers) == ("NO_REASSIGNMENT_IN_PROGRESS", "No partition reassignment is in progress.")
    assert move(brokers, 1, 2, 3, keeps_factor=True) == (
        "INVALID_REPLICATION_FACTOR",
        "The replication factor is changed from 2 to 3",
    )
    change = Reassignment(TP, ())
    _, (result,) = brokers.settle(brokers.controller.alter_reassignments([change]))  # type: ignore[misc]
    assert (result.error.name, result.message) == ("INVALID_REPLICA_ASSIGNMENT", f"{includes} an empty replica list.")
    assert stands(brokers) == ((1, 2), None, None)


def test_a_stop_that_is_overtaken_leaves_the_replica_that_came_back(brokers: Brokers) -> None:
    """What it ends is the role that was there when it was decided: on a connection that was given up it may be carried
    out when the partition is there again."""
    assert move(brokers, 2, 3)[0] == "NONE"
    assert catch_up(brokers, 1, 2, 3) is ErrorCode.NEW_LEADER_ELECTED
    (late,) = brokers.all[1].stops
    assert late == (TP, brokers.seen_by(5, "orders").leader_epoch, True)
    assert holders(brokers) == [2, 3]
    assert move(brokers, 1, 2)[0] == "NONE"
    assert holders(brokers) == [1, 2, 3]
    assert brokers.run(brokers.all[1].on_stop_replicas([late])) == {TP: ErrorCode.FENCED_LEADER_EPOCH}
    assert holders(brokers) == [1, 2, 3]


def test_a_deletion_ends_every_role(brokers: Brokers) -> None:
    assert move(brokers, 2, 1)[0] == "NONE"
    brokers.settle(brokers.controller.delete_topics([TopicRef("orders")]))
    assert [stop.leader_epoch for number in (1, 2) for stop in brokers.all[number].stops] == [-2, -2]
    assert holders(brokers) == []


def test_a_move_is_called_off(brokers: Brokers) -> None:
    assert move(brokers, 3, 4)[0] == "NONE"
    assert catch_up(brokers, 1, 2, 3) is ErrorCode.NONE
    assert move(brokers) == ("NONE", None)
    assert stands(brokers) == ((1, 2), None, None)
    assert brokers.state("orders") == (1, 2, (1, 2))
    assert holders(brokers) == [1, 2]
    assert move(brokers)[0] == "NO_REASSIGNMENT_IN_PROGRESS"


def test_a_move_is_not_called_off_where_only_the_new_ones_have_it_all(brokers: Brokers) -> None:
    assert move(brokers, 3, 4)[0] == "NONE"
    assert catch_up(brokers, 1, 2, 3) is ErrorCode.NONE
    for number in (1, 2):
        brokers.settle(brokers.die(number))
    assert brokers.state("orders")[::2] == (3, (3,))
    assert move(brokers) == (
        "INVALID_REPLICA_ASSIGNMENT",
        "Unable to revert partition assignment for orders:0 because it would require an unclean leader election.",
    )
    assert stands(brokers) == ((3, 4, 1, 2), (3, 4), (1, 2))


def test_a_move_is_sent_elsewhere(brokers: Brokers) -> None:
    assert move(brokers, 3, 4)[0] == "NONE"
    assert catch_up(brokers, 1, 2, 3) is ErrorCode.NONE
    assert move(brokers, 1, 5)[0] == "NONE"
    # From where it was, not from where it has been going.
    assert stands(brokers) == ((1, 5, 2), (5,), (2,))
    assert brokers.state("orders")[::2] == (1, (1, 2))
    assert holders(brokers) == [1, 2, 5]
    assert catch_up(brokers, 1, 2, 5) is ErrorCode.NONE
    assert stands(brokers) == ((1, 5), None, None)
    assert holders(brokers) == [1, 5]


def test_another_controller_goes_on_from_the_tree_alone(brokers: Brokers) -> None:
    assert move(brokers, 3, 4)[0] == "NONE"
    brokers.settle(brokers.die(1))
    assert brokers.active_number() != 1
    assert brokers.state("orders")[::2] == (2, (2,))
    assert catch_up(brokers, 2, 3, 4) is ErrorCode.NEW_LEADER_ELECTED
    assert stands(brokers) == ((3, 4), None, None)
    assert holders(brokers)[-2:] == [3, 4]
    assert 2 not in holders(brokers)


def test_a_move_that_was_done_but_for_its_end_is_ended_by_the_next_controller(brokers: Brokers) -> None:
    assert move(brokers, 3, 4)[0] == "NONE"

    async def work() -> None:
        # All are in sync, and the controller has gone before it saw that.
        held = asyncio.Event()
        controller = brokers.controller
        blocked = asyncio.ensure_future(controller.tenure.run(held.wait))
        await asyncio.sleep(0)
        known = controller.context.topics["orders"].states[0].state
        await brokers.write_state("orders", 1, known.leader_epoch, 1, 2, 3, 4)
        await brokers.person.delete("/controller")
        held.set()
        await asyncio.wait([blocked])

    brokers.settle(work())
    assert stands(brokers) == ((3, 4), None, None)
    assert brokers.state("orders")[::2] == (3, (3, 4))
    assert holders(brokers) == [3, 4]


def test_the_dead_that_are_moved_away_from_hold_nothing_up(brokers: Brokers) -> None:
    brokers.settle(brokers.die(2))
    assert move(brokers, 1, 3)[0] == "NONE"
    assert stands(brokers) == ((1, 3, 2), (3,), (2,))
    assert catch_up(brokers, 1, 3) is ErrorCode.NONE
    assert stands(brokers) == ((1, 3), None, None)


@pytest.mark.parametrize("also_states", [False, True])
def test_a_topic_that_somebody_else_writes_meanwhile_is_read_and_decided_anew(
    brokers: Brokers, also_states: bool
) -> None:
    async def work() -> None:
        # Partitions are added by an older tool; its watch has not been looked at yet.
        data, _ = await brokers.person.get("/brokers/topics/orders")
        await brokers.person.set("/brokers/topics/orders", data.replace(b'"0":[1,2]', b'"0":[1,2],"1":[2,1]'))
        if also_states:
            await brokers.write_state("orders", 1, 3, 1, 2)
        error, (result,) = await brokers.controller.alter_reassignments([Reassignment(TP, ids(3, 4))])
        assert (error, result.error) == (ErrorCode.NONE, ErrorCode.NONE)

    brokers.settle(work())
    assert stands(brokers) == ((3, 4, 1, 2), (3, 4), (1, 2))
    assert assignment(brokers).replicas[1] == (2, 1)
    assert brokers.state("orders") == (1, 4 if also_states else 1, (1, 2))
    assert brokers.seen_by(5, "orders", 1).leader == 2


def test_many_partitions_of_a_topic_move_with_few_writes(brokers: Brokers) -> None:
    brokers.settle(brokers.create_all("many", [(1, 2)] * 300))
    zxid = brokers.person.store._tree.zxid

    async def work() -> None:
        changes = [Reassignment(TopicPartition("many", number), ids(2, 3)) for number in range(300)]
        _, results = await brokers.controller.alter_reassignments(changes)
        assert {result.error for result in results} == {ErrorCode.NONE}

    brokers.settle(work())
    assert brokers.person.store._tree.zxid - zxid <= 2
    assert len(assignment(brokers, "many").adding) == 300


def test_a_topic_that_moves_does_not_grow_and_can_be_deleted(brokers: Brokers) -> None:
    assert move(brokers, 3, 4)[0] == "NONE"
    (grown,) = brokers.settle(brokers.controller.create_partitions([NewPartitions("orders", 3)]))  # type: ignore[misc]
    assert grown.error is ErrorCode.REASSIGNMENT_IN_PROGRESS
    brokers.settle(brokers.controller.delete_topics([TopicRef("orders")]))
    assert not brokers.exists("/brokers/topics/orders")
    assert holders(brokers) == []


# What an older tool asks for.


def test_what_an_older_tool_asks_for_is_moved_and_taken_from_its_node(brokers: Brokers) -> None:
    brokers.settle(brokers.create("other", 1, 2))
    wanted = {
        TP: ids(3, 1),
        TopicPartition("other", 0): ids(2, 1),
        TopicPartition("none", 0): ids(1),
        TopicPartition("other", 7): ids(1),
    }
    brokers.settle(brokers.person.create(PATH, encode_reassignments(wanted)))
    # What needs nobody to catch up is done, and what nobody knows is not there.
    assert decode_reassignments(PATH, brokers.person.store._tree.nodes[PATH].data) == {TP: (3, 1)}
    assert assignment(brokers, "other").replicas == {0: (2, 1)}
    assert stands(brokers) == ((3, 1, 2), (3,), (2,))
    # The next controller finds it there.
    brokers.settle(brokers.person.delete("/controller"))
    assert decode_reassignments(PATH, brokers.person.store._tree.nodes[PATH].data) == {TP: (3, 1)}
    assert catch_up(brokers, 1, 2, 3) is ErrorCode.NONE
    assert stands(brokers) == ((3, 1), None, None)
    assert not brokers.exists(PATH)
    # And again.
    brokers.settle(brokers.person.create(PATH, encode_reassignments({TP: ids(4, 1)})))
    assert stands(brokers) == ((4, 1, 3), (4,), (3,))
    assert move(brokers) == ("NONE", None)
    assert not brokers.exists(PATH)


@pytest.mark.parametrize("end", ["deleted", "sent elsewhere", "nothing asked for"])
def test_what_is_not_under_way_any_more_is_taken_from_the_node(brokers: Brokers, end: str) -> None:
    if end == "nothing asked for":
        brokers.settle(brokers.person.create(PATH, encode_reassignments({})))
    else:
        brokers.settle(brokers.person.create(PATH, encode_reassignments({TP: ids(3, 1)})))
        assert brokers.exists(PATH)
    if end == "deleted":
        brokers.settle(brokers.controller.delete_topics([TopicRef("orders")]))
    elif end == "sent elsewhere":
        assert move(brokers, 4, 1)[0] == "NONE"
        assert stands(brokers)[1] == (4,)
    assert not brokers.exists(PATH)


def test_a_request_that_is_not_understood_is_left_alone(brokers: Brokers) -> None:
    brokers.settle(brokers.person.create(PATH, b"[]"))
    assert brokers.exists(PATH)
    brokers.settle(brokers.person.set(PATH, encode_reassignments({TP: ids(2, 1)})))
    assert not brokers.exists(PATH)
    assert stands(brokers) == ((2, 1), None, None)


@pytest.mark.parametrize("by", ["cancel", "arrival"])
def test_a_broker_that_had_no_room_is_asked_again_when_it_is_moved_to_again(brokers: Brokers, by: str) -> None:
    """What had failed there was given up with the replica."""
    brokers.all[3].no_room.add(TP)
    assert move(brokers, 1, 3)[0] == "NONE"
    assert holders(brokers) == [1, 2]
    assert move(brokers, *(() if by == "cancel" else (1, 4)))[0] == "NONE"
    if by == "arrival":
        assert catch_up(brokers, 1, 2, 4) is ErrorCode.NONE
    assert stands(brokers)[1:] == (None, None)
    brokers.all[3].no_room.clear()
    assert move(brokers, 1, 3)[0] == "NONE"
    assert 3 in holders(brokers)
    assert catch_up(brokers, *brokers.state("orders")[2], 3) is ErrorCode.NONE
    assert stands(brokers) == ((1, 3), None, None)
