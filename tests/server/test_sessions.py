"""One gate for all requests: the session of a connection, and the policy that what is remembered was allowed under."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.handlers.frames import batch, fetch, produce, produce_request, values
from tests.handlers.transactional import TransactionalClient
from tests.server.conftest import BrokerThread, Peer
from tests.server.test_hooks import Choosy, Slow

from ottla.broker.broker import Broker
from ottla.config import Config
from ottla.model import ErrorCode, TopicPartition
from ottla.native import compiled_run
from ottla.ports.real import real_ports
from ottla.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.generated.metadata import MetadataRequest
from ottla.protocol.generated.produce import ProduceResponse
from ottla.security.authorizer import Operation, Resource
from ottla.security.principal import ANONYMOUS, Principal
from ottla.security.session import Session, SessionState
from ottla.server.connection import Connection

TP = TopicPartition("t", 0)
DENIED = (Operation.WRITE, Resource.TOPIC, "t")
UNREADABLE = (Operation.READ, Resource.TOPIC, "t")
CLOSED = [SessionState.AUTHENTICATING, SessionState.EXPIRED]
compiled = pytest.mark.skipif(compiled_run() is None, reason="nothing is compiled")


class Announcing(Choosy):
    """Says when it changes its mind."""

    announces = True

    def deny(self, *denied: tuple[Operation, Resource, str]) -> None:
        self.changed()
        self.denied = set(denied)


class Bounding(Slow):
    """Says when it begins to count."""

    announces = True

    def bound(self, *, holds_back: bool) -> None:
        self.changed()
        self.holds_back = holds_back


class Guarded(BrokerThread):
    async def _start(self) -> None:
        self.authorizer, self.quotas = Announcing(), Bounding()
        self.ports = real_ports()
        self.broker = Broker(Config.parse(self.properties), self.ports, authorizer=self.authorizer, quotas=self.quotas)
        await self.broker.start()
        self.port = self.broker.endpoints[0].port


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    with Guarded(str(tmp_path)) as broker:
        broker.create_topic("t")
        yield broker


def only(running: BrokerThread) -> Connection:
    """The broker's end of the only connection."""

    def find(broker: Broker) -> Connection:
        assert broker._server is not None
        (connection,) = broker._server._connections
        return connection

    return running.look(find)


def remembered(running: BrokerThread) -> tuple[bool, bool, bool]:
    """Produce, Fetch, and whether there is a lane."""
    connection = only(running)
    return running.look(
        lambda _: (
            connection.produce_memo is not None,
            connection.fetch_memo is not None,
            connection.lane is not None,
        )
    )


def enter(running: BrokerThread, state: SessionState, principal: Principal = ANONYMOUS) -> None:
    connection = only(running)
    running.look(lambda _: connection.enter(Session("PLAINTEXT", state, principal)))


def end_of(running: BrokerThread) -> int:
    return int(running.look(lambda broker: broker.services.replicas.leaders[TP].log.end_offset))


def warmed(peer: Peer) -> None:
    for _ in range(3):
        assert produce(peer, batch(b"a")).error_code == ErrorCode.NONE
        assert values(fetch(peer)) != []


# -- sessions


def test_everybody_is_anonymous_on_a_listener_without_authentication(running: BrokerThread) -> None:
    with running.connect() as peer:
        peer.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
        session = only(running).session
    assert session == Session("PLAINTEXT", SessionState.OPEN, ANONYMOUS)
    assert str(session.principal) == "User:ANONYMOUS"


@pytest.mark.parametrize("state", CLOSED)
@pytest.mark.parametrize("way", ["remembered", "new", "pipelined"])
def test_a_session_that_is_not_open_serves_no_produce(running: BrokerThread, state: SessionState, way: str) -> None:
    with running.connect() as peer:
        if way == "remembered":
            warmed(peer)
        else:
            peer.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
        enter(running, state)
        assert remembered(running) == (False, False, False)
        before = end_of(running)
        one = peer.frame(produce_request(batch(b"a")), 9)
        peer.send(one * (5 if way == "pipelined" else 1))
        assert peer.is_closed()
    assert end_of(running) == before


@pytest.mark.parametrize("state", CLOSED)
def test_a_session_that_is_not_open_serves_nothing_else(running: BrokerThread, state: SessionState) -> None:
    with running.connect() as peer:
        warmed(peer)
        enter(running, state)
        with pytest.raises((EOFError, ConnectionResetError)):
            fetch(peer)
    with running.connect() as peer:
        peer.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
        enter(running, state)
        peer.send(peer.frame(MetadataRequest(topics=None), 4))
        assert peer.is_closed()


def test_a_session_that_is_not_open_says_which_versions_there_are(running: BrokerThread) -> None:
    with running.connect() as peer:
        peer.ask(ApiVersionsRequest(), 0, ApiVersionsResponse)
        enter(running, SessionState.AUTHENTICATING)
        assert peer.ask(ApiVersionsRequest(), 0, ApiVersionsResponse).error_code == ErrorCode.NONE
        enter(running, SessionState.AUTHENTICATED, Principal("User", "alice"))
        warmed(peer)


@compiled
def test_another_user_begins_with_nothing_remembered_and_has_a_lane_again(running: BrokerThread) -> None:
    with running.connect() as peer:
        warmed(peer)
        assert remembered(running) == (True, True, True)
        enter(running, SessionState.AUTHENTICATED, Principal("User", "alice"))
        assert remembered(running) == (False, False, False)
        warmed(peer)
        assert remembered(running) == (True, True, True)
        assert only(running).principal == Principal("User", "alice")


# -- the policy


def test_what_an_authorizer_has_allowed_is_remembered_until_it_announces_a_change(guarded: Guarded) -> None:
    authorizer = guarded.authorizer
    with guarded.connect() as peer:
        warmed(peer)
        for _ in range(2):
            asked = len(authorizer.asked)
            warmed(peer)
            assert len(authorizer.asked) == asked
            guarded.look(lambda _: authorizer.deny(DENIED, UNREADABLE))
            end = end_of(guarded)
            assert produce(peer, batch(b"b")).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert fetch(peer).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert produce(peer, batch(b"b")).error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert end_of(guarded) == end
            guarded.look(lambda _: authorizer.deny())
            warmed(peer)


@compiled
def test_lanes_come_again_under_the_new_policy(guarded: Guarded) -> None:
    with guarded.connect() as peer:
        warmed(peer)
        assert remembered(guarded) == (True, True, True)
        first = guarded.look(lambda broker: broker.services.replicas.leaders[TP].run)
        guarded.look(lambda _: guarded.authorizer.deny())
        warmed(peer)
        second = guarded.look(lambda broker: broker.services.replicas.leaders[TP].run)
        assert second is not first
        assert remembered(guarded) == (True, True, True)
        end = end_of(guarded)
        for number in range(20):
            assert produce(peer, batch(b"c")).base_offset == end + number


@compiled
def test_what_a_lane_had_received_before_the_change_is_asked_about(guarded: Guarded) -> None:
    """Both stand in one run: neither is written, though both would have been recognised when they were sent."""
    with guarded.connect() as peer, guarded.connect() as other:
        warmed(peer)
        warmed(other)
        end = end_of(guarded)

        def sent_before_the_change(_: Broker) -> None:
            # The loop stands still meanwhile: it finds both requests, and the change behind them.
            for each in (peer, other):
                each.send(each.frame(produce_request(batch(b"late")), 8))
            guarded.authorizer.deny(DENIED)

        guarded.look(sent_before_the_change)
        for each in (peer, other):
            (topic,) = each.answer(ProduceResponse, 8).responses
            assert topic.partition_responses[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert end_of(guarded) == end
        guarded.look(lambda _: guarded.authorizer.deny())
        warmed(peer)
        assert end_of(guarded) == end + 3


@compiled
def test_a_transactional_id_that_a_lane_has_recognised_is_asked_about(tmp_path: Path) -> None:
    settings = {"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"}
    with Guarded(str(tmp_path), **settings) as guarded, guarded.connect() as peer:
        guarded.create_topic("t")
        client = TransactionalClient(peer)
        client.init()
        assert client.add("t", 0) == [ErrorCode.NONE]
        for _ in range(4):
            assert client.produce(b"a").error_code == ErrorCode.NONE
        assert remembered(guarded)[2]
        before = end_of(guarded)
        guarded.look(lambda _: guarded.authorizer.deny((Operation.WRITE, Resource.TRANSACTIONAL_ID, client.id)))
        for _ in range(2):
            assert client.produce(b"a").error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        assert end_of(guarded) == before


def test_a_client_whose_use_is_counted_is_not_recognised(guarded: Guarded) -> None:
    quotas = guarded.quotas
    with guarded.connect() as peer:
        warmed(peer)
        used = len(quotas.used)
        warmed(peer)
        assert len(quotas.used) == used
        guarded.look(lambda _: quotas.bound(holds_back=True))
        for _ in range(3):
            answer = peer.ask(produce_request(batch(b"a")), 9, ProduceResponse)
            assert answer.throttle_time_ms > 0
        assert len(quotas.used) >= used + 3
        guarded.look(lambda _: quotas.bound(holds_back=False))
        warmed(peer)
        used = len(quotas.used)
        warmed(peer)
        assert len(quotas.used) == used
