"""What is written in transactions, and ends them, and what Apache Kafka 4.3.1 answered (``transactional-writes.txt``).

python -m tests.interop.transactional_writes    writes that anew; needs Java
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka.admin import AdminClient

from ottla.model import ErrorCode
from ottla.protocol.generated.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from ottla.protocol.generated.join_group import JoinGroupRequestProtocol
from ottla.records.compression import ZSTD
from tests.handlers.frames import fetch
from tests.handlers.groups import join, sync, wait_loaded
from tests.handlers.transactional import TransactionalClient, mark, until
from tests.interop.conftest import create_topic
from tests.interop.transaction_answers import PROPERTIES
from tests.server.conftest import Peer

#: A subscription to the topic `a`: with one that it cannot read Kafka does not answer at all.
RANGE = JoinGroupRequestProtocol(name="range", metadata=struct.pack(">hih1si", 0, 1, 1, b"a", -1))
ANSWERS = Path(__file__).with_name("transactional-writes.txt")


def conversation(bootstrap: str) -> list[str]:
    """A line for each question: what it is, and the codes of the answer, with offsets where something was produced."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for topic in ("a", "b"):
        create_topic(admin, topic, partitions=1)
    peer = Peer(int(bootstrap.rpartition(":")[2]))
    with peer:
        parts = (
            *(_classic(peer), _newer(peer), _offsets(peer), _moved_on(peer), _moved_on_by_epochs(peer)),
            _ruled_out(peer),
        )
        return [f"{what}: {answer}" for part in parts for what, answer in part]


def _produced(answer: Any) -> str:
    return f"{ErrorCode(answer.error_code).name} {answer.base_offset} {answer.log_start_offset}"


def _names(codes: Any) -> str:
    return " ".join(ErrorCode(code).name for code in codes)


def _ended(peer: Peer, topic: str, end: int) -> None:
    until(lambda: fetch(peer, topic=topic, isolation_level=1).last_stable_offset >= end)


def _begun(peer: Peer, name: str, version: int = 0) -> TransactionalClient:
    client = TransactionalClient(peer, name, version)
    client.init()
    return client


def _classic(peer: Peer) -> Iterator[tuple[str, str]]:
    client = _begun(peer, "classic")
    yield "not added, Produce 10", _produced(client.produce(b"v", "a", version=10))
    yield "not added, Produce 11", _produced(client.produce(b"v", "a"))
    client.add("a", 0)
    yield "added", _produced(client.produce(b"v", "a"))
    yield "outside of the transaction", _produced(client.produce(b"v", "a", transactional=False, sequence=1))
    yield "a gap", _produced(client.produce(b"v", "a", sequence=5))
    yield "again", _produced(client.produce(b"v", "a", sequence=0))
    client.end(commits=True)
    _ended(peer, "a", 2)
    yield "late, Produce 11", _produced(client.produce(b"v", "a", sequence=1))
    yield "late, Produce 10", _produced(client.produce(b"v", "a", sequence=1, version=10))
    yield "again, late", _produced(client.produce(b"v", "a", sequence=0))
    _begun(peer, "classic")
    yield "fenced", _produced(client.produce(b"v", "a", sequence=1))
    latest = _begun(peer, "classic")
    latest.add("a", 0)
    yield "of the latest epoch", _produced(latest.produce(b"v", "a"))
    client.id = "nobody"
    for version in (9, 11, 12):
        late = _produced(client.produce(b"v", "a", version=version))
        yield f"an epoch that its log knows to be over, another id, Produce {version}", late
    latest.end(commits=False)
    client.id = "classic"
    client.producer_id = 987_654
    yield "another producer id", _produced(client.produce(b"v", "b", sequence=0))


def _newer(peer: Peer) -> Iterator[tuple[str, str]]:
    client = _begun(peer, "newer", 2)
    yield "epoch a transaction, not from sequence 0", _produced(client.produce(b"v", "b", sequence=5))
    yield "epoch a transaction", _produced(client.produce(b"v", "b", sequence=0))
    before = client.epoch
    client.end(commits=True)
    _ended(peer, "b", 2)
    yield "epoch a transaction, late", _produced(client.produce(b"v", "b", sequence=1, producer_epoch=before))
    yield "epoch a transaction, the next", _produced(client.produce(b"v", "b"))
    place, later = ("b", 0), {"version": 2, "producer_epoch": client.epoch + 1}
    yield "a marker of the transaction's epoch", _names(mark(peer, client, place, version=2))
    yield "a marker of an old epoch", _names(mark(peer, client, place, producer_epoch=before))
    yield "a marker", _names(mark(peer, client, place, coordinator_epoch=5, **later))
    yield "a marker, again", _names(mark(peer, client, place, coordinator_epoch=5, **later))
    yield "a marker of an old coordinator", _names(mark(peer, client, place, coordinator_epoch=4, **later))
    yield "markers for nothing", _names(mark(peer, client, ("z", 0), ("b", 99), ("__consumer_offsets", 77)))


def _offsets(peer: Peer) -> Iterator[tuple[str, str]]:
    client = _begun(peer, "offsets")
    client.find("g")

    def asked(group: str = "g", version: int = 4, **member: Any) -> str:
        found = client.commit_offsets(group, {("a", 0): 1, ("z", 0): 1, ("a", 55): 1}, version, **member)
        return _names(found[place] for place in sorted(found))

    yield "offsets, not added, version 3", asked(version=3)
    yield "offsets, not added, version 4", asked()
    client.add_offsets("g")
    yield "offsets", asked()
    yield "offsets of a generation", asked(generation_id=4, member_id="m")
    yield "offsets of a member", asked(member_id="m")
    yield "offsets of an old epoch", asked(producer_epoch=-1)
    yield "offsets of another producer", asked(producer_id=4242)
    yield "offsets of no group", asked("")
    latest = _begun(peer, "offsets")
    latest.add_offsets("g")
    latest.commit_offsets("g", {("a", 0): 1})
    for version in (3, 4, 5):
        client.id = "offsets"
        yield f"offsets of an epoch that is over, version {version}", asked(version=version)
        client.id = "nobody"
        yield f"offsets of an epoch that is over, another id, version {version}", asked(version=version)
    latest.end(commits=False)


def _moved_on(peer: Peer) -> Iterator[tuple[str, str]]:
    """Offsets of a member whose group has had another generation since."""
    client = _begun(peer, "moved on")
    wait_loaded(peer, "moving")
    first = join(peer, "moving", protocols=[RANGE])
    sync(peer, "moving", first)
    # The leader of a group that joins again begins another generation.
    second = join(peer, "moving", first.member_id, protocols=[RANGE])
    sync(peer, "moving", second)
    client.add_offsets("moving")
    for version in (3, 4):
        for what, generation, member in (
            ("generation that is over", first.generation_id, first.member_id),
            ("generation that has not come", second.generation_id + 1, first.member_id),
            ("generation without its member", second.generation_id, "nobody"),
            ("generation", second.generation_id, first.member_id),
        ):
            codes = client.commit_offsets(
                "moving", {("a", 0): 1}, version, generation_id=generation, member_id=member
            ).values()
            yield f"offsets of a {what}, version {version}", _names(codes)
    client.end(commits=False)


def _moved_on_by_epochs(peer: Peer) -> Iterator[tuple[str, str]]:
    """The same in a group of the newer protocol, whose members have epochs."""
    client = _begun(peer, "moved on by epochs")
    group = "moving by epochs"
    wait_loaded(peer, group)

    def heartbeat(member: str, epoch: int) -> int:
        """The epoch that it has then."""
        wants = {"subscribed_topic_names": ["a"], "topic_partitions": [], "rebalance_timeout_ms": 60_000}
        request = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=member, member_epoch=epoch, **(wants if not epoch else {})
        )
        answer = peer.ask(request, 1, ConsumerGroupHeartbeatResponse)
        assert not answer.error_code, answer
        return int(answer.member_epoch)

    first = heartbeat("one", 0)
    heartbeat("two", 0)
    latest = [first]

    def has_moved() -> bool:
        latest[0] = heartbeat("one", latest[0])
        return latest[0] > first

    until(has_moved)
    client.add_offsets(group)
    for what, epoch, member in (
        ("epoch that is over", first, "one"),
        ("epoch that has not come", latest[0] + 1, "one"),
        ("epoch without its member", latest[0], "nobody"),
        ("epoch", latest[0], "one"),
    ):
        codes = client.commit_offsets(group, {("a", 0): 1}, 4, generation_id=epoch, member_id=member).values()
        yield f"offsets of an {what}", _names(codes)
    client.end(commits=False)


def _ruled_out(peer: Peer) -> Iterator[tuple[str, str]]:
    """Where nobody may write, and with acks that there are not: what of it all is said first."""
    wait_loaded(peer, "g")
    client, other = _begun(peer, "ruled out", 2), _begun(peer, "another", 2)
    for topic, partition, acks in (("__transaction_state", 0, -1), ("__consumer_offsets", 0, 1), ("b", 0, 5)):
        where = f"{topic} with acks={acks}"
        for version in (3, 7, 9, 11, 12):
            options: dict[str, Any] = {"version": version, "acks": acks}
            client.id = "ruled out"
            yield f"{where}, Produce {version}", _produced(client.produce(b"v", topic, partition, **options))
            epoch = client.epoch + 1
            answer = client.produce(b"v", topic, partition, producer_epoch=epoch, **options)
            yield f"{where}, Produce {version}, another epoch", _produced(answer)
            client.id = other.id
            another = client.produce(b"v", topic, partition, **options)
            yield f"{where}, Produce {version}, another id", _produced(another)
            # From here on Kafka has it in the transaction, in spite of the rule.
            if version == 11:
                client.id = "ruled out"
                plain = client.produce(b"v", topic, partition, transactional=False, **options)
                yield f"{where}, Produce {version}, not of the transaction", _produced(plain)
    for topic, partition in (("nope", 0), ("b", 77), ("__transaction_state", 777)):
        yield f"{topic}-{partition} with acks=5", _produced(client.produce(b"v", topic, partition, acks=5))
        yield (
            f"{topic}-{partition} with zstd in Produce 3",
            _produced(client.produce(b"v", topic, partition, version=3, compression=ZSTD, transactional=False)),
        )


def _write_anew() -> None:
    from tools.kafka_jars import jars

    from tests.interop.broker import kafka_broker

    broker = kafka_broker(Path(tempfile.mkdtemp()), jars(), PROPERTIES)
    with broker.server:
        ANSWERS.write_text("\n".join(conversation(broker.bootstrap)) + "\n")


if __name__ == "__main__":
    _write_anew()
