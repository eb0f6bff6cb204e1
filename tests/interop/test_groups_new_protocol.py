"""``group.protocol=consumer``: the server assigns, and who is not concerned by a change reads on."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from tests.interop.broker import Broker
from tests.interop.conftest import Join, create_topic
from tests.interop.group_members import partitions_of, shares, wait_for, wait_for_each_once
from tests.interop.group_writing import SteadyLoad, Writing
from tests.searches import some

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-groups")]

CLIENTS = ["confluent", "java"]
NEW = {"group_protocol": "consumer"}


@pytest.mark.parametrize("comer", some(CLIENTS, "java"))
def test_a_member_comes_and_goes_while_the_others_never_stop(
    join: Join, group_broker: Broker, group_admin: AdminClient, new_name: str, comer: str
) -> None:
    create_topic(group_admin, new_name, partitions=6)
    partitions = partitions_of(new_name, 6)
    with SteadyLoad(group_broker.bootstrap, new_name, 6) as load:
        staying = []
        for client in CLIENTS:
            staying.append(join(client, f"stays-{client}", new_name, new_name, **NEW))
            # librdkafka starts a partition again at its first offset when a rebalance meets its first look for it.
            load.wait_for_more(staying, 1)
        wait_for(lambda: shares(staying, partitions) and all(len(m.assigned) == 3 for m in staying), staying)
        load.wait_for_more(staying, 20)
        seen = {member: len(member.events) for member in staying}
        held = {member: member.assigned for member in staying}

        coming = join(comer, "comes", new_name, new_name, **NEW)
        wait_for(lambda: shares(join.members, partitions) and len(coming.assigned) == 2, join.members)
        load.wait_for_more(join.members, 20)
        kept = {member: member.assigned for member in staying}
        join.leave(coming)
        wait_for(lambda: shares(staying, partitions), join.members)
        load.wait_for_more(staying, 20)

        for member in staying:
            assert kept[member] < held[member]
            assert len(kept[member]) == 2
            for event in member.events[seen[member] :]:
                assert not event.partitions & kept[member], (member, event)
    wait_for_each_once(load.written, join.members)


@pytest.mark.parametrize("assignor", some(["uniform", "range"], "uniform"))
def test_one_to_four_members_over_three_partitions(
    join: Join, group_broker: Broker, group_admin: AdminClient, new_name: str, assignor: str
) -> None:
    create_topic(group_admin, new_name, partitions=3)
    writing = Writing(group_broker.bootstrap, new_name, 3)
    partitions = partitions_of(new_name, 3)

    def expect(*counts: int) -> None:
        wait_for(
            lambda: (
                shares(join.present, partitions)
                and sorted(len(member.assigned) for member in join.present) == list(counts)
            ),
            join.members,
        )
        writing.write_and_wait(join.present, join.members, count=6)

    for number, counts in enumerate(([3], [1, 2], [1, 1, 1], [0, 1, 1, 1])):
        client = CLIENTS[number % 2]
        join(client, f"consumer{number + 1}", new_name, new_name, group_remote_assignor=assignor, **NEW)
        expect(*counts)
    for counts in ([1, 1, 1], [1, 2], [3]):
        join.leave(join.present[0])
        expect(*counts)


@pytest.mark.parametrize("client", some(CLIENTS, "confluent"))
def test_a_static_member_that_is_restarted_keeps_its_partitions(
    join: Join, group_broker: Broker, group_admin: AdminClient, new_name: str, client: str
) -> None:
    create_topic(group_admin, new_name, partitions=4)
    writing = Writing(group_broker.bootstrap, new_name, 4)
    other = join("confluent", "other", new_name, new_name, group_instance_id="one", **NEW)
    restarted = join(client, "restarted", new_name, new_name, group_instance_id="two", **NEW)
    wait_for(lambda: len(other.assigned) == 2 == len(restarted.assigned), join.members)
    writing.write_and_wait([other, restarted], join.members)
    held, events = restarted.assigned, list(other.events)
    join.stay(restarted)
    again = join(client, "again", new_name, new_name, group_instance_id="two", **NEW)
    wait_for(lambda: again.assigned == held, join.members)
    writing.write_and_wait([other, again], join.members)
    assert other.events == events


def test_a_pattern_is_matched_by_the_server(join: Join, group_admin: AdminClient, new_name: str) -> None:
    for suffix in ("-one", "-two", "-other"):
        create_topic(group_admin, new_name + suffix, partitions=1)
    member = join("confluent", "member", new_name, f"^{new_name}-(one|two)$", **NEW)
    expected = {(f"{new_name}-one", 0), (f"{new_name}-two", 0)}
    wait_for(lambda: member.assigned == expected, join.members)


@pytest.mark.parametrize(
    ("old", "newer"), some([("confluent", "confluent"), ("java", "java"), ("ottla", "java")], ("ottla", "java"))
)
def test_a_group_goes_over_to_the_new_protocol_and_back(
    join: Join, group_broker: Broker, group_admin: AdminClient, new_name: str, old: str, newer: str
) -> None:
    """A member of the other kind enters while the group runs, and takes all of it when the first one leaves."""
    create_topic(group_admin, new_name, partitions=4)
    writing = Writing(group_broker.bootstrap, new_name, 4)
    partitions = partitions_of(new_name, 4)

    def expect(*counts: int) -> None:
        wait_for(
            lambda: shares(join.present, partitions) and [len(m.assigned) for m in join.present] == list(counts),
            join.members,
        )
        writing.write_and_wait(join.present, join.members, count=8)

    classic = join(old, "classic", new_name, new_name)
    expect(4)
    new = join(newer, "new", new_name, new_name, **NEW)
    expect(2, 2)
    join.leave(classic)
    expect(4)
    join(old, "classic-again", new_name, new_name)
    expect(2, 2)
    join.leave(new)
    expect(4)
