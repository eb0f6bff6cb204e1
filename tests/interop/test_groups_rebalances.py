"""Rebalances that do not stop anybody: static members that come back, and cooperative ones that keep what stays."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor

from tests.interop.broker import Broker
from tests.interop.conftest import Join, create_topic
from tests.interop.group_members import STARTS, Event, Member, partitions_of, shares, wait_for
from tests.interop.group_writing import SteadyLoad, Writing
from tests.searches import some

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-groups")]

#: Each client's words for it.
COOPERATIVE: dict[str, dict[str, Any]] = {
    "confluent": {"partition_assignment_strategy": "cooperative-sticky"},
    "kafka-python": {"partition_assignment_strategy": (CooperativeStickyAssignor,)},
    "ottla": {"partition_assignment_strategy": "cooperative-sticky"},
    "java": {"partition_assignment_strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"},
}


@pytest.mark.parametrize("client", some([*STARTS, "java"], "java"))
def test_a_static_member_that_is_restarted_causes_no_rebalance(
    join: Join, group_broker: Broker, group_admin: AdminClient, new_name: str, client: str
) -> None:
    create_topic(group_admin, new_name, partitions=4)
    writing = Writing(group_broker.bootstrap, new_name, 4)
    other = join("confluent", "other", new_name, new_name, group_instance_id="one")
    wait_for(lambda: len(other.assigned) == 4, join.members)
    restarted = join(client, "restarted", new_name, new_name, group_instance_id="two")
    wait_for(lambda: len(other.assigned) == 2 == len(restarted.assigned), join.members)
    writing.write_and_wait([other, restarted], join.members)
    held, events = restarted.assigned, list(other.events)
    join.stay(restarted)
    again = join(client, "again", new_name, new_name, group_instance_id="two")
    wait_for(lambda: again.assigned == held, join.members)
    writing.write_and_wait([other, again], join.members)
    assert other.events == events


def test_a_static_member_that_stays_away_is_put_out_when_its_session_ends(
    join: Join, group_admin: AdminClient, new_name: str
) -> None:
    create_topic(group_admin, new_name, partitions=2)
    short = {"session_timeout_ms": 1000, "heartbeat_interval_ms": 100}
    other = join("confluent", "other", new_name, new_name, group_instance_id="one")
    away = join("confluent", "away", new_name, new_name, group_instance_id="two", **short)
    wait_for(lambda: len(other.assigned) == 1 == len(away.assigned), join.members)
    join.stay(away)
    wait_for(lambda: len(other.assigned) == 2, join.members)


@pytest.mark.parametrize(
    "clients",
    some(
        [["confluent"], ["java"], ["kafka-python"], ["ottla"], ["ottla", "java", "confluent"]],
        ["ottla", "java", "confluent"],
    ),
    ids="+".join,
)
def test_a_partition_that_stays_is_never_revoked(
    join: Join, group_broker: Broker, group_admin: AdminClient, new_name: str, clients: list[str]
) -> None:
    """Three members come and one goes, under load: each rebalance moves no more than it must, and all are read."""
    create_topic(group_admin, new_name, partitions=6)
    partitions = partitions_of(new_name, 6)
    with SteadyLoad(group_broker.bootstrap, new_name, 6) as load:
        for number in range(3):
            client = clients[number % len(clients)]
            held = {member: member.assigned for member in join.members}
            seen = {member: len(member.events) for member in join.members}
            join(client, f"member-{number}", new_name, new_name, **COOPERATIVE[client])
            wanted = 6 // (number + 1)
            wait_for(
                lambda wanted=wanted: (  # type: ignore[misc]
                    shares(join.members, partitions) and all(len(member.assigned) == wanted for member in join.members)
                ),
                join.members,
            )
            for member, before in held.items():
                assert_only_moved(member, before, member.events[seen[member] :])
            load.wait_for_more(join.present, 20)
        leaving, *staying = join.members
        held = {member: member.assigned for member in staying}
        seen = {member: len(member.events) for member in staying}
        join.leave(leaving)
        wait_for(lambda: shares(staying, partitions), join.members)
        for member, before in held.items():
            assert_only_moved(member, before, member.events[seen[member] :])
            assert before <= member.assigned
        load.wait_for_more(staying, 20)
    read = {value for member in join.members for value in member.values}
    wait_for(lambda: {value for member in join.members for value in member.values} >= set(load.written), join.members)
    assert read <= set(load.written)


def assert_only_moved(member: Member, before: frozenset[tuple[str, int]], events: list[Event]) -> None:
    """What it holds still was neither revoked nor assigned anew."""
    kept = before & member.assigned
    for event in events:
        assert not event.partitions & kept, (member, event)
