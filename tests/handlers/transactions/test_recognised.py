"""AddPartitionsToTxn and EndTxn that are recognised are what they would be, decoded.

Two clients of one broker say the same, each about an id of its own; one of them calls itself otherwise with each
request, so that none of its requests is like the one before.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.handlers.commit.room import Choosy, Slow
from tests.handlers.frames import list_offset
from tests.handlers.transactional import TransactionalClient, until
from tests.handlers.transactions.conftest import PROPERTIES
from tests.searches import seeds
from tests.server.conftest import BrokerThread, Peer

from ottla.broker.broker import Broker
from ottla.config import Config
from ottla.handlers.transactions import growing
from ottla.handlers.transactions.memo import REMEMBERED_BYTES_MAX
from ottla.handlers.transactions.recognised import RecognisedTransactions
from ottla.model import ErrorCode
from ottla.ports.real import real_ports
from ottla.protocol.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from ottla.protocol.generated.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.header import RequestHeader, decode_response_header, encode_request
from ottla.protocol.message import Message
from ottla.security.authorizer import Resource

#: Of the same length, or the frames of one were longer.
ALIKE, UNLIKE = "alike-", "other-"
LATEST, COMMITTED = -1, 1


class Guarded(BrokerThread):
    async def _start(self) -> None:
        self.choosy, self.slow = Choosy(), Slow()
        self.ports = real_ports()
        self.broker = Broker(Config.parse(self.properties), self.ports, authorizer=self.choosy, quotas=self.slow)
        await self.broker.start()
        self.port = self.broker.endpoints[0].port


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    with Guarded(str(tmp_path_factory.mktemp("broker")), **PROPERTIES) as broker:
        yield broker


class Counted:
    """How often requests were recognised, and how often it was found out what one says."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.recognised = self.understood = 0
        answer, understand = RecognisedTransactions._answer, growing.understand

        def counted(handler: RecognisedTransactions, *arguments: Any) -> None:
            self.recognised += 1
            answer(handler, *arguments)

        def counted_too(*arguments: Any) -> None:
            self.understood += 1
            understand(*arguments)

        patch.setattr(RecognisedTransactions, "_answer", counted)
        patch.setattr(growing, "understand", counted_too)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    return Counted(monkeypatch)


class Client:
    def __init__(self, peer: Peer, kind: str, number: int) -> None:
        self.peer = peer
        self.id = f"{kind}{number}"
        self.names = count(1_000_000) if kind == UNLIKE else None
        self.known = TransactionalClient(peer, self.id)
        self.known.init()

    def ask(self, request: Message, version: int, answer: type[Message]) -> tuple[bytes, Any]:
        """What follows the correlation id; and the same, decoded."""
        name = 1_000_000 if self.names is None else next(self.names)
        self.peer.correlation += 1
        header = RequestHeader(
            api_key=request.API_KEY,
            api_version=version,
            correlation_id=self.peer.correlation,
            client_id=f"client-{name}",
        )
        self.peer.send(encode_request(header, request))
        raw = self.peer.receive()
        assert struct.unpack_from(">i", raw) == (self.peer.correlation,)
        *_, at = decode_response_header(raw, request.API_KEY, version)
        return raw[4:], answer.decode(raw, version, at)[0]

    def add(self, *partitions: tuple[str, int], version: int = 0, epoch: int = 0) -> bytes:
        topics: dict[str, list[int]] = {}
        for topic, partition in partitions:
            topics.setdefault(topic, []).append(partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self.known.producer_id,
            v3_and_below_producer_epoch=self.known.epoch + epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=name, partitions=those) for name, those in topics.items()
            ],
        )
        raw, _ = self.ask(request, version, AddPartitionsToTxnResponse)
        return raw

    def end(self, *, commits: bool = True, version: int = 1, epoch: int = 0) -> bytes:
        request = EndTxnRequest(
            transactional_id=self.id,
            producer_id=self.known.producer_id,
            producer_epoch=self.known.epoch + epoch,
            committed=commits,
        )
        while True:
            raw, answer = self.ask(request, version, EndTxnResponse)
            if answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                return raw


_numbers = count(100)


@pytest.fixture
def both(guarded: Guarded) -> Iterator[list[Client]]:
    number = next(_numbers)
    with guarded.connect() as one, guarded.connect() as other:
        yield [Client(one, ALIKE, number), Client(other, UNLIKE, number)]


@pytest.fixture
def topics(guarded: Guarded) -> list[str]:
    number = next(_numbers)
    names = [f"a{number}", f"b{number}"]
    for name in names:
        guarded.create_topic(name, 2)
    return names


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_one_transaction_after_the_other(both: list[Client], topics: list[str], counted: Counted, version: int) -> None:
    for _ in range(4):
        assert len({client.add((topics[0], 0), (topics[1], 1), version=version) for client in both}) == 1
        assert len({client.end(version=version) for client in both}) == 1
    assert counted.recognised == 2 * 3
    assert counted.understood == 2


def test_what_is_ended_so_is_ended(both: list[Client], topics: list[str]) -> None:
    alike, _ = both
    for number in range(4):
        alike.add((topics[0], 0))
        assert alike.known.produce(b"v", topics[0]).error_code == ErrorCode.NONE
        alike.end(commits=number % 2 == 0)
    until(lambda: list_offset(alike.peer, LATEST, topics[0], isolation_level=COMMITTED).offset == 4 * 2)


def test_a_topic_that_is_made_or_deleted_meanwhile(
    guarded: Guarded, both: list[Client], topics: list[str], counted: Counted
) -> None:
    late = f"late-{topics[0]}"
    unknown = {client.add((late, 0)) for client in both for _ in range(3)}
    assert len(unknown) == 1
    assert not counted.recognised
    guarded.create_topic(late)
    known = {client.add((late, 0)) for client in both for _ in range(2)}
    assert len(known) == 1
    assert known != unknown
    assert counted.recognised == 2


def test_who_may_not_any_more(guarded: Guarded, both: list[Client], topics: list[str], counted: Counted) -> None:
    for resource, names in ((Resource.TOPIC, [topics[0]]), (Resource.TRANSACTIONAL_ID, [each.id for each in both])):
        allowed = {client.add((topics[0], 0)) for client in both for _ in range(2)}
        assert len(allowed) == 1
        recognised = counted.recognised
        assert recognised
        for name in names:
            guarded.look(lambda _, name=name, resource=resource: guarded.choosy.turn(resource, name))  # type: ignore[misc]
        denied = {client.add((topics[0], 0)) for client in both for _ in range(2)}
        assert len(denied) == 1
        assert denied != allowed
        assert counted.recognised == recognised
        for name in names:
            guarded.look(lambda _, name=name, resource=resource: guarded.choosy.turn(resource, name))  # type: ignore[misc]
        assert {client.add((topics[0], 0)) for client in both} == allowed


def test_who_is_held_back(guarded: Guarded, both: list[Client], topics: list[str], counted: Counted) -> None:
    free = {client.add((topics[0], 0)) for client in both for _ in range(2)}
    recognised = counted.recognised
    guarded.look(lambda _: guarded.slow.turn())
    held = {client.add((topics[0], 0)) for client in both for _ in range(2)}
    guarded.look(lambda _: guarded.slow.turn())
    assert len(free) == len(held) == 1
    assert free != held
    assert counted.recognised == recognised


def test_a_long_request_and_a_new_version_are_not_remembered(
    guarded: Guarded, both: list[Client], counted: Counted
) -> None:
    long = "l" * 200 + str(next(_numbers))
    guarded.create_topic(long, 80)
    alike, _ = both
    assert len({alike.add(*((long, number) for number in range(80))) for _ in range(3)}) == 1
    assert 80 * 4 + len(long) > REMEMBERED_BYTES_MAX
    assert not counted.recognised


@pytest.mark.parametrize("seed", seeds(3, 40))
def test_random_requests(guarded: Guarded, both: list[Client], topics: list[str], counted: Counted, seed: int) -> None:
    random = Random(seed)
    places = [(name, partition) for name in topics for partition in (0, 1, 2)]
    for _ in range(60):
        version, epoch = random.choice([0, 1, 3]), random.choice([0, 0, 0, 0, -1, 1])
        if random.random() < 0.5:
            chosen = random.sample(places[:2] if random.random() < 0.7 else places, random.choice([1, 1, 2]))
            answers = [client.add(*chosen, version=version, epoch=epoch) for client in both]
        else:
            commits = random.random() < 0.7
            answers = [client.end(commits=commits, version=version, epoch=epoch) for client in both]
        assert answers[0] == answers[1]
        if random.random() < 0.05:
            guarded.look(lambda broker: guarded.choosy._changed())


def test_a_frame_is_kept_for_nobody_without_announcing_parts(tmp_path: Path, counted: Counted) -> None:
    """Whoever may change an answer without a word is asked each time."""
    with Guarded(str(tmp_path), **PROPERTIES) as broker:
        broker.create_topic("a")
        services = broker.broker.services
        assert services is not None
        services.policy.remembers = False
        with broker.connect() as peer:
            client = Client(peer, ALIKE, 1)
            assert len({client.add(("a", 0)) for _ in range(3)}) == 1
    assert not counted.recognised
