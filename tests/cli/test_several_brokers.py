"""What the verbs show of three brokers while one of them is paused, and then two."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from ottla.cli import faults
from ottla.testing import Cluster, cluster
from tests.cli.conftest import Command

TOPIC = "orders"


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    """The verbs are given all three addresses, and find those that answer."""
    with cluster(3, properties={"replica.lag.time.max.ms": "2000"}) as running:
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

    assert ottla("cluster", "health")[0] == 0
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

    def is_explained() -> bool:
        code, out = ottla("why", TOPIC, "0", "-o", "json")
        return code == faults.UNHEALTHY and f"replica {first} is not in sync: broker {first} is" in out

    three.until(is_explained)
    found = json.loads(ottla("why", TOPIC, "0", "-o", "json")[1])
    assert found["changes"][0]["time"] is None
    assert len(found["changes"][0]["isr"]) == 3
    assert len(found["changes"][-1]["isr"]) == 2

    three.pause(second)
    three.until(lambda: three.isrs(TOPIC)[0] == (leader,))
    assert shown("--under-min-isr-partitions") == [TOPIC]
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
    three.until(lambda: ottla("why", TOPIC, "0")[0] == 0)
    code, out = ottla("why", TOPIC, "0", "-o", "json")
    found = json.loads(out)
    assert (code, found["wrong"]) == (0, [])
    assert len({one["leader"] for one in found["changes"]}) > 1
    assert [one["leader_epoch"] for one in found["changes"]] == sorted(one["leader_epoch"] for one in found["changes"])
    assert {one["in_sync"] for one in found["replica_states"]} == {True}


@pytest.mark.parametrize(
    ("words", "code"),
    [((TOPIC, "7"), faults.NOT_FOUND), (("none", "0"), faults.NOT_FOUND), ((TOPIC, "x"), faults.USAGE)],
)
def test_what_is_not_there_is_one_line(three: Cluster, in_process: Command, words: tuple[str, ...], code: int) -> None:
    ran = in_process("why", *words, "-b", three.bootstrap)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (code, "", 1)
