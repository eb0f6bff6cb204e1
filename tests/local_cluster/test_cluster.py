"""A cluster of real processes, as `ottla up -n 3` starts it: what it survives, and how it ends."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tools.ottla_server import ottla_broker, ottla_tree
from tools.zookeeper_server import four_letters

import ottla.testing
from ottla.client.admin.results import ConfigResource, ElectionKind, NewTopic
from ottla.client.errors import BadArgument, InvalidReplicationFactor, KafkaError
from ottla.client.sync import Admin, Consumer, Producer
from ottla.local_cluster.free_ports import free_port
from ottla.local_cluster.member import STOP_S_MAX
from ottla.model import TopicPartition
from ottla.testing.processes import TREE, Cluster
from tests.searches import slow

TOPIC = "orders"
SECONDS_MAX = 120.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # No leader goes back to the preferred replica in the middle of a test.
    properties = {"replica.lag.time.max.ms": "3000", "auto.leader.rebalance.enable": "false"}
    with ottla.testing.cluster(3, properties=properties) as running:
        running.create_topic(TOPIC, partitions=3)
        yield running


@pytest.fixture(autouse=True)
def whole_again(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "cluster" in request.fixturenames:
        running: Cluster = request.getfixturevalue("cluster")
        running.heal()
        for broker in running.addresses:
            running.resume(broker)
        running.until(lambda: all(map(running.is_serving, running.addresses)))
        running.until_in_sync(TOPIC)


def produce(cluster: Cluster, values: list[bytes], *, idempotent: bool = True, partition: int | None = None) -> None:
    """Returns when all are acknowledged by all that are in sync."""
    with Producer(
        bootstrap_servers=cluster.bootstrap, acks="all", delivery_timeout_ms=60_000, enable_idempotence=idempotent
    ) as producer:
        for delivery in [producer.send(TOPIC, value, partition=partition) for value in values]:
            delivery.result(SECONDS_MAX)


def read(cluster: Cluster) -> list[bytes]:
    found: list[bytes] = []
    with Consumer(bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([(TOPIC, number) for number in range(3)])
        ends = consumer.end_offsets([(TOPIC, number) for number in range(3)])
        count = sum(ends.values())
        while len(found) < count:
            found += [record.value for record in consumer.poll(timeout_ms=1_000)]
    return found


def batch(name: str, count: int = 200) -> list[bytes]:
    return [b"%s-%d" % (name.encode(), number) for number in range(count)]


def check(cluster: Cluster, expected: list[bytes]) -> None:
    """Each of these is there once; what earlier tests have written is there too."""
    found = read(cluster)
    assert len(found) == len({*found})
    assert {*expected} <= {*found}


@pytest.mark.parametrize("given", [9, "1", None])
def test_a_broker_that_the_cluster_has_not(cluster: Cluster, given: Any) -> None:
    calls = (cluster.kill, cluster.pause, cluster.resume, cluster.restart, cluster.pid, cluster.is_serving)
    for call in (*calls, lambda broker: cluster.cut(1, broker if broker != "1" else "2x")):
        with pytest.raises(BadArgument, match=r"there is no broker .*: the cluster has 1, 2, 3"):
            call(given)


def test_what_is_produced_is_read(cluster: Cluster) -> None:
    produce(cluster, batch("plain"))
    check(cluster, batch("plain"))


@pytest.mark.parametrize("times", [3])
def test_leaders_are_killed_and_nothing_is_lost(cluster: Cluster, times: int) -> None:
    for number in range(times):
        before, after = batch(f"before-{number}"), batch(f"after-{number}")
        produce(cluster, before)
        killed = cluster.kill_leader(TOPIC, number % 3)
        produce(cluster, after)
        check(cluster, before + after)
        cluster.until(lambda killed=killed: cluster.is_serving(killed))
        cluster.until_in_sync(TOPIC)


def test_a_paused_leader_is_replaced_and_comes_back_as_a_follower(cluster: Cluster) -> None:
    paused = cluster.until_led(TOPIC, 0)
    cluster.pause(paused)
    others = [broker for broker in cluster.addresses if broker != paused]
    cluster.until(lambda: cluster.leader(TOPIC, 0, asked=others) not in (-1, paused))
    produce(cluster, batch("paused"))
    cluster.resume(paused)
    cluster.until_in_sync(TOPIC)
    check(cluster, batch("paused"))


def is_created(cluster: Cluster, topic: str) -> bool:
    """Not while one is away for a moment: the broker of a session that was not resumed in time."""
    try:
        cluster.create_topic(topic, partitions=1)
    except InvalidReplicationFactor:
        return False
    return True


def leaders_of(cluster: Cluster) -> list[int]:
    """As all brokers say: one of them may not have heard of an election yet."""
    found: list[list[int]] = []

    def is_agreed() -> bool:
        asked = [[broker] for broker in cluster.addresses]
        found[:] = [[cluster.leader(TOPIC, number, asked=one) for number in range(3)] for one in asked]
        return -1 not in found[0] and all(leaders == found[0] for leaders in found)

    cluster.until(is_agreed)
    return found[0]


def leads_on(cluster: Cluster, name: str) -> bool:
    """Kills the tree; whether each leader led through that."""
    cluster.until_in_sync(TOPIC)
    leaders = leaders_of(cluster)
    cluster.kill_tree()
    produce(cluster, batch(name))
    led_on = leaders_of(cluster) == leaders
    cluster.until(lambda: is_created(cluster, f"after-{name}"))
    check(cluster, batch(name))
    return led_on


def test_without_the_tree_leaders_lead_and_it_comes_back(cluster: Cluster) -> None:
    # A busy machine may keep a broker from resuming its session in time, and others lead then; but not each time.
    assert any(leads_on(cluster, f"treeless-{number}") for number in range(3))


def leads_beside_a_tree_that_stands_still(cluster: Cluster, name: str) -> bool:
    """Whether each leader led through that."""
    assert cluster._cluster is not None
    tree = cluster._cluster.tree
    assert tree is not None
    cluster.until_in_sync(TOPIC)
    # Each broker has its numbers for idempotent producers from the tree.
    produce(cluster, batch(f"before-{name}"))
    leaders = leaders_of(cluster)
    cluster._signal(tree, signal.SIGSTOP)
    try:
        produce(cluster, batch(name), idempotent=False)
        led_on = leaders_of(cluster) == leaders
        assert "State:\tT" in Path(f"/proc/{tree.pid}/status").read_text()
    finally:
        cluster._signal(tree, signal.SIGCONT)
    cluster.until(lambda: is_created(cluster, f"after-{name}"))
    check(cluster, batch(name))
    return led_on


def test_while_the_tree_stands_still_leaders_lead(cluster: Cluster) -> None:
    """A tree that was killed has its spare in its place at once; of one that stands still nobody takes the place."""
    # On a busy machine a session may have ended just before, and others lead then; but not each time.
    assert any(leads_beside_a_tree_that_stands_still(cluster, f"still-{number}") for number in range(3))


def leaves_when_it_is_cut_off(cluster: Cluster, name: str) -> bool:
    """Whether a follower left, and joined again; not where another broker came to lead, which it reaches."""
    # A leader that does not reach the controller can ask for no smaller in-sync set: nothing is acknowledged meanwhile.
    leader, controller = leaders_of(cluster)[0], cluster.controller()
    follower = next(broker for broker in cluster.addresses if broker not in (leader, controller))

    def has_left() -> bool:
        # As the leader knows: where it is the controller too, the one that is cut off hears nothing of this.
        return follower not in cluster.isrs(TOPIC, asked=[leader])[0]

    cluster.cut(leader, follower)
    # Who has everything stays in sync, however long it is silent: what it lacks is acknowledged when it has left.
    produce(cluster, batch(name), partition=0)
    cluster.until(lambda: has_left() or cluster.leader(TOPIC, asked=[leader]) not in (-1, leader))
    left = has_left()
    cluster.heal()
    cluster.until_in_sync(TOPIC)
    check(cluster, batch(name))
    return left


def test_a_follower_that_is_cut_off_leaves_and_joins_again(cluster: Cluster) -> None:
    # A busy machine may end the leader's session meanwhile; but not each time.
    assert any(leaves_when_it_is_cut_off(cluster, f"cut-{number}") for number in range(3))


def test_what_is_asked_of_a_new_topic_waits_until_the_broker_has_heard_of_it(cluster: Cluster) -> None:
    controller = cluster.controller()
    late = next(broker for broker in cluster.addresses if broker != controller)
    cluster.cut(late, controller)
    with Admin(bootstrap_servers=cluster.addresses[controller]) as admin:
        admin.create_topics([NewTopic("heard-of-later", assignments={0: (controller,)})])
    with ThreadPoolExecutor(1) as beside:
        asked = beside.submit(cluster.leader, "heard-of-later", asked=[late])
        wait([asked], timeout=0.3)
        cluster.heal()
        assert asked.result() in cluster.addresses


def test_a_broker_that_is_restarted_hands_over_first(cluster: Cluster) -> None:
    leader = leaders_of(cluster)[2]
    begins = len(cluster.log)
    cluster.restart(leader)
    # It has not only ended, and lost what it led as one that died.
    said = [line for line in cluster.log[begins:] if line.startswith(f"broker {leader}: ")]
    (handed_over,) = (at for at, line in enumerate(said) if "others lead this broker's partitions" in line)
    (stopped,) = (at for at, line in enumerate(said) if "broker stopped" in line)
    assert handed_over < stopped
    produce(cluster, batch("restarted"))
    cluster.until_in_sync(TOPIC)
    check(cluster, batch("restarted"))


def test_a_broker_that_is_paused_at_the_end_ends_with_the_others() -> None:
    """Cleanly: one that does not is killed after its time."""
    with ottla.testing.cluster(2) as cluster:
        cluster.pause(2)
        began = time.monotonic()
    assert time.monotonic() - began < STOP_S_MAX


def test_a_port_that_was_taken_meanwhile_is_chosen_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        ports = [holder.getsockname()[1]]
        monkeypatch.setattr("ottla.testing.processes.free_port", lambda host: ports.pop() if ports else free_port(host))
        with ottla.testing.cluster(1) as cluster:
            assert not ports
            cluster.create_topic(TOPIC)
            assert cluster.leader(TOPIC) == 1


def test_it_goes_on_after_a_stop_and_the_death_of_all_over_the_same_folders(tmp_path: Path) -> None:
    with ottla.testing.cluster(3, data=tmp_path) as first:
        first.create_topic(TOPIC, partitions=3)
        produce(first, batch("kept"))
    with ottla.testing.cluster(3, data=tmp_path) as second:
        check(second, batch("kept"))
        second.kill_all()
        second.start()
        check(second, batch("kept"))


def test_what_one_broker_had_is_there_in_a_cluster(tmp_path: Path) -> None:
    with ottla.testing.broker(data=tmp_path) as one:
        one.create_topic(TOPIC, partitions=3, configs={"retention.ms": "86400001"})
        before = described(one.bootstrap)
        with Producer(bootstrap_servers=one.bootstrap) as producer:
            for delivery in [producer.send(TOPIC, value) for value in batch("one")]:
                delivery.result(SECONDS_MAX)
    with ottla.testing.cluster(3, data=tmp_path) as cluster:
        check(cluster, batch("one"))
        cluster.until_heard(TOPIC)
        assert described(cluster.bootstrap) == before


def described(bootstrap: str) -> tuple[str | None, bytes, str | None]:
    """The cluster's id, the topic's, and the topic's one setting."""
    with Admin(bootstrap_servers=bootstrap) as admin:
        topic = ConfigResource.topic(TOPIC)
        retention = admin.describe_configs([topic])[topic]["retention.ms"].value
        return admin.describe_cluster().cluster_id, bytes(admin.describe_topic(TOPIC).topic_id), retention


def test_all_end_when_their_supervisor_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ottla", "up", "-n", "3", "--port", "0", "--data", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as supervisor:
        try:
            assert supervisor.stdout is not None
            assert supervisor.stdout.readline().startswith("Ottla is listening on 127.0.0.1:")
            # The tree's spare comes a while after the tree: sooner or later than the others are ready.
            ends = time.monotonic() + SECONDS_MAX
            while len(members := children(supervisor.pid)) < 5:
                assert time.monotonic() < ends, members
                time.sleep(0.05)
        finally:
            supervisor.kill()
    ends = time.monotonic() + SECONDS_MAX
    while time.monotonic() < ends and any(map(is_there, members)):
        time.sleep(0.05)
    assert not any(map(is_there, members))


@pytest.mark.parametrize("number", [signal.SIGINT, slow(signal.SIGHUP)])
def test_a_signal_ends_all_in_order(tmp_path: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "ottla", "up", "-n", "3", "--port", "0", "--data", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as supervisor:
        assert supervisor.stdout is not None
        supervisor.stdout.readline()
        members = children(supervisor.pid)
        supervisor.send_signal(number)
        _, said = supervisor.communicate(timeout=SECONDS_MAX)
    assert supervisor.returncode == 0
    assert not any(map(is_there, members))
    assert said.count("broker stopped") == 3
    # A broker takes leave of the tree: that goes last.
    assert said.rindex("broker stopped") < said.index("the tree is served no more")


def test_brokers_over_a_tree_that_is_there_already(tmp_path: Path) -> None:
    """It is not theirs: they are its clients, and it outlives them."""
    tree = ottla_tree(tmp_path / "tree")
    tree.start()
    try:
        command = [sys.executable, "-m", "ottla", "up", "-n", "3", "--port", "0", "--data", str(tmp_path / "brokers")]
        for first in (True, False):
            with subprocess.Popen(
                [*command, "--zookeeper", tree.bootstrap], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            ) as supervisor:
                try:
                    assert supervisor.stdout is not None
                    address = supervisor.stdout.readline().split()[-1]
                    with Admin(bootstrap_servers=address) as admin:
                        # Each hears of the others, and of their topics, at its own pace.
                        until(lambda: len(admin.describe_cluster().brokers) == 3)
                        if first:
                            admin.create_topics([NewTopic(TOPIC, 3, 3)])
                        until(lambda: TOPIC in admin.list_topics())
                    assert len(children(supervisor.pid)) == 3
                finally:
                    supervisor.terminate()
                    _, said = supervisor.communicate(timeout=SECONDS_MAX)
            assert supervisor.returncode == 0, said
            assert said.count("broker stopped") == 3
        assert four_letters(tree.port, "ruok") == "imok"
    finally:
        tree.stop()


def test_another_broker_joins(tmp_path: Path) -> None:
    """It finds the tree by what a broker of the cluster was started with; partitions move to it, and away again."""
    with (
        Cluster(3, data=tmp_path / "cluster", links=False) as cluster,
        Admin(bootstrap_servers=cluster.bootstrap) as admin,
    ):
        first = (tmp_path / "cluster" / "data.cluster" / "broker-1.properties").read_text()
        (tree,) = [line for line in first.splitlines() if line.startswith("zookeeper.connect=")]
        properties = {"broker.id": "4", "zookeeper.connect": tree.partition("=")[2]}
        fourth = ottla_broker(tmp_path / "fourth", properties=properties)
        try:
            fourth.start()
            until(lambda: sorted(one.id for one in admin.describe_cluster().brokers) == [1, 2, 3, 4])
            cluster.create_topic(TOPIC, partitions=3)
            produce(cluster, batch("before"))
            place = TopicPartition(TOPIC, 0)
            admin.alter_partition_reassignments({place: [4, 1, 2]})
            until(lambda: replicas_of(admin) == ([4, 1, 2], {1, 2, 4}))

            def is_led_by_the_fourth() -> bool:
                with suppress(KafkaError):  # it leads already, or its session was over for a moment
                    admin.elect_leaders(ElectionKind.PREFERRED, [place])
                return admin.describe_topic(TOPIC).partitions[0].leader == 4

            until(is_led_by_the_fourth)
            produce(cluster, batch("led by the fourth"))
            admin.alter_partition_reassignments({place: [1, 2, 3]})
            until(lambda: replicas_of(admin) == ([1, 2, 3], {1, 2, 3}))
            fourth.stop()
        finally:
            fourth.kill()
        until(lambda: sorted(one.id for one in admin.describe_cluster().brokers) == [1, 2, 3])
        check(cluster, [*batch("before"), *batch("led by the fourth")])


def replicas_of(admin: Admin) -> tuple[list[int], set[int]]:
    """Of the first partition: those that are assigned, in order, and those in sync."""
    one = admin.describe_topic(TOPIC).partitions[0]
    return list(one.replicas), set(one.isr)


def until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.05)


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found]


def is_there(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_tree_is_an_end_of_links() -> None:
    assert TREE == "tree"
