"""Every version of every API that the client uses, down to the oldest, by a broker that claims to know no newer."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.client.proxy import Action, Pass, Proxy, Request
from tests.conftest import WatchServer
from tools.ottla_server import ottla_up

from ottla.client.admin.admin import Admin
from ottla.client.admin.results import EARLIEST, LATEST, ConfigChange, ConfigResource
from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import UnsupportedVersion
from ottla.client.producing.producer import Producer
from ottla.model import TopicPartition
from ottla.protocol.apis import APIS, ApiKey
from ottla.protocol.generated.api_versions import ApiVersionsResponse

#: Versions that a broker may list and no broker has alone: Metadata 0 names no controller, Produce 0 to 2 are listed
#: for old clients' sake and not served.
OLDEST = {ApiKey.METADATA: 1, ApiKey.PRODUCE: 3}


def older(bootstrap: str, steps: int, *missing: ApiKey) -> Proxy:
    """A proxy behind which no API has more than `steps` versions above its oldest."""

    def cap(answer: ApiVersionsResponse) -> None:
        answer.api_keys = [one for one in answer.api_keys if one.api_key not in missing]
        for one in answer.api_keys:
            if one.api_key in APIS:
                oldest = OLDEST.get(one.api_key, APIS[one.api_key].min)
                one.max_version = min(one.max_version, oldest + steps)

    def rule(request: Request) -> Action:
        return Pass(cap) if request.key == ApiKey.API_VERSIONS else Pass()

    return Proxy(bootstrap, rule)


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14])
async def test_a_records_way_and_a_topics_life(bootstrap: str, new_name: str, steps: int) -> None:
    tp = TopicPartition(new_name, 0)
    quick = {"retry_backoff_ms": 5}
    async with older(bootstrap, steps) as proxy, Admin(bootstrap_servers=proxy.bootstrap, **quick) as admin:
        await admin.create_topic(new_name, 1, 1, {"retention.ms": "-1"})
        async with Producer(bootstrap_servers=proxy.bootstrap, batch_size=100, **quick) as producer:
            sent = [await producer.send(new_name, b"%d" % n, timestamp=1000 + n) for n in range(20)]
            assert [(await delivery).offset for delivery in sent] == list(range(20))
        async with Consumer(
            bootstrap_servers=proxy.bootstrap, auto_offset_reset="earliest", max_partition_fetch_bytes=300, **quick
        ) as consumer:
            consumer.assign([tp])
            values: list[bytes] = []
            while len(values) < 20:
                values += [record.value for record in await consumer.poll()]
            assert values == [b"%d" % n for n in range(20)]
            found = (await consumer.offsets_for_times({tp: 1007}))[tp]
            assert found is not None
            assert found.offset == 7
        resource = ConfigResource.topic(new_name)
        if steps:
            await admin.incremental_alter_configs({resource: [ConfigChange("segment.ms", "70000")]})
        else:
            await admin.alter_configs({resource: {"segment.ms": "70000", "retention.ms": "-1"}})
        described = (await admin.describe_configs([resource], names=["segment.ms"], documentation=True))[resource]
        assert described["segment.ms"].value == "70000"
        assert await admin.delete_records({tp: 3}) == {tp: 3}
        assert (await admin.list_offsets({tp: EARLIEST}))[tp].offset == 3
        assert (await admin.list_offsets({tp: LATEST}))[tp].offset == 20
        assert len((await admin.describe_cluster()).brokers) == 1
        (directories,) = (await admin.describe_log_dirs()).values()
        assert any(tp in one.replicas for one in directories.values())
        await admin.create_partitions({new_name: 2})
        await admin.delete_topic(new_name)


async def test_a_broker_too_old_for_what_is_asked(bootstrap: str, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    async with older(bootstrap, 0, ApiKey.INIT_PRODUCER_ID) as proxy:
        async with Admin(bootstrap_servers=proxy.bootstrap) as admin:
            with pytest.raises(UnsupportedVersion, match="serves ListOffsets 1 to 1; needed is one of 7 to 11"):
                await admin.list_offsets({tp: -3})
        async with Producer(bootstrap_servers=proxy.bootstrap) as producer:
            with pytest.raises(UnsupportedVersion, match="serves InitProducerId not at all"):
                await producer.send_and_wait(topic, b"x")
            with pytest.raises(UnsupportedVersion):
                await producer.send(topic, b"x")
        async with Producer(bootstrap_servers=proxy.bootstrap, enable_idempotence=False) as producer:
            assert (await producer.send_and_wait(topic, b"x")).offset == 0
        async with Producer(
            bootstrap_servers=proxy.bootstrap, enable_idempotence=False, compression_type="zstd"
        ) as producer:
            with pytest.raises(UnsupportedVersion, match="needed is one of 7 to 13"):
                await producer.send_and_wait(topic, b"x")


async def test_a_broker_that_is_killed_and_comes_back(tmp_path: Path, watch_server: WatchServer, new_name: str) -> None:
    server = ottla_up(tmp_path / "data")
    with watch_server(server):
        server.start()
        settings = {"bootstrap_servers": server.bootstrap, "reconnect_backoff_max_ms": 20, "retry_backoff_max_ms": 20}
        async with (
            Producer(batch_size=200, linger_ms=1, **settings) as producer,
            Consumer(auto_offset_reset="earliest", **settings) as consumer,
        ):
            consumer.assign([TopicPartition(new_name, 0)])
            deliveries = [await producer.send(new_name, b"%d" % n) for n in range(300)]
            await deliveries[0]
            server.kill()
            deliveries += [await producer.send(new_name, b"%d" % n) for n in range(300, 400)]
            server.start()
            assert [(await delivery).offset for delivery in deliveries if (await delivery).offset >= 0]
            records = []
            while len(records) < 400:
                records += await consumer.poll()
        assert [(record.offset, record.value) for record in records] == [(n, b"%d" % n) for n in range(400)]
        server.stop()
