"""Every metric that dashboards for Kafka ask for, beside traffic of which each number is known."""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.broker.test_broker_metrics import numbers
from tests.handlers.frames import batch, fetch, fetch_request, produce, produce_request, values
from tests.handlers.groups import commit, find
from tests.server.conftest import BrokerThread
from tests.server.test_connections import until

from ottla import __version__
from ottla.app import assemble
from ottla.config import Config
from ottla.controller.interface import TopicRef
from ottla.handlers.produce.handler import ProduceHandler
from ottla.model import ErrorCode, TopicPartition
from ottla.native import compiled_run
from ottla.ports.real import real_ports
from ottla.protocol.generated.fetch import FetchResponse
from ottla.protocol.generated.produce import ProduceResponse

#: The names by which dashboards and exporters for Kafka find what they show.
PROMISED = {
    "kafka_server_brokertopicmetrics_messagesin_total",
    "kafka_server_brokertopicmetrics_bytesin_total",
    "kafka_server_brokertopicmetrics_bytesout_total",
    "kafka_server_brokertopicmetrics_failedproducerequests_total",
    "kafka_server_brokertopicmetrics_failedfetchrequests_total",
    "kafka_server_brokertopicmetrics_totalproducerequests_total",
    "kafka_server_brokertopicmetrics_totalfetchrequests_total",
    "kafka_server_replicamanager_underreplicatedpartitions",
    "kafka_server_replicamanager_underminisrpartitioncount",
    "kafka_server_replicamanager_atminisrpartitioncount",
    "kafka_server_replicamanager_reassigningpartitions",
    "kafka_server_replicamanager_offlinereplicacount",
    "kafka_server_replicamanager_failedisrupdates_total",
    "kafka_server_replicamanager_produceridcount",
    "kafka_server_brokertopicmetrics_reassignmentbytesin_total",
    "kafka_server_brokertopicmetrics_reassignmentbytesout_total",
    "kafka_server_kafkaserver_brokerstate",
    "kafka_server_delayedoperationpurgatory_purgatorysize",
    "kafka_controller_kafkacontroller_replicasineligibletodeletecount",
    "kafka_controller_controllerchannelmanager_requestrateandqueuetimems",
    "kafka_server_sessionexpirelistener_sessionstate",
    "kafka_server_sessionexpirelistener_zookeeperdisconnects_total",
    "kafka_server_sessionexpirelistener_zookeeperexpires_total",
    "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms",
    "kafka_server_replicamanager_partitioncount",
    "kafka_server_replicamanager_leadercount",
    "kafka_server_replicamanager_isrshrinks_total",
    "kafka_server_replicamanager_isrexpands_total",
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "kafka_controller_controllerstats_leaderelectionrateandtimems",
    "kafka_controller_kafkacontroller_globaltopiccount",
    "kafka_controller_kafkacontroller_globalpartitioncount",
    "kafka_controller_kafkacontroller_preferredreplicaimbalancecount",
    "kafka_controller_controllereventmanager_eventqueuesize",
    "kafka_controller_controllereventmanager_eventqueuetimems",
    "kafka_controller_controllerchannelmanager_totalqueuesize",
    "kafka_controller_controllerchannelmanager_queuesize",
    "kafka_network_requestmetrics_requests_total",
    "kafka_network_requestmetrics_totaltimems",
    "kafka_network_requestmetrics_totaltimems_sum",
    "kafka_network_requestmetrics_totaltimems_count",
    "ottla_request_duration_seconds_bucket",
    "kafka_log_log_size",
    "kafka_log_logmanager_offlinelogdirectorycount",
    "kafka_consumergroup_lag",
    "kafka_consumergroup_current_offset",
    "kafka_consumergroup_current_offset_sum",
    "kafka_consumergroup_lag_sum",
    "kafka_consumergroup_members",
    "kafka_topic_partition_current_offset",
    "kafka_topic_partition_oldest_offset",
    "kafka_topic_partition_leader",
    "kafka_topic_partition_leader_is_preferred",
    "kafka_topic_partition_replicas",
    "kafka_topic_partition_in_sync_replica",
    "kafka_topic_partition_under_replicated_partition",
    "ottla_build_info",
    "kafka_brokers",
    "kafka_topic_partitions",
}
IN, OUT = "kafka_server_brokertopicmetrics_{}in_total", "kafka_server_brokertopicmetrics_bytesout_total"


class Ticking:
    """Each look at the time takes a millisecond, so that a round never takes none."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock
        self._ticks = 0

    def wall_ms(self) -> int:
        now: int = self._clock.wall_ms()
        return now

    def monotonic_ms(self) -> int:
        self._ticks += 1
        now: int = self._clock.monotonic_ms() + self._ticks
        return now


class Measured(BrokerThread):
    async def _start(self) -> None:
        self.ports = real_ports()
        ports = replace(self.ports, clock=Ticking(self.ports.clock))
        self.broker = assemble(Config.parse(self.properties), ports, "localhost")
        await self.broker.start()
        self.port = self.broker.endpoints[0].port

    def scrape(self) -> dict[str, float]:
        return numbers(self.look(lambda broker: broker.registry.render()))

    @contextmanager
    def risen(self, **by: float) -> Iterator[dict[str, float]]:
        """What the block adds to each series, which may be said beforehand by the end of its name."""
        before, found = self.scrape(), dict[str, float]()
        yield found
        after = self.scrape()
        found.update({name: number - before.get(name, 0) for name, number in after.items()})
        for end, number in by.items():
            (name,) = [name for name in found if name.endswith(f"_{end}")]
            assert found[name] == number, name


def measured(folder: Path) -> Measured:
    settings = {"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "1"}
    return Measured(str(folder), **settings)


def test_all_names_are_there_and_true(tmp_path: Path) -> None:
    with measured(tmp_path) as broker, broker.connect() as peer:
        broker.create_topic("orders", 2)
        raw = batch(b"a", b"b")
        for _ in range(3):
            assert produce(peer, raw, topic="orders").error_code == ErrorCode.NONE
        assert values(fetch(peer, 2, topic="orders")) == [b"a", b"b", b"a", b"b"]
        assert find(peer).error_code == ErrorCode.NONE
        assert commit(peer, "g", {("orders", 0): 4}) == {("orders", 0): ErrorCode.NONE}
        seen = broker.scrape()
        compiled = "no" if compiled_run() is None else "yes"
        size = broker.look(lambda running: running.services.replicas.leaders[TopicPartition("orders", 0)].log.size)
    names = {re.sub(r"\{.*", "", name) for name in seen}
    assert names >= PROMISED, PROMISED - names
    assert size == 3 * len(raw)
    for name, number in {
        'kafka_log_log_size{topic="orders",partition="0"}': size,
        'kafka_log_log_size{topic="orders",partition="1"}': 0,
        "kafka_log_logmanager_offlinelogdirectorycount": 0,
        'kafka_consumergroup_lag{consumergroup="g",topic="orders",partition="0"}': 2,
        'kafka_consumergroup_current_offset{consumergroup="g",topic="orders",partition="0"}': 4,
        'kafka_consumergroup_lag_sum{consumergroup="g",topic="orders"}': 2,
        'kafka_consumergroup_current_offset_sum{consumergroup="g",topic="orders"}': 4,
        'kafka_consumergroup_members{consumergroup="g"}': 0,
        'kafka_topic_partition_current_offset{topic="orders",partition="0"}': 6,
        'kafka_topic_partition_leader{topic="orders",partition="0"}': broker.broker.broker_id,
        'kafka_topic_partition_leader_is_preferred{topic="orders",partition="0"}': 1,
        'kafka_topic_partition_replicas{topic="orders",partition="0"}': 1,
        'kafka_topic_partition_in_sync_replica{topic="orders",partition="0"}': 1,
        'kafka_topic_partition_under_replicated_partition{topic="orders",partition="0"}': 0,
        f'ottla_build_info{{version="{__version__}",python="{platform.python_version()}",compiled="{compiled}"}}': 1,
        "kafka_brokers": 1,
        'kafka_topic_partitions{topic="orders"}': 2,
        'kafka_topic_partitions{topic="__consumer_offsets"}': 1,
        "kafka_server_replicamanager_partitioncount": 3,
        "kafka_server_replicamanager_leadercount": 3,
        "kafka_server_replicamanager_underreplicatedpartitions": 0,
        "kafka_server_replicamanager_underminisrpartitioncount": 0,
        "kafka_server_replicamanager_atminisrpartitioncount": 3,  # each has one replica, and needs it
        "kafka_server_replicamanager_reassigningpartitions": 0,
        "kafka_server_replicamanager_offlinereplicacount": 0,
        "kafka_server_replicamanager_failedisrupdates_total": 0,
        "kafka_server_sessionexpirelistener_zookeeperexpires_total": 0,
        "kafka_server_replicamanager_isrshrinks_total": 0,
        "kafka_server_replicamanager_isrexpands_total": 0,
        "kafka_controller_kafkacontroller_activecontrollercount": 1,
        "kafka_controller_kafkacontroller_globaltopiccount": 2,
        "kafka_controller_kafkacontroller_globalpartitioncount": 3,
        "kafka_controller_kafkacontroller_preferredreplicaimbalancecount": 0,
        "kafka_controller_kafkacontroller_topicstodeletecount": 0,
        "kafka_controller_controllereventmanager_eventqueuesize": 0,
        "kafka_controller_controllerchannelmanager_totalqueuesize": 0,
        f'kafka_controller_controllerchannelmanager_queuesize{{broker_id="{broker.broker.broker_id}"}}': 0,
        "kafka_controller_kafkacontroller_topicsineligibletodeletecount": 0,
        "kafka_controller_kafkacontroller_replicastodeletecount": 0,
        "kafka_controller_kafkacontroller_replicasineligibletodeletecount": 0,
        "kafka_server_kafkaserver_brokerstate": 3,
        'kafka_server_delayedoperationpurgatory_purgatorysize{delayedoperation="Produce"}': 0,
        'kafka_server_delayedoperationpurgatory_purgatorysize{delayedoperation="Fetch"}': 0,
        "kafka_controller_controllerstats_leaderelectionrateandtimems_count": 0,
        "kafka_controller_kafkacontroller_offlinepartitionscount": 0,
        "kafka_controller_controllerstats_uncleanleaderelections_total": 0,
        'kafka_network_requestmetrics_requests_total{request="Produce"}': 3,
        'kafka_network_requestmetrics_requests_total{request="Fetch"}': 1,
        'kafka_network_requestmetrics_requests_total{request="OffsetCommit"}': 1,
        'kafka_server_brokertopicmetrics_messagesin_total{topic="orders"}': 6,
        # And the group's offset.
        "kafka_server_brokertopicmetrics_messagesin_total": 7,
    }.items():
        assert seen[name] == number, name


def test_what_goes_in_and_out_is_counted_once(tmp_path: Path) -> None:
    raw = batch(b"a", b"b", b"c")
    with measured(tmp_path) as broker, broker.connect() as peer:
        broker.create_topic("orders", 2)
        broker.create_topic("others")
        # The first of its kind is read by its fields, the others are recognised.
        for version, count in ((8, 1), (8, 4), (12, 1), (12, 3)):
            with broker.risen(
                messagesin_total=3 * count,
                bytesin_total=len(raw) * count,
                bytesout_total=0,
                totalproducerequests_total=count,
                failedproducerequests_total=0,
            ) as found:
                for _ in range(count):
                    assert produce(peer, raw, version=version, topic="orders").error_code == ErrorCode.NONE
            assert found[IN.format("messages") + '{topic="orders"}'] == 3 * count
            assert found[IN.format("bytes") + '{topic="orders"}'] == len(raw) * count
        for count in (1, 5):
            with broker.risen(
                bytesout_total=9 * len(raw) * count,
                totalfetchrequests_total=count,
                failedfetchrequests_total=0,
                messagesin_total=0,
            ) as found:
                for _ in range(count):
                    assert len(fetch(peer, topic="orders").records) == 9 * len(raw)
            assert found[f'{OUT}{{topic="orders"}}'] == 9 * len(raw) * count
        # Each partition counts for itself.
        both = produce_request(raw, topic="orders", partition=1)
        both.topic_data.append(produce_request(raw, topic="others").topic_data[0])
        with broker.risen(totalproducerequests_total=2, messagesin_total=6) as found:
            peer.ask(both, 8, ProduceResponse)
        assert found[IN.format("messages") + '{topic="others"}'] == 3
        wide = fetch_request(topic="orders", partition=1)
        wide.topics.append(fetch_request(topic="others").topics[0])
        with broker.risen(totalfetchrequests_total=2, bytesout_total=2 * len(raw)) as found:
            peer.ask(wide, 11, FetchResponse)
        assert found[f'{OUT}{{topic="others"}}'] == len(raw)
        # A topic that is gone is gone from the series, and not from the sum.
        total = broker.scrape()[IN.format("messages")]
        services = broker.broker.services
        assert services is not None
        broker.run(services.controller.delete_topics([TopicRef("orders")]))
        after = broker.scrape()
        assert after[IN.format("messages")] == total
        assert not [name for name in after if '"orders"' in name]


def test_failures_are_counted_once(tmp_path: Path) -> None:
    with measured(tmp_path) as broker, broker.connect() as peer:
        broker.create_topic("orders")
        for refused in (
            {"partition": 9},
            {"topic": "nowhere"},
            {"records": batch(b"a") * 2},
            {"records": batch(b"a")[:-1] + b"x"},
        ):
            with broker.risen(failedproducerequests_total=1, totalproducerequests_total=1, messagesin_total=0):
                assert produce(peer, **{"records": batch(b"a"), "topic": "orders", **refused}).error_code != 0
        for asked in ({"partition": 9}, {"topic": "nowhere"}, {"offset": 99}):
            with broker.risen(failedfetchrequests_total=1, totalfetchrequests_total=1, bytesout_total=0):
                assert fetch(peer, **{"topic": "orders", **asked}).error_code != 0


def test_times_are_those_of_the_requests(tmp_path: Path) -> None:
    spent = 'kafka_network_requestmetrics_totaltimems_sum{{request="{}"}}'.format
    answered = 'kafka_network_requestmetrics_totaltimems_count{{request="{}"}}'.format
    with measured(tmp_path) as broker, broker.connect() as peer:
        broker.create_topic("orders")
        broker.create_topic("flushed", flush_messages="1")
        for topic in ("orders", "flushed"):
            with broker.risen() as found:
                begun = time.monotonic()
                for _ in range(20):
                    assert produce(peer, batch(b"a"), topic=topic).error_code == ErrorCode.NONE
                lasted_ms = (time.monotonic() - begun) * 1000
            # A look at the time takes a millisecond here, and no request is looked at a dozen times.
            assert 20 <= found[spent("Produce")] <= lasted_ms + 20 * 12
            assert found[spent("Fetch")] == 0
            assert (found[answered("Produce")], found[answered("Fetch")]) == (20, 0)
        with broker.risen() as found:
            begun = time.monotonic()
            for _ in range(20):
                assert fetch(peer, topic="orders").error_code == ErrorCode.NONE
            quick_ms = (time.monotonic() - begun) * 1000
        assert 20 <= found[spent("Fetch")] <= quick_ms + 20 * 12
        assert found[answered("Fetch")] == 20
        with broker.risen() as found:
            begun = time.monotonic()
            assert fetch(peer, 20, topic="orders", max_wait_ms=300).error_code == ErrorCode.NONE
            lasted_ms = (time.monotonic() - begun) * 1000
        # What else the broker does in that time looks at the clock as well, which ticks then.
        assert 295 <= found[spent("Fetch")] <= 1.1 * lasted_ms + 20
        assert found[spent("Produce")] == 0
        assert found['ottla_request_duration_seconds_bucket{request="Fetch",le="0.2"}'] == 0
        assert found['ottla_request_duration_seconds_bucket{request="Fetch",le="+Inf"}'] == 1
        seen = broker.scrape()
    # Of all fetches one in twenty-one has waited, in the bucket between 0.2 and 0.3 s; the others were quick.
    quick, slow = (
        seen[f'kafka_network_requestmetrics_totaltimems{{request="Fetch",quantile="{share}"}}']
        for share in ("0.50", "0.999")
    )
    assert quick < max(200, quick_ms)
    assert slow >= 200
    assert seen[answered("Fetch")] == seen['ottla_request_duration_seconds_count{request="Fetch"}'] == 21
    assert seen['kafka_network_requestmetrics_requests_total{request="Fetch"}'] == 21
    assert seen['ottla_request_duration_seconds_sum{request="Fetch"}'] == seen[spent("Fetch")] / 1000


def test_producers_are_counted_in_each_partition(tmp_path: Path) -> None:
    with measured(tmp_path) as broker, broker.connect() as peer:
        broker.create_topic("orders", 2)
        count = "kafka_server_replicamanager_produceridcount"
        assert broker.scrape()[count] == 0
        for producer, partition in ((7, 0), (7, 1), (8, 1)):
            raw = batch(b"a", producer_id=producer, producer_epoch=0, base_sequence=0)
            assert produce(peer, raw, topic="orders", partition=partition).error_code == ErrorCode.NONE
        assert broker.scrape()[count] == 3


def test_the_requests_of_a_round_are_counted_together(running: BrokerThread, monkeypatch: pytest.MonkeyPatch) -> None:
    """How long they took costs a round something, and none of its requests."""
    rounds: list[int] = []
    count = ProduceHandler._count

    def noted(handler: ProduceHandler, requests: int, more_partitions: int) -> None:
        rounds.append(requests)
        count(handler, requests, more_partitions)

    with running.connect() as peer:
        assert produce(peer, batch(b"before")).error_code == ErrorCode.NONE
        times = running.look(lambda broker: broker.services.metrics.times_of("Produce"))
        before = times.requests
        monkeypatch.setattr(ProduceHandler, "_count", noted)
        peer.send(b"".join(peer.frame(produce_request(batch(b"x")), 8) for _ in range(50)))
        for _ in range(50):
            peer.receive()
        until(lambda: times.requests == before + 50)  # what has waited for the disk is counted behind its answer
    assert sum(rounds) == 50
    assert len(rounds) <= 5, "they come in one piece, and so in one round or a few"
