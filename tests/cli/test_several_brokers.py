"""What the verbs show of three brokers, and do to them: while one is paused, then two, while a partition moves."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.cli import faults
from ottla.client.sync import Producer
from ottla.testing import Cluster, cluster
from tests.cli.conftest import Command

TOPIC = "orders"


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    """The verbs are given all three addresses, and find those that answer."""
    properties = {
        "replica.lag.time.max.ms": "2000",
        "leader.replication.throttled.rate": "1",
        # A leader gets its place back when a test asks for that.
        "auto.leader.rebalance.enable": "false",
    }
    with cluster(3, properties=properties) as running:
        running.create_topic(TOPIC, configs={"min.insync.replicas": "2"})
        running.create_topic("alone", replication_factor=1)
        yield running


def test_what_is_wrong_and_how_it_came_to_be(three: Cluster, in_process: Command) -> None:
    def ottla(*words: str) -> tuple[int, str]:
        ran = in_process(*words, "-b", three.bootstrap)
        assert "ottla: " not in ran.err  # the supervisor of the brokers writes there as well
        return ran.code, ran.out

    def shown(*options: str) -> list[str]:
        code, out = ottla("topic", "describe", TOPIC, *options, "-o", "json")
        assert code == 0
        return [topic["topic"] for topic in json.loads(out)]

    three.until(lambda: ottla("cluster", "health")[0] == 0)
    assert shown("--under-replicated") == shown("--under-min-isr") == shown("--at-min-isr") == []
    code, out = ottla("why", TOPIC, "0")
    assert (code, "nothing is wrong with it" in out) == (0, True)
    leader = three.until_led(TOPIC)
    first, second = (broker for broker in three.addresses if broker != leader)

    three.pause(first)
    three.until(lambda: len(three.isrs(TOPIC)[0]) == 2)
    # Each broker hears of it at its own pace.
    three.until(lambda: shown("--under-replicated") == shown("--at-min-isr-partitions") == [TOPIC])
    assert shown("--under-min-isr") == shown("--unavailable") == []

    # All is asserted of one answer: the next one may be another broker's, which hears of it later.
    found: dict[str, Any] = {}

    def is_explained() -> bool:
        code, out = ottla("why", TOPIC, "0", "-o", "json")
        found.update(json.loads(out) if out else {})
        return code == faults.UNHEALTHY and f"replica {first} is not in sync: broker {first} is" in out

    three.until(is_explained)
    assert found["changes"][0]["time"] is None
    assert len(found["changes"][0]["isr"]) == 3
    assert len(found["changes"][-1]["isr"]) == 2

    three.pause(second)
    three.until(lambda: three.isrs(TOPIC)[0] == (leader,))
    assert shown("--under-min-isr-partitions") == [TOPIC]
    # A replica may have left before the session of its broker is over.
    three.until(lambda: "brokers down: 2" in ottla("cluster", "health")[1])
    code, out = ottla("cluster", "health")
    assert code == faults.UNHEALTHY
    assert f"under min isr partitions: 1 ({TOPIC}-0)" in out
    assert "brokers down: 2" in out
    assert "writes with acks=all are refused: 1 in sync" in ottla("why", TOPIC, "0")[1]

    for broker in (first, second):
        three.resume(broker)
    three.until(lambda: ottla("cluster", "health")[0] == 0)
    three.kill_leader(TOPIC)

    def has_moved() -> bool:
        out = ottla("why", TOPIC, "0", "-o", "json")[1]
        return bool(out) and len({one["leader"] for one in json.loads(out)["changes"]}) > 1

    three.until(has_moved)
    three.until(lambda: ottla("cluster", "health")[0] == 0)

    def is_well() -> bool:
        code, out = ottla("why", TOPIC, "0", "-o", "json")
        found.update(json.loads(out) if out else {})
        return code == 0

    three.until(is_well)
    assert found["wrong"] == []
    assert len({one["leader"] for one in found["changes"]}) > 1
    assert [one["leader_epoch"] for one in found["changes"]] == sorted(one["leader_epoch"] for one in found["changes"])
    assert {one["in_sync"] for one in found["replica_states"]} == {True}


def test_a_partition_that_nobody_leads_is_shown_and_explained(three: Cluster, in_process: Command) -> None:
    alone = three.until_led("alone")
    asked = ",".join(address for broker, address in three.addresses.items() if broker != alone)

    def ottla(*words: str) -> tuple[int, str]:
        ran = in_process(*words, "-b", asked)
        return ran.code, ran.out

    def shown(option: str) -> list[tuple[str, int]]:
        code, out = ottla("topic", "describe", option, "-o", "json")
        assert code == 0
        return [(topic["topic"], one["partition"]) for topic in json.loads(out) for one in topic["partitions"]]

    three.until(lambda: ottla("cluster", "health")[0] == 0)
    three.pause(alone)
    try:
        three.until(lambda: shown("--unavailable") == [("alone", 0)])
        # The other broker, which may be asked each time, may hear of it later.
        three.until(lambda: shown("--unavailable-partitions") == [("alone", 0)])
        said = ""

        def is_explained() -> bool:
            nonlocal said
            code, said = ottla("why", "alone", "0")
            return code == faults.UNHEALTHY

        three.until(is_explained)
        assert f"offline: all of its in-sync replicas are dead ([{alone}])" in said
        assert f"Next: start broker {alone}" in said

        def is_refused() -> bool:
            """It has no other replica. A broker that takes it for led finds nothing to do."""
            code, out = ottla("elect", "--unclean", "--topic", "alone:0", "--yes")
            return code == faults.FAILED and "Eligible topic partition leaders are not available" in out

        three.until(is_refused)
    finally:
        three.resume(alone)
    three.until(lambda: shown("--unavailable") == [])


def test_topics_get_more_copies(three: Cluster, in_process: Command, tmp_path: Path) -> None:
    three.create_topic("grows", partitions=3, replication_factor=1)
    path = tmp_path / "moves.json"

    def ottla(*words: str) -> str:
        ran = in_process(*words, "-b", three.bootstrap)
        assert ran.code == 0, ran.err
        return ran.out

    path.write_text(ottla("reassign", "plan", "grows", "--replication-factor", "3"))
    ottla("reassign", "run", "--file", str(path), "--yes")
    three.until(lambda: ottla("reassign", "status") == "no partition is on its way\n")
    three.until(lambda: [sorted(isr) for isr in three.isrs("grows")] == [[1, 2, 3]] * 3)

    def replicas() -> list[list[int]]:
        (described,) = json.loads(ottla("topic", "describe", "grows", "-o", "json"))
        return [sorted(one["replicas"]) for one in described["partitions"]]

    three.until(lambda: replicas() == [[1, 2, 3]] * 3)


@pytest.mark.parametrize(
    ("words", "code"),
    [((TOPIC, "7"), faults.NOT_FOUND), (("none", "0"), faults.NOT_FOUND), ((TOPIC, "x"), faults.USAGE)],
)
def test_what_is_not_there_is_one_line(three: Cluster, in_process: Command, words: tuple[str, ...], code: int) -> None:
    ran = in_process("why", *words, "-b", three.bootstrap)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (code, "", 1)


def test_a_move_that_is_under_way_is_shown_and_called_off(three: Cluster, in_process: Command, tmp_path: Path) -> None:
    """Throttled to a byte a second: a follower gets a megabyte at a time, and the next one eleven seconds later."""
    three.create_topic("moving", replication_factor=1, configs={"leader.replication.throttled.replicas": "*"})
    here = three.until_led("moving")
    there = here % 3 + 1
    with Producer(bootstrap_servers=three.bootstrap) as producer:
        for delivery in [producer.send("moving", os.urandom(1_000_000)) for _ in range(12)]:
            delivery.result(60)
    path = tmp_path / "moves.json"
    path.write_text(
        json.dumps({"version": 1, "partitions": [{"topic": "moving", "partition": 0, "replicas": [there]}]})
    )

    def ottla(*words: str) -> str:
        ran = in_process(*words, "-b", three.bootstrap)
        assert ran.code == 0, ran.err
        return ran.out

    ottla("reassign", "run", "--file", str(path), "--yes")
    (move,) = json.loads(ottla("reassign", "status", "-o", "json"))
    assert (move["topic"], sorted(move["replicas"])) == ("moving", sorted((here, there)))
    assert (move["adding"], move["removing"]) == ([there], [here])

    # A plan takes what is on its way for being there: it has one copy, not two.
    def moves_planned() -> object:
        return json.loads(ottla("reassign", "plan", "moving", "--broker-list", str(there)))["partitions"]

    three.until(lambda: moves_planned() == [])  # the broker that is asked may not have heard of it yet
    shown = ottla("reassign", "status", "--file", str(path)).splitlines()[1].split()
    assert shown == ["moving", "0", f"{there},{here}", str(there), str(here)]
    # Without --yes it is only shown what would be called off.
    ran = in_process("reassign", "cancel", "--all", "-b", three.bootstrap)
    assert (ran.code, "To be called off:" in ran.out) == (faults.NOT_CONFIRMED, True)
    assert json.loads(ottla("reassign", "status", "-o", "json")) == [move]
    ottla("reassign", "cancel", "--file", str(path), "--yes")
    assert ottla("reassign", "status") == "no partition is on its way\n"
    three.until(lambda: three.isrs("moving")[0] == (here,))
    assert ottla("reassign", "cancel", "--all") == "no partition is on its way\n"


def test_an_election_gives_a_leader_its_place_back(three: Cluster, in_process: Command) -> None:
    three.create_topic("led")
    first = three.until_led("led")
    three.kill_leader("led")
    three.until(lambda: three.leader("led") not in (-1, first))

    def ottla(*words: str) -> list[dict[str, object]]:
        ran = in_process(*words, "-b", three.bootstrap, "-o", "json")
        assert ran.code == 0, ran.err
        found: list[dict[str, object]] = json.loads(ran.out)
        return found

    three.until_in_sync("led")
    elected = {"topic": "led", "partition": 0, "result": "elected"}
    assert ottla("elect", "--preferred", "--topic", "led") == [elected]
    three.until(lambda: three.leader("led") == first)
    assert ottla("elect", "--preferred", "--topic", "led") == [{**elected, "result": "leads already"}]
