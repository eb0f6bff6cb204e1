"""Consumers read from a replica in their rack where the configuration names the rack-aware selector (KIP-392)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.handlers.followers import ALL, FIRST, SECOND, US, PlayedFollower, decide
from tests.handlers.frames import batch, fetch, fetch_request, produce, values
from tests.server.conftest import BrokerThread, Peer
from tests.storage.log_world import batch as stored

from ottla.metadata import BrokerEndpoints, MetadataUpdate
from ottla.model import BrokerId, ErrorCode, TopicPartition
from ottla.protocol.generated.fetch import FetchResponse
from ottla.records.control import ControlType, control_batch

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
TP = TopicPartition("t", 0)
EPOCH = 4


@pytest.fixture
def broker(tmp_path: Any) -> Iterator[BrokerThread]:
    with BrokerThread(str(tmp_path), **{"replica.selector.class": SELECTOR, "broker.rack": "a"}) as running:
        running.create_topic("t")
        yield running


@pytest.fixture
def consumer(broker: BrokerThread) -> Iterator[Peer]:
    with broker.connect() as peer:
        yield peer


def racks(running: BrokerThread, **others: str) -> None:
    def apply(broker: Any) -> None:
        metadata = broker.services.metadata
        kept = [each for each in metadata.brokers.values() if each.id == US]
        brokers = [BrokerEndpoints(BrokerId(int(each[1:])), (), rack, 7) for each, rack in others.items()]
        metadata.apply(MetadataUpdate(controller_epoch=metadata.controller_epoch, brokers=[*kept, *brokers]))

    running.look(apply)


def lead(broker: BrokerThread, peer: Peer, isr: tuple[int, ...] = ALL) -> None:
    """Two records, which the first follower has; the second has one of them."""
    assert decide(broker, "t", leader_epoch=EPOCH, isr=isr) == ErrorCode.NONE
    for value in (b"a", b"b"):
        assert produce(peer, batch(value), topic="t", acks=1).error_code == 0
    PlayedFollower(peer, "t", FIRST).fetch(2, leader_epoch=EPOCH)
    PlayedFollower(peer, "t", SECOND).fetch(1, leader_epoch=EPOCH)


def ask(peer: Peer, offset: int, rack: str, version: int = 11, **options: Any) -> Any:
    return fetch(peer, offset, version=version, topic="t", rack_id=rack, **options)


# At the leader


def test_a_consumer_is_sent_to_a_replica_in_its_rack(broker: BrokerThread, consumer: Peer) -> None:
    lead(broker, consumer)
    racks(broker, b9="b", b10="c")
    answer = ask(consumer, 0, "b", max_wait_ms=60_000, min_bytes=1 << 20)
    assert (answer.error_code, answer.preferred_read_replica, values(answer)) == (0, FIRST, [])
    assert answer.high_watermark == 1
    # Each time that it asks, whatever is remembered of its connection.
    for _ in range(2):
        assert ask(consumer, 0, "c").preferred_read_replica == SECOND


@pytest.mark.parametrize(
    ("rack", "offset", "isr"),
    [
        ("a", 0, ALL),  # the leader's own
        ("x", 0, ALL),  # nobody's
        ("", 0, ALL),
        ("c", 2, ALL),  # it has not come so far
        ("b", 0, (US, SECOND)),  # it is not in sync
    ],
)
def test_a_consumer_reads_from_the_leader_otherwise(
    broker: BrokerThread, consumer: Peer, rack: str, offset: int, isr: tuple[int, ...]
) -> None:
    lead(broker, consumer, isr)
    racks(broker, b9="b", b10="c")
    assert ask(consumer, offset, rack).preferred_read_replica == -1


def test_of_several_the_one_that_has_most(broker: BrokerThread, consumer: Peer) -> None:
    lead(broker, consumer)
    racks(broker, b9="b", b10="b")
    assert ask(consumer, 0, "b").preferred_read_replica == FIRST


def test_without_a_selector_the_leader_serves_all(running: BrokerThread, peer: Peer) -> None:
    lead(running, peer)
    racks(running, b9="b")
    answer = ask(peer, 0, "b")
    assert (answer.preferred_read_replica, values(answer)) == (-1, [b"a"])


# At a follower


def follow(running: BrokerThread) -> None:
    assert decide(running, "t", leader_id=FIRST, leader_epoch=EPOCH) == ErrorCode.NONE
    brought(running, 0, b"a", b"b", committed=1)


def brought(running: BrokerThread, offset: int, *contents: bytes, committed: int, **options: Any) -> None:
    """As a fetcher would."""
    empty = memoryview(b"")
    take(
        running, stored(*contents, base_offset=offset, leader_epoch=EPOCH, **options) if contents else empty, committed
    )


def marked(running: BrokerThread, offset: int, producer: int, *, aborts: bool, committed: int) -> None:
    """The end of a transaction."""
    kind = ControlType.ABORT if aborts else ControlType.COMMIT
    ends = {"producer_id": producer, "producer_epoch": 0, "coordinator_epoch": 0}
    marker = control_batch(kind, timestamp=1_800_000_000_000, base_offset=offset, leader_epoch=EPOCH, **ends)
    take(running, memoryview(bytearray(marker)), committed)


def take(running: BrokerThread, records: memoryview, committed: int) -> None:
    running.look(lambda broker: broker.services.replicas.followers[TP].append(records, committed, 0))


def test_a_follower_serves_what_it_knows_to_be_committed(broker: BrokerThread, consumer: Peer) -> None:
    follow(broker)
    brought(broker, 2, b"c", committed=2)
    answer = ask(consumer, 0, "b")
    assert (answer.error_code, answer.high_watermark, values(answer)) == (0, 2, [b"a", b"b"])
    assert values(ask(consumer, 2, "b")) == []
    assert ask(consumer, 9, "b").error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert ask(consumer, 0, "b", current_leader_epoch=EPOCH - 1).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert ask(consumer, 0, "b", current_leader_epoch=EPOCH + 1).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def read_committed(consumer: Peer) -> tuple[int, list[tuple[int, int]], list[bytes | None]]:
    """Last stable offset, what is named as aborted, and what is brought but for markers."""
    answer = ask(consumer, 0, "b", isolation_level=1)
    aborted = [(each.producer_id, each.first_offset) for each in answer.aborted_transactions]
    return answer.last_stable_offset, aborted, [value for value in values(answer) if value and value.isalpha()]


def test_a_follower_holds_back_what_is_open_and_names_what_was_aborted(broker: BrokerThread, consumer: Peer) -> None:
    """All by its own log and its own watermark, which may be behind its leader's."""
    follow(broker)
    brought(broker, 2, b"c", committed=2, producer=(7, 0, 0), transactional=True)
    brought(broker, 3, b"d", committed=4, producer=(8, 0, 0), transactional=True)
    assert read_committed(consumer) == (2, [], [b"a", b"b"])
    marked(broker, 4, 7, aborts=True, committed=4)
    assert read_committed(consumer) == (2, [], [b"a", b"b"])
    brought(broker, 5, b"e", committed=6, producer=(7, 0, 1), transactional=True)
    assert read_committed(consumer) == (3, [(7, 2)], [b"a", b"b", b"c"])
    marked(broker, 6, 8, aborts=False, committed=7)
    assert read_committed(consumer) == (5, [(7, 2)], [b"a", b"b", b"c", b"d"])
    marked(broker, 7, 7, aborts=True, committed=8)
    assert read_committed(consumer) == (8, [(7, 2), (7, 5)], [b"a", b"b", b"c", b"d", b"e"])
    # Readers of everything get no list.
    assert ask(consumer, 0, "b").aborted_transactions is None


@pytest.mark.parametrize("session_epoch", [-1, 0])
def test_a_fetch_that_waits_at_a_follower_hears_of_its_watermark(
    broker: BrokerThread, consumer: Peer, session_epoch: int
) -> None:
    follow(broker)
    request = fetch_request(1, topic="t", rack_id="b", max_wait_ms=10 * 60_000, session_epoch=session_epoch)
    consumer.send(consumer.frame(request, 11))
    brought(broker, 2, b"c", committed=1)
    brought(broker, 3, committed=3)
    answer = consumer.answer(FetchResponse, 11).responses[0].partitions[0]
    assert (answer.high_watermark, values(answer)[-1]) == (3, b"c")


def test_a_follower_serves_no_old_consumers_and_no_other_followers(broker: BrokerThread, consumer: Peer) -> None:
    follow(broker)
    assert ask(consumer, 0, "", version=10).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    answer = PlayedFollower(consumer, "t", SECOND).fetch(0, leader_epoch=EPOCH)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_without_a_selector_a_follower_serves_nobody(running: BrokerThread, peer: Peer) -> None:
    running.create_topic("u")
    assert decide(running, "u", leader_id=FIRST, leader_epoch=EPOCH) == ErrorCode.NONE
    assert fetch(peer, 0, topic="u", rack_id="b").error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
