"""Each thing that may be wrong with a partition has its sentence, and names what to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ottla.cli.why_faults import FollowerView, PartitionView, faults

LEVEL = FollowerView(end=100, fetched_ms_ago=10, caught_up_ms_ago=10)
WELL = PartitionView(
    topic="orders",
    partition=3,
    leader=1,
    leader_epoch=4,
    replicas=(1, 2, 3),
    isr=(1, 2, 3),
    needed=2,
    controller=2,
    live=(1, 2, 3),
    silent=(),
    leader_end=100,
    followers={2: LEVEL, 3: LEVEL},
)


def test_where_all_is_well_nothing_is_said() -> None:
    assert faults(WELL) == []


@pytest.mark.parametrize(
    ("view", "said"),
    [
        (
            replace(WELL, leader=None, isr=(2,), live=(1, 3)),
            [
                "offline: all of its in-sync replicas are dead ([2])",
                "Next: start broker 2. If they are lost for good, ",
                "`ottla elect --unclean --topic orders:3 --yes` has brokers 1, 3 lead",
            ],
        ),
        (replace(WELL, leader=None, isr=(1, 2, 3), live=()), ["no other replica lives. Next: start brokers 1, 2, 3"]),
        (
            replace(WELL, leader=None, isr=(2,), failed_directories={2: "/data"}),
            ["none of its in-sync replicas can serve it ([2])", "Next: mend /data on broker 2 and restart it"],
        ),
        (replace(WELL, leader=None, isr=(2, 3), live=(1, 3)), ["nobody leads, though broker 3 could"]),
        (replace(WELL, controller=None), ["there is no controller: nobody is elected"]),
        (replace(WELL, live=(2, 3)), ["broker 1 leads, and is not registered any more"]),
        (replace(WELL, silent=(1,)), ["broker 1 leads, and does not answer"]),
        (
            replace(WELL, isr=(1,), live=(1,)),
            [
                "writes with acks=all are refused: 1 in sync, and min.insync.replicas wants 2",
                "replica 2 is not in sync: broker 2 is down (not registered). Next: start it",
                "replica 3 is not in sync: broker 3 is down",
            ],
        ),
        (
            replace(WELL, isr=(1, 2), failed_directories={3: "/data"}),
            ["replica 3 is not in sync: log directory /data of broker 3 has failed"],
        ),
        (replace(WELL, isr=(1, 2), silent=(3,)), ["broker 3 is registered and does not answer"]),
        (
            replace(WELL, isr=(1, 2), followers={3: replace(LEVEL, fetched_ms_ago=None)}),
            ["it has never asked its leader, broker 1, for records"],
        ),
        (
            replace(WELL, isr=(1, 2), followers={3: replace(LEVEL, fetched_ms_ago=42_000)}),
            ["it has not for 42 s asked its leader"],
        ),
        (replace(WELL, isr=(1, 2), followers={3: replace(LEVEL, end=60)}), ["it fetches, and lacks 40 records"]),
        (replace(WELL, isr=(1, 2), moving=True, followers={3: replace(LEVEL, end=0)}), ["is being moved there"]),
        (replace(WELL, isr=(1, 2)), ["it has all records, and joins when the controller has written that"]),
        (replace(WELL, isr=(1, 2), followers={}), ["its leader, broker 1, does not say how far it is"]),
        (replace(WELL, others_say={3: (2, 3), 2: (1, 4)}), ["broker 3 has not heard of it yet: it names broker 2"]),
    ],
)
def test_what_is_wrong_is_said_with_the_next_step(view: PartitionView, said: list[str]) -> None:
    text = "\n".join(faults(view))
    for sentence in said:
        assert sentence in text
    assert len(faults(view)) <= 3
