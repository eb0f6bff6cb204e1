"""Metadata: what may change in it and what may not; and how a client comes to know it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests.client.proxy import Action, Cut, Pass, Proxy, Request, read_frame
from tests.client.scripted_peer import Peer, ScriptedServer

from ottla.client.errors import ClientClosed, ClientFault, ConnectionLost, NoBrokerReached, UnknownTopicOrPartition
from ottla.client.settings import AdminSettings, parse_settings
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.connections import CONTROL, DATA
from ottla.client.wire.metadata import EMPTY, Metadata, Node, merged, with_leader
from ottla.client.wire.world import real_world
from ottla.model import ZERO_TOPIC_ID, ErrorCode
from ottla.ports.memory.entropy import SeededEntropy
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from ottla.protocol.header import decode_request_header

ID = bytes(range(16))
OTHER_ID = bytes(range(1, 17))


def answer(*leaders: tuple[int, int, int], topic_id: bytes = ID, error: int = 0) -> MetadataResponse:
    """Topic t with partitions (number, leader, epoch), on brokers 1 and 2."""
    return MetadataResponse(
        cluster_id="c",
        controller_id=1,
        brokers=[MetadataResponseBroker(node_id=n, host=f"host{n}", port=9000 + n) for n in (1, 2)],
        topics=[
            MetadataResponseTopic(
                name="t",
                topic_id=topic_id,
                error_code=error,
                partitions=[
                    MetadataResponsePartition(
                        partition_index=number,
                        leader_id=leader,
                        leader_epoch=epoch,
                        error_code=ErrorCode.NONE if leader >= 0 else ErrorCode.LEADER_NOT_AVAILABLE,
                    )
                    for number, leader, epoch in leaders
                ],
            )
        ],
    )


def known(*answers: MetadataResponse) -> Metadata:
    metadata = EMPTY
    for one in answers:
        metadata = merged(metadata, one, ["t"])
    return metadata


def leaders(metadata: Metadata) -> list[int]:
    return [one.leader for one in metadata.topics["t"].partitions]


def test_a_leaderless_partition_stays() -> None:
    """The seeds' question: four partitions, one loses its leader; a key must not move to another of three."""
    before = known(answer((0, 1, 5), (1, 2, 5), (2, 1, 5), (3, 2, 5)))
    for after in (
        merged(before, answer((0, 1, 5), (1, -1, 6), (2, 1, 5), (3, 2, 5)), ["t"]),
        merged(before, answer((3, 2, 5), (0, 1, 5), (2, 1, 5)), ["t"]),  # one that is not even mentioned
    ):
        assert leaders(after) == [1, -1, 1, 2]
        assert after.leader("t", 1) is None
        assert after.topics["t"].led == (0, 2, 3)


def test_a_topic_whose_answer_passes_stays() -> None:
    before = known(answer((0, 1, 5)))
    after = merged(before, answer(error=ErrorCode.LEADER_NOT_AVAILABLE), ["t"])
    assert leaders(after) == [1]
    assert after.errors == {"t": ErrorCode.LEADER_NOT_AVAILABLE}


def test_a_deleted_topic_goes_and_a_new_one_of_its_name_begins_anew() -> None:
    before = known(answer((0, 1, 5), (1, 1, 5)))
    gone = merged(before, answer(error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ["t"])
    assert "t" not in gone.topics
    again = merged(before, answer((0, 2, 0), topic_id=OTHER_ID), ["t"])
    assert leaders(again) == [2]  # an older epoch and fewer partitions, but another topic
    assert again.names == {OTHER_ID: "t"}


def test_older_news_are_not_taken() -> None:
    before = known(answer((0, 2, 7)))
    assert leaders(merged(before, answer((0, 1, 6)), ["t"])) == [2]
    assert leaders(merged(before, answer((0, 1, 8)), ["t"])) == [1]
    assert leaders(merged(before, answer((0, 1, -1)), ["t"])) == [1]  # a broker too old to say


def test_what_was_asked_for_and_not_answered_is_unknown() -> None:
    assert merged(EMPTY, answer((0, 1, 0)), ["t", "u"]).errors == {"u": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


def test_gaps_and_lies_about_numbers() -> None:
    metadata = known(answer((0, 1, 0), (2_000_000_000, 1, 0), (-5, 1, 0)))
    assert leaders(metadata) == [1, -1]


def test_a_leader_that_an_answer_names() -> None:
    before = known(answer((0, 1, 5), (1, 1, 5)))
    after = with_leader(before, "t", ID, 1, 3, 6, [Node(3, "host3", 9003)])
    assert leaders(after) == [1, 3]
    assert after.leader("t", 1) is not None
    assert with_leader(before, "t", ID, 1, 2, 5, []) is before  # no newer
    assert with_leader(before, "t", ID, 1, 9, 6, []) is before  # nobody knows where broker 9 is
    assert with_leader(before, "u", ID, 0, 1, 6, []) is before
    assert with_leader(before, "t", OTHER_ID, 1, 2, 6, []) is before  # of a topic of its name that is no more
    assert leaders(with_leader(before, "t", ZERO_TOPIC_ID, 1, 2, 6, [])) == [1, 2]  # it was asked for by its name


def test_pauses_double_up_to_a_bound_with_a_fifth_of_chance() -> None:
    backoff = Backoff(100, 1000, SeededEntropy(1))
    assert backoff.pause_ms(0) == 0
    for failures, expected in (1, 100), (2, 200), (3, 400), (4, 800), (5, 1000), (1000, 1000):
        pauses = {backoff.pause_ms(failures) for _ in range(200)}
        assert min(pauses) >= expected * 0.8
        assert max(pauses) <= expected * 1.2
        assert len(pauses) > 10


# A cluster


def cluster(bootstrap: str, **settings: object) -> Cluster:
    quick = {"retry_backoff_ms": 2, "reconnect_backoff_ms": 1, "bootstrap_servers": bootstrap, **settings}
    return Cluster(parse_settings(AdminSettings, None, quick), real_world())


async def test_a_topic_is_asked_for_until_it_is_there(bootstrap: str, topic: str) -> None:
    async with Proxy(bootstrap) as proxy:

        def hide(told: MetadataResponse) -> None:
            for one in told.topics:
                one.error_code, one.partitions = ErrorCode.LEADER_NOT_AVAILABLE, []

        def rule(request: Request) -> Action:
            return (
                Pass(hide if proxy.count(ApiKey.METADATA) < 4 else None) if request.key == ApiKey.METADATA else Pass()
            )

        proxy.rule = rule
        one = cluster(proxy.bootstrap)
        assert len((await one.topic(topic)).partitions) == 1
        assert proxy.count(ApiKey.METADATA) == 4
        with pytest.raises(UnknownTopicOrPartition, match="no-such-topic"):
            await one.topic("no-such-topic", timeout_ms=1_000)
        await one.close()
        with pytest.raises(ClientClosed):
            await one.any_connection()


async def test_many_who_ask_at_once_share_one_round(bootstrap: str, topic: str) -> None:
    async with Proxy(bootstrap) as proxy:
        one = cluster(proxy.bootstrap)
        await asyncio.gather(*(one.topic(topic) for _ in range(20)))
        assert proxy.count(ApiKey.METADATA) <= 2
        await one.close()


async def test_metadata_grows_old(bootstrap: str) -> None:
    async with Proxy(bootstrap) as proxy:
        one = cluster(proxy.bootstrap, metadata_max_age_ms=100)
        await one.updated()
        changed = asyncio.Event()
        one.on_change.append(changed.set)
        await changed.wait()  # nobody asked
        await one.close()
        assert proxy.count(ApiKey.METADATA) == 2


async def test_metadata_is_refreshed_whatever_raised_before(bootstrap: str) -> None:
    """What hears of a change, or a round itself."""
    one = cluster(bootstrap, metadata_max_age_ms=1)
    heard = asyncio.Event()

    def raises() -> None:
        raise RuntimeError("planted")

    one.on_change += [raises, heard.set]
    async with asyncio.timeout(60):
        await one.updated()
        await heard.wait()
        topics, one._topics = one._topics, None  # type: ignore[assignment] - no request can be made of it
        with pytest.raises(ClientFault):
            await one.updated()
        one._topics = topics
        heard.clear()
        await heard.wait()
    await one.close()


async def test_the_bootstrap_connection_becomes_the_brokers(bootstrap: str) -> None:
    one = cluster(bootstrap)
    await one.updated()
    (node_id,) = one.metadata.nodes
    assert one.connections.open(node_id, CONTROL) is await one.any_connection()
    await one.close()


async def test_a_lost_connection_is_made_again(bootstrap: str, topic: str) -> None:
    async with Proxy(bootstrap) as proxy:

        def rule(request: Request) -> Action:
            return Cut() if request.key == ApiKey.METADATA and proxy.count(ApiKey.METADATA) in {1, 2, 4} else Pass()

        proxy.rule = rule
        one = cluster(proxy.bootstrap)
        await one.topic(topic)
        await one.retrying(one.updated)
        assert proxy.count(ApiKey.METADATA) >= 5
        await one.close()


async def test_a_broker_that_accepts_and_hangs_up_is_not_called_in_a_circle() -> None:
    async def script(peer: Peer) -> None:
        await peer.negotiate()

    async with ScriptedServer(script) as server:
        one = cluster(server.bootstrap, reconnect_backoff_ms=100, reconnect_backoff_max_ms=100, retry_backoff_ms=5)
        with pytest.raises(ConnectionLost):
            await one.topic("t", timeout_ms=1_000)
        assert server.connections <= 20
        await one.close()


async def test_a_cluster_without_a_broker_alive() -> None:
    async def script(peer: Peer) -> None:
        await peer.negotiate()
        while True:
            await peer.answer(await peer.request(), MetadataResponse())

    async with ScriptedServer(script) as server:
        one = cluster(server.bootstrap, default_api_timeout_ms=1_000)
        with pytest.raises(NoBrokerReached, match="knows no broker"):
            await one.retrying(one.updated)
        await one.close()


async def test_nothing_is_created_by_looking() -> None:
    asked: list[MetadataRequest] = []

    async def script(peer: Peer) -> None:
        await peer.negotiate()
        while True:
            frame = await read_frame(peer.reader)
            header, body_at = decode_request_header(frame)
            asked.append(MetadataRequest.decode(frame, header.api_version, body_at)[0])
            await peer.answer(header, answer((0, 1, 0)))

    async with ScriptedServer(script) as server:
        one = cluster(server.bootstrap)
        await one.topic("t")
        await one.close()
    assert not asked[0].allow_auto_topic_creation
    assert [topic.name for topic in asked[0].topics or []] == ["t"]


async def test_a_broker_that_knows_no_leader_is_not_asked_again_while_there_is_another() -> None:
    """It may be cut off from those who elect: it will never know one."""
    ports: dict[int, int] = {}

    def script(knows: bool) -> Callable[[Peer], Awaitable[None]]:
        async def serve(peer: Peer) -> None:
            await peer.negotiate()
            while True:
                header = await peer.request()
                told = answer((0, 2, 6) if knows else (0, -1, 5))
                for broker in told.brokers:
                    broker.host, broker.port = "127.0.0.1", ports[broker.node_id]
                await peer.answer(header, told)

        return serve

    async with ScriptedServer(script(knows=False)) as cut_off, ScriptedServer(script(knows=True)) as other:
        ports.update({1: cut_off.port, 2: other.port})
        one = cluster(cut_off.bootstrap)
        one.want(["t"])
        async with asyncio.timeout(60):
            while one.metadata.leader("t", 0) is None:
                await one.updated()
        # Its next answers, which are older, change nothing.
        await one.updated()
        assert leaders(one.metadata) == [2]
        await one.close()


async def test_a_broker_that_has_moved_is_left_at_its_old_address() -> None:
    """Where another one may answer by now: it leads nothing of what is asked, and names the same leader again."""
    ports: dict[int, int] = {}
    may_connect = asyncio.Event()
    may_connect.set()

    async def serve(peer: Peer) -> None:
        await may_connect.wait()
        await peer.negotiate()
        while True:
            header = await peer.request()
            told = answer((0, 1, 5))
            for broker in told.brokers:
                broker.host, broker.port = "127.0.0.1", ports[broker.node_id]
            await peer.answer(header, told)

    async with ScriptedServer(serve) as first, ScriptedServer(serve) as second:
        ports.update({1: first.port, 2: second.port})
        one = cluster(first.bootstrap)
        await one.updated()
        for lane in (CONTROL, DATA):
            assert (await one.connections.to(1, lane)).peer == first.bootstrap
        before = await one.connections.to(2, CONTROL)
        ports.update({1: second.port, 2: first.port})
        await one.updated()
        for lane in (CONTROL, DATA):
            assert (await one.connections.to(1, lane)).peer == second.bootstrap
        assert before.closed
        may_connect.clear()
        late = asyncio.create_task(one.connections.to(2, DATA))
        connections = first.connections
        while first.connections == connections:  # noqa: ASYNC110 - nothing tells when
            await asyncio.sleep(0.001)
        ports.update({1: first.port, 2: second.port})
        await one.updated()
        may_connect.set()
        with pytest.raises(ConnectionLost, match="is not at"):
            await late
        assert (await one.connections.to(2, DATA)).peer == second.bootstrap
        await one.close()


async def test_an_end_that_is_cancelled_leaves_no_connection_open() -> None:
    """While one of them waits for a peer that takes nothing."""
    ports: list[int] = []

    async def serve(peer: Peer) -> None:
        await peer.negotiate()
        told = answer((0, 1, 5))
        for broker, port in zip(told.brokers, ports, strict=True):
            broker.host, broker.port = "127.0.0.1", port
        await peer.answer(await peer.request(), told)
        await asyncio.Event().wait()

    async with ScriptedServer(serve) as first, ScriptedServer(serve) as second:
        ports += [first.port, second.port]
        one = cluster(first.bootstrap)
        await one.updated()
        connections = [await one.connections.to(node, CONTROL) for node in (1, 2)]
        large = MetadataRequest(topics=[MetadataRequestTopic(name="x" * 30_000) for _ in range(30)])
        for connection in connections:
            for _ in range(40):  # far more than the sockets hold
                connection.send_unanswered(large, 9)
        closing = asyncio.create_task(one.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.wait([closing])
        assert closing.cancelled()
        assert all(connection.closed for connection in connections)
