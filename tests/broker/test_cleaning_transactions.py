"""The cleaner of a running broker over what its own clients and coordinators have written in transactions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.server.conftest import Peer

from ottla import testing
from ottla.client.sync import Admin, Consumer, Producer
from ottla.model import OFFSETS_TOPIC, TRANSACTION_TOPIC, ErrorCode, TopicPartition
from ottla.protocol.generated.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse
from ottla.storage.formats import offset_checkpoint
from ottla.testing import InProcessBroker

SECONDS_MAX = 60.0
KEYS = 5
#: Enough for some segments of each topic.
TRANSACTIONS = 60
TABLE = TopicPartition("table", 0)
PROPERTIES = {
    "log.cleaner.backoff.ms": "20",
    "log.cleaner.min.cleanable.ratio": "0.0",
    "log.cleaner.delete.retention.ms": "0",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.segment.bytes": "3000",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.segment.bytes": "3000",
}


@pytest.fixture
def broker() -> Iterator[InProcessBroker]:
    with testing.broker(properties=PROPERTIES) as running:
        running.create_topic(TABLE.topic, configs={"cleanup.policy": "compact", "internal.segment.bytes": "3000"})
        yield running


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


def bases(broker: InProcessBroker, tp: TopicPartition) -> list[int]:
    """Where its segments begin."""
    (folder,) = Path(broker.data).rglob(f"{tp.topic}-{tp.partition}")
    return sorted(int(path.stem) for path in folder.glob("*.log"))


def until_cleaned(broker: InProcessBroker, tp: TopicPartition) -> None:
    """All but the segment that is written to, as far as that begins now."""
    wanted = bases(broker, tp)[-1]
    assert wanted, "it has one segment only"

    def is_cleaned() -> bool:
        files = Path(broker.data).rglob(offset_checkpoint.CLEANER_OFFSETS)
        return any(offset_checkpoint.decode(file.read_bytes()).get(tp, 0) >= wanted for file in files)

    until(is_cleaned)


def rows(broker: InProcessBroker, level: str) -> list[tuple[bytes, bytes]]:
    with (
        Consumer(bootstrap_servers=broker.bootstrap, isolation_level=level) as consumer,
        Admin(bootstrap_servers=broker.bootstrap) as admin,
    ):
        consumer.assign([TABLE])
        consumer.seek_to_beginning(TABLE)
        end = admin.list_offsets({TABLE: -1})[TABLE].offset
        found: list[tuple[bytes, bytes]] = []
        while consumer.position(TABLE) < end:
            found += [(each.key or b"", each.value or b"") for each in consumer.poll(timeout_ms=100)]
        return found


def stable_offset(broker: InProcessBroker, group: str) -> ErrorCode:
    """What is said to who wants no position that is pending; clients would ask again until their time is up."""
    asked = OffsetFetchRequestGroup(group_id=group, topics=None)
    with Peer(broker.port) as peer:
        answer = peer.ask(OffsetFetchRequest(groups=[asked], require_stable=True), 8, OffsetFetchResponse)
    (found,) = answer.groups
    return ErrorCode(found.error_code or found.topics[0].partitions[0].error_code)


def write(producer: Producer, numbers: range) -> dict[bytes, bytes]:
    """A transaction for each number, of which every third is aborted. The newest committed value of each key."""
    newest: dict[bytes, bytes] = {}
    for number in numbers:
        key, value = b"k%d" % (number % KEYS), b"%d" % number + b"." * 100
        producer.begin()
        producer.send_and_wait(TABLE.topic, value, key=key)
        if number % 3 == 2:
            producer.abort()
        else:
            producer.commit()
            newest[key] = value
    return newest


def test_what_was_committed_stays_and_what_was_aborted_goes(broker: InProcessBroker) -> None:
    with Producer(bootstrap_servers=broker.bootstrap, transactional_id="writer") as producer:
        newest = write(producer, range(TRANSACTIONS))
        until_cleaned(broker, TABLE)
        assert len(rows(broker, "read_uncommitted")) < TRANSACTIONS
        assert dict(rows(broker, "read_committed")) == newest
        broker.restart()
        assert dict(rows(broker, "read_committed")) == newest
        # Its epochs and sequences were not cleaned away, and neither was what its coordinator knows.
        until_cleaned(broker, TopicPartition(TRANSACTION_TOPIC, 0))
        newest |= write(producer, range(TRANSACTIONS, 2 * TRANSACTIONS))
        until_cleaned(broker, TABLE)
        broker.restart()
        assert dict(rows(broker, "read_committed")) == newest
        kept = rows(broker, "read_uncommitted")
    aborted = {b"%d" % number for number in range(2, TRANSACTIONS, 3)}
    assert not aborted & {value.rstrip(b".") for _, value in kept}


def test_positions_that_were_committed_stay_and_none_that_was_aborted_comes_back(broker: InProcessBroker) -> None:
    """And one that is pending is pending still: its transaction is the end of what is cleaned."""
    offsets = TopicPartition(OFFSETS_TOPIC, 0)
    # Its last transaction is to be open still when sixty others and a restart are done, however long they take.
    with Producer(
        bootstrap_servers=broker.bootstrap, transactional_id="writer", transaction_timeout_ms=900_000
    ) as producer:
        for number in range(TRANSACTIONS):
            producer.begin()
            producer.send_offsets({TABLE: number}, "readers")
            if number % 3 == 2:
                producer.abort()
            else:
                producer.commit()
        until_cleaned(broker, offsets)
        producer.begin()
        producer.send_offsets({TABLE: 1_000}, "readers")
        begun = bases(broker, offsets)[-1]
        with Producer(bootstrap_servers=broker.bootstrap, transactional_id="another") as another:
            for number in range(TRANSACTIONS):
                with another.transaction():
                    another.send_offsets({TABLE: number}, "others")
        assert bases(broker, offsets)[-1] > begun
        assert producer.detach() is not None  # or it would be aborted with its producer
    broker.restart()
    last = TRANSACTIONS - 2
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        # The coordinator is loaded once it has answered this.
        assert admin.list_group_offsets("readers")[TABLE].offset == last
        assert stable_offset(broker, "readers") == ErrorCode.UNSTABLE_OFFSET_COMMIT
        broker.inject("timeout", "writer")
        assert admin.list_group_offsets("readers", require_stable=True)[TABLE].offset == last
        assert admin.list_group_offsets("others", require_stable=True)[TABLE].offset == TRANSACTIONS - 1
