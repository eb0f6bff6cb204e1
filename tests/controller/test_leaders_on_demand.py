"""Leaders that move on demand, for a broker that wants to stop, and by themselves to even their load out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.controller.several import Brokers, ids

from ottla.controller.interface import ElectionKind, TopicToCreate
from ottla.controller.requests import KNOWN_MS_MAX
from ottla.coordination.notifications import encode_partitions
from ottla.coordination.znodes import encode_state
from ottla.model import ErrorCode, TopicPartition

PREFERRED, UNCLEAN = ElectionKind.PREFERRED, ElectionKind.UNCLEAN


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    made = Brokers(auto_leader_rebalance=False)
    made.settle(made.begin())
    yield made
    made.close()


def elect(brokers: Brokers, kind: ElectionKind, *partitions: tuple[str, int]) -> dict[str, str]:
    named = [TopicPartition(*found) for found in partitions] if partitions else None
    error, results = brokers.settle(brokers.controller.elect_leaders(kind, named))  # type: ignore[misc]
    assert error is ErrorCode.NONE
    assert all(result.message for result in results if result.error)
    return {str(result.tp): result.error.name for result in results}


def test_the_preferred_leaders_lead_again(brokers: Brokers) -> None:
    brokers.settle(brokers.create_all("orders", [(3, 2), (2, 3), (3, 2)]))
    brokers.settle(brokers.die(3))
    brokers.settle(brokers.start(3))
    assert [state[0] for state in brokers.states("orders")] == [2, 2, 2]
    asked = [("orders", 0), ("orders", 1), ("orders", 9), ("none", 0)]
    # Not in sync yet.
    assert elect(brokers, PREFERRED, *asked) == {
        "orders-0": "PREFERRED_LEADER_NOT_AVAILABLE",
        "orders-1": "ELECTION_NOT_NEEDED",
        "orders-9": "UNKNOWN_TOPIC_OR_PARTITION",
        "none-0": "UNKNOWN_TOPIC_OR_PARTITION",
    }
    for partition in range(3):
        brokers.settle(brokers.change_isr("orders", 2, 3, partition=partition))
    assert elect(brokers, PREFERRED, *asked)["orders-0"] == "NONE"
    assert [state[:2] for state in brokers.states("orders")] == [(3, 2), (2, 1), (2, 1)]
    # Of all: those that need none are not answered.
    assert elect(brokers, PREFERRED) == {"orders-2": "NONE"}
    assert brokers.seen_by(1, "orders", 2).leader == 3
    assert elect(brokers, PREFERRED) == {}


def test_an_unclean_election_on_demand(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 3, 2))
    brokers.settle(brokers.create("alone", 3))
    brokers.settle(brokers.change_isr("orders", 3))
    assert elect(brokers, UNCLEAN, ("orders", 0)) == {"orders-0": "ELECTION_NOT_NEEDED"}
    brokers.settle(brokers.die(3))
    assert brokers.state("orders") == (-1, 1, (3,))
    assert elect(brokers, UNCLEAN) == {"orders-0": "NONE", "alone-0": "ELIGIBLE_LEADERS_NOT_AVAILABLE"}
    assert brokers.state("orders") == (2, 2, (2,))
    assert brokers.controller.numbers.unclean_elections == 1


def test_partitions_that_nobody_has_ever_led_are_answered(brokers: Brokers) -> None:
    brokers.settle(brokers.die(3))
    data = b'{"partitions":{"0":[3]},"adding_replicas":{},"removing_replicas":{},"version":3}'
    brokers.settle(brokers.person.create("/brokers/topics/new", data))
    assert elect(brokers, PREFERRED, ("new", 0)) == {"new-0": "PREFERRED_LEADER_NOT_AVAILABLE"}
    assert elect(brokers, UNCLEAN) == {"new-0": "ELIGIBLE_LEADERS_NOT_AVAILABLE"}


def test_an_election_on_demand_on_a_state_that_has_changed_is_decided_anew(brokers: Brokers) -> None:
    brokers.settle(brokers.create_all("orders", [(3, 2)] * 3))
    brokers.settle(brokers.die(3))
    brokers.settle(brokers.start(3))
    for partition in range(3):
        brokers.settle(brokers.change_isr("orders", 2, 3, partition=partition))
    brokers.run(brokers.write_state("orders", 2, 7, 2, partition=1))
    assert elect(brokers, PREFERRED) == {
        "orders-0": "NONE",
        "orders-1": "PREFERRED_LEADER_NOT_AVAILABLE",
        "orders-2": "NONE",
    }
    assert [state[0] for state in brokers.states("orders")] == [3, 2, 3]


def test_what_an_older_tool_asks_for_is_done_and_its_node_goes(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 3, 2))
    for _ in range(2):
        brokers.settle(brokers.die(3))
        brokers.settle(brokers.start(3))
        brokers.settle(brokers.change_isr("orders", 2, 3))
        node = encode_partitions([TopicPartition("orders", 0), TopicPartition("none", 3)])
        brokers.settle(brokers.person.create("/admin/preferred_replica_election", node))
        assert brokers.state("orders")[0] == 3
        assert not brokers.exists("/admin/preferred_replica_election")
    # What is not understood is left alone, and the next request is seen all the same.
    brokers.settle(brokers.person.create("/admin/preferred_replica_election", b"?"))
    assert brokers.exists("/admin/preferred_replica_election")
    brokers.settle(brokers.person.set("/admin/preferred_replica_election", encode_partitions([])))
    assert not brokers.exists("/admin/preferred_replica_election")


# A broker that wants to stop.


def test_a_broker_that_wants_to_stop_gives_up_what_it_leads(brokers: Brokers) -> None:
    brokers.settle(brokers.create_all("orders", [(3, 2), (2, 3), (1, 2)]))
    brokers.settle(brokers.create("alone", 3))
    answer = brokers.settle(brokers.controller.shut_down(ids(3)[0], -1))
    assert answer is not None
    assert (answer.error, answer.remaining) == (ErrorCode.NONE, ())
    assert brokers.states("orders") == [(2, 1, (2,)), (2, 1, (2,)), (1, 0, (1, 2))]
    # Nobody could take this one over: it is served to the end.
    assert brokers.state("alone") == (3, 0, (3,))
    # It hears that others lead, and clients that it is about to be gone.
    assert brokers.all[3].roles[TopicPartition("orders", 0)].leader == 2
    assert brokers.seen_by(1, "orders", 0).offline_replicas == (3,)
    # Nothing new is placed there while there are others.
    made = brokers.controller.create_topics([TopicToCreate("new", 8, 2)])
    brokers.settle(made)
    placed = brokers.controller.context.topics["new"].replicas.values()
    assert not any(3 in replicas for replicas in placed)
    # It comes back as any other.
    brokers.settle(brokers.die(3))
    assert brokers.state("alone")[0] == -1
    brokers.settle(brokers.start(3))
    assert brokers.seen_by(1, "orders", 0).offline_replicas == ()
    assert brokers.settle(brokers.change_isr("orders", 2, 3)).error is ErrorCode.NONE  # type: ignore[union-attr]


def test_a_broker_may_stop_when_all_others_know_who_leads(brokers: Brokers) -> None:
    """Clients that it hangs up on ask another broker at once, and must not be sent back to it."""
    brokers.settle(brokers.create_all("orders", [(3, 2), (1, 3)]))

    async def seen_at_the_answer() -> list[int]:
        answer = await brokers.controller.shut_down(ids(3)[0], -1)
        assert answer.remaining == ()
        return [brokers.seen_by(number, "orders", 0).leader for number in brokers.numbers]

    assert brokers.run(seen_at_the_answer()) == [2, 2, 2]


def test_a_broker_that_hears_nothing_holds_up_no_stop_for_long(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 3, 2))
    brokers.all[1].hangs_in = "metadata"
    began = brokers.world.loop.time()
    answer = brokers.run(brokers.controller.shut_down(ids(3)[0], -1))
    assert answer.remaining == ()
    assert brokers.state("orders")[0] == 2
    assert brokers.world.loop.time() - began == pytest.approx(KNOWN_MS_MAX / 1000, abs=0.01)
    brokers.all[1].hangs_in = None
    brokers.all[1].go_on()
    brokers.settle()


def test_a_broker_keeps_what_nobody_can_take_over(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 3, 2, 1))
    brokers.settle(brokers.change_isr("orders", 3))
    three = ids(3)[0]
    answer = brokers.settle(brokers.controller.shut_down(three, -1))
    assert answer is not None
    assert answer.remaining == (TopicPartition("orders", 0),)
    # It leads on, also when others die, and what caught up meanwhile takes over at the next try.
    brokers.settle(brokers.die(2))
    assert brokers.state("orders") == (3, 0, (3,))
    brokers.settle(brokers.change_isr("orders", 3, 1))
    answer = brokers.settle(brokers.controller.shut_down(three, -1))
    assert answer is not None
    assert answer.remaining == ()
    assert brokers.state("orders") == (1, 1, (1,))


def test_an_old_life_of_a_broker_or_a_stranger_stops_nothing(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 3, 2))
    epoch = brokers.controller.context.brokers[ids(3)[0]].epoch

    async def errors() -> list[ErrorCode]:
        controller = brokers.controller
        asked = ((3, epoch - 1), (9, -1), (3, epoch + 1))
        return [(await controller.shut_down(ids(number)[0], known)).error for number, known in asked]

    found = brokers.settle(errors())
    assert found == [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.STALE_BROKER_EPOCH]
    assert brokers.state("orders") == (3, 0, (3, 2))


def test_all_stop_one_after_the_other_and_nothing_is_without_a_leader(brokers: Brokers) -> None:
    brokers.settle(brokers.create_all("orders", [(1, 2, 3), (2, 3, 1), (3, 1, 2)]))
    for number in (3, 2, 1):
        answer = brokers.settle(brokers.controller.shut_down(ids(number)[0], -1))
        assert answer is not None
        assert answer.remaining == ()
        assert all(state[0] not in (-1, number) for state in brokers.states("orders"))
        brokers.settle(brokers.die(number))
        assert all(state[0] != -1 for state in brokers.states("orders"))
        brokers.settle(brokers.start(number))
        for partition in range(3):
            brokers.settle(brokers.change_isr("orders", 1, 2, 3, partition=partition))


# Evening the load out.


def test_leaders_are_given_back_by_themselves_where_a_broker_leads_too_little() -> None:
    made = Brokers(auto_leader_rebalance=True, leader_imbalance_check_interval_s=60, leader_imbalance_percentage=30)
    made.settle(made.begin())
    made.settle(made.create_all("orders", [(3, 2)] * 3 + [(2, 3)] * 4))

    async def work() -> None:
        controller = made.controller
        # Broker 2 leads three of its four still: that is within the bound. Broker 3 leads nothing.
        await made.die(3)
        await made.settled()
        await made.start(3)
        await made.settled()
        for partition in (0, 1, 2):
            assert (await made.change_isr("orders", 2, 3, partition=partition)).error is ErrorCode.NONE
        state = controller.context.topics["orders"].states[6]
        moved = state.state._replace(leader=ids(3)[0], isr=ids(2, 3))
        await made.person.set("/brokers/topics/orders/partitions/6/state", encode_state(moved))
        controller.tenure.core.stale = True
        await asyncio.sleep(130)

    made.settle(work())
    assert [state[0] for state in made.states("orders")] == [3, 3, 3, 2, 2, 2, 3]
    made.close()


def test_a_controller_that_was_replaced_evens_nothing_out() -> None:
    made = Brokers(auto_leader_rebalance=True, leader_imbalance_check_interval_s=60)
    made.settle(made.begin())
    first = made.controller.tenure
    made.settle(made.person.delete("/controller"))
    assert first._rebalance is None
    assert made.controller.tenure._rebalance is not None
    made.close()
