"""A topic that is deleted while it is read, a group without a coordinator, a partition without a leader."""

from __future__ import annotations

import asyncio
import re
import signal
from typing import Any

import pytest

from ottla.cli import faults
from ottla.cli.faults import CommandFault
from ottla.cli.reachability import BrokerWatch
from ottla.client.errors import KafkaError, error_of
from ottla.client.settings import AdminSettings, parse_settings
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.metadata import Partition, Topic
from ottla.model import ErrorCode, TopicPartition
from ottla.ports.memory import memory_ports
from ottla.protocol.apis import ApiKey
from ottla.testing import InProcessBroker
from tests.cli.conftest import Command, Ran, run_process
from tests.cli.watched_command import first_line, watched
from tests.client.proxy import Action, Pass, Proxy, Request
from tests.searches import some

#: The short one is longer than it takes to delete the topic behind the first record.
_ENDS = {"-c": ["-c", "3"], "--timeout-ms": ["--timeout-ms", "60000"], "short": ["--timeout-ms", "5000"]}


@pytest.mark.parametrize("end", some(list(_ENDS), "-c", "short"))
@pytest.mark.parametrize("shared", [[], ["-g", "readers"]], ids=["alone", "in a group"])
def test_reading_of_a_topic_that_is_deleted_ends(
    ottla: Command, ottla_broker: InProcessBroker, topic: str, end: str, shared: list[str]
) -> None:
    assert ottla("produce", topic, stdin=b"one\n").code == 0
    with watched(ottla_broker.bootstrap, "consume", topic, "--from-beginning", *_ENDS[end], *shared) as command:
        assert first_line(command) == "one"
        assert ottla("topic", "delete", topic, "--yes").code == 0
        assert command.ends() == faults.NOT_FOUND, command.said
        assert command.said.endswith(f"ottla: {topic} was deleted while it was read: given up before the end\n")


def test_a_topic_that_is_deleted_is_named_where_reading_has_no_end(
    ottla: Command, ottla_broker: InProcessBroker, topic: str
) -> None:
    assert ottla("produce", topic, stdin=b"one\n").code == 0
    with watched(ottla_broker.bootstrap, "consume", topic, "--from-beginning") as command:
        assert first_line(command) == "one"
        assert ottla("topic", "delete", topic, "--yes").code == 0
        command.says(rf"^ottla: {topic} is not there any more \(was it deleted\?\); waiting for it\n")
        assert ottla("topic", "create", topic).code == 0
        command.says(rf"\nottla: {topic} was deleted, and another topic was made with its name: that one is read now\n")
        assert ottla("produce", topic, stdin=b"two\n").code == 0
        assert first_line(command) == "two"
        command.child.send_signal(signal.SIGINT)
        assert command.ends() == faults.INTERRUPTED


@pytest.mark.parametrize(
    "end", some([["--give-up-ms", "1500", "-e"], ["--timeout-ms", "1500"]], ["--timeout-ms", "1500"])
)
def test_a_group_that_nobody_coordinates_ends_reading(
    ottla_broker: InProcessBroker, topic: str, end: list[str]
) -> None:
    def nobody(answer: Any) -> None:
        for one in answer.coordinators:
            one.error_code, one.node_id = ErrorCode.COORDINATOR_NOT_AVAILABLE, -1

    async def asked() -> Ran:
        def act(request: Request) -> Action:
            return Pass(nobody if request.key == ApiKey.FIND_COORDINATOR else None)

        async with Proxy(ottla_broker.bootstrap, act) as proxy:
            words = ("consume", topic, "-g", "readers", *end, "-b", proxy.bootstrap)
            return await asyncio.to_thread(run_process, words, b"", {})

    ran = asyncio.run(asked())
    assert ran.code == faults.UNREACHABLE, ran.err
    assert re.fullmatch(
        r"ottla: readers has no coordinator \(.+\); trying again\n"
        r"ottla: readers has had no coordinator for \d+ s \(.+\): given up before the end\n",
        ran.err,
    )


class _Heard:
    """A watch over a cluster of which only is known what the test says."""

    def __init__(self, give_up_ms: int = 30_000) -> None:
        self.world = memory_ports(1)
        settings = parse_settings(AdminSettings, None, {"bootstrap_servers": "nowhere:1"})
        self.cluster = Cluster(settings, self.world)
        self.watch = BrokerWatch(self.cluster, give_up_ms)
        self.said: list[str] = []
        self.watch.say = self.said.append

    def topics(self, topics: dict[str, list[int]], gone: str = "", topic_id: bytes = bytes(15) + b"1") -> None:
        """Each topic with the leaders of its partitions."""
        known = {
            name: Topic(
                name,
                topic_id,
                tuple(Partition(n, one, 0, (1,), (1,), (), ErrorCode.NONE) for n, one in enumerate(leaders)),
                internal=False,
            )
            for name, leaders in topics.items()
        }
        errors = {gone: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION} if gone else {}
        nodes = dict.fromkeys([1])
        self.cluster.metadata = self.cluster.metadata._replace(topics=known, errors=errors, nodes=nodes)  # type: ignore[arg-type]
        for call in self.cluster.on_change:
            call()


def test_a_leader_that_other_partitions_lack_keeps_nobody_waiting() -> None:
    heard = _Heard()

    async def work() -> None:
        heard.watch.begin()
        heard.watch.concerns = lambda tp: tp == TopicPartition("orders", 0)
        heard.topics({"orders": [1, -1]})
        assert not heard.watch.lacks_something()
        heard.topics({"orders": [-1, -1]})
        assert heard.watch.lacks_something()
        heard.watch.concerns = lambda _: False  # it has been read to its end
        assert not heard.watch.lacks_something()

    heard.world.loop.run_until_complete(work())
    assert heard.said == [
        "ottla: orders-0 has no leader (`ottla cluster health` says why); trying again",
    ]


def test_a_topic_without_leaders_that_is_deleted_has_none_again() -> None:
    heard = _Heard()

    async def work() -> None:
        heard.watch.begin()
        heard.watch.reads(["orders"])
        heard.topics({"orders": [-1]})
        heard.topics({}, gone="orders")
        await asyncio.sleep(1)
        heard.topics({}, gone="orders")
        await heard.cluster.close()

    heard.world.loop.run_until_complete(work())
    assert heard.said == [
        "ottla: orders-0 has no leader (`ottla cluster health` says why); trying again",
        "ottla: orders is not there any more (was it deleted?); waiting for it",
    ]


def test_a_topic_that_a_broker_does_not_know_for_a_moment_is_not_said() -> None:
    heard = _Heard()

    async def work() -> None:
        heard.watch.begin()
        heard.watch.reads(["orders"])
        heard.topics({"orders": [1]})
        heard.topics({}, gone="orders")
        await asyncio.sleep(0.5)
        heard.watch.check()
        heard.topics({"orders": [1]})
        assert not heard.watch.lacks_something()
        await heard.cluster.close()

    heard.world.loop.run_until_complete(work())
    assert heard.said == []


def test_a_topic_that_is_another_one_now_ends_what_has_an_end() -> None:
    heard = _Heard()

    async def work() -> None:
        heard.watch.begin()
        heard.watch.reads(["orders"])
        heard.topics({"orders": [1]})
        heard.topics({"orders": [1]}, topic_id=bytes(15) + b"2")
        with pytest.raises(CommandFault, match=r"^orders was deleted while it was read: given up") as fault:
            heard.watch.check_topics()
        assert fault.value.code == faults.NOT_FOUND

    heard.world.loop.run_until_complete(work())
    assert heard.said == ["ottla: orders was deleted, and another topic was made with its name: that one is read now"]


def test_a_group_without_a_coordinator_is_said_and_given_up() -> None:
    heard = _Heard()
    nobody: KafkaError = error_of(ErrorCode.COORDINATOR_NOT_AVAILABLE, about="billing")

    async def work() -> None:
        heard.watch.begin()
        heard.cluster.on_coordinator("billing", nobody)
        assert not heard.watch.lacks_something()  # as in every new cluster
        await asyncio.sleep(2)
        heard.cluster.on_coordinator("billing", nobody)
        assert heard.watch.lacks_something()
        heard.cluster.on_coordinator("billing", None)
        assert not heard.watch.lacks_something()
        heard.cluster.on_coordinator("billing", nobody)
        await asyncio.sleep(31)
        heard.cluster.on_coordinator("billing", nobody)
        with pytest.raises(CommandFault, match=r"^billing has had no coordinator for 31 s \(.+\): given up") as fault:
            heard.watch.check()
        assert fault.value.code == faults.UNREACHABLE

    heard.world.loop.run_until_complete(work())
    assert [re.sub(r"\(.*\)", "(why)", line) for line in heard.said] == [
        "ottla: billing has no coordinator (why); trying again",
        "ottla: billing has a coordinator again",
        "ottla: billing has no coordinator (why); trying again",
    ]
