"""The transaction coordinator of a broker: which of its shards is asked, and what is refused before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence

import pytest
from tests.groups.journal import MemoryJournal
from tests.groups.world import Answer
from tests.transactions.world import ID, A, Clock, World, ongoing, producer_of

from ottla.config.broker import Config
from ottla.coordinators.caller import Now
from ottla.coordinators.journal import EndMarker
from ottla.metadata.cache import MetadataCache
from ottla.metadata.updates import MetadataUpdate, PartitionState
from ottla.model import TRANSACTION_TOPIC, BrokerId, Epoch, ErrorCode, TopicId, TopicPartition
from ottla.protocol.generated.list_transactions import ListTransactionsRequest
from ottla.protocol.generated.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from ottla.steps import at_once
from ottla.storage.errors import CorruptLog
from ottla.transactions.asked import EndAsked, ProducerAnswer, ProducerInit, ProducerPartitions
from ottla.transactions.coordinator import TransactionCoordinator
from ottla.transactions.markers import RETRY_S, UNKNOWN_MS_MAX, Marked, MarkerWriter, TransactionEnd

NOW = Now(1_000, 1_000)
LOADING, NOT_COORDINATOR = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR


class Nobody:
    broker_id = BrokerId(1)

    def write_here(self, end: EndMarker, partitions: Sequence[TopicPartition], marked: Marked) -> None:
        raise AssertionError("nothing is ended")

    async def write(self, broker: BrokerId, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        raise AssertionError("nothing is ended")


class SlowJournal(MemoryJournal):
    """Is read when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.may_be_read = asyncio.Event()

    async def replay(self) -> AsyncIterator[bytes]:
        await self.may_be_read.wait()
        async for chunk in super().replay():
            yield chunk


def led_partition(tp: TopicPartition) -> PartitionState:
    broker = BrokerId(1)
    topic_id = TopicId(tp.topic.encode()[:16].ljust(16))
    return PartitionState(*tp, topic_id, Epoch(1), broker, Epoch(1), (broker,), (broker,), 0)


def new_coordinator(
    writer: MarkerWriter | None = None, metadata: MetadataCache | None = None, clock: Clock | None = None
) -> TransactionCoordinator:
    config = Config.parse({"transaction.state.log.num.partitions": "1"})

    def fresh(call: Callable[[int | ErrorCode], None]) -> None:
        call(1_000)

    metadata = metadata or MetadataCache()
    assert metadata.apply(MetadataUpdate(controller_epoch=Epoch(1), partitions=[led_partition(A)]))
    return TransactionCoordinator(lambda: config.transactions, metadata, clock or Clock(), fresh, writer or Nobody())


def init(coordinator: TransactionCoordinator, name: str = ID, timeout_ms: int = 60_000) -> ProducerAnswer:
    answer = Answer[ProducerAnswer]()
    coordinator.init_producer_id(NOW, ProducerInit(name, timeout_ms), answer)
    return answer.value


def errors(coordinator: TransactionCoordinator, name: str) -> set[ErrorCode]:
    """What each request about an id is answered."""
    asked = ProducerPartitions(name, 1_000, 0, frozenset((A,)))
    adds, ends = Answer[ErrorCode](), Answer[ProducerAnswer]()
    coordinator.add_partitions(NOW, asked, 0, adds)
    coordinator.end(NOW, EndAsked(name, 1_000, 0, True, 0), ends)
    described = ErrorCode(at_once(coordinator.describing(name)).error_code)
    return {init(coordinator, name).error, adds.value, ends.value.error, described} | set(
        coordinator.verify_partitions(asked).values()
    )


def test_a_partition_that_is_led_elsewhere_is_loaded_or_was_found_uncommitted() -> None:
    async def scene() -> None:
        coordinator, journal = new_coordinator(), SlowJournal()
        assert errors(coordinator, ID) == {NOT_COORDINATOR}
        coordinator.led.elected(0, journal)
        assert errors(coordinator, ID) == {LOADING}
        assert at_once(coordinator.list_transactions(ListTransactionsRequest(), 0)).error_code == LOADING
        journal.hold_what_is_found()
        journal.may_be_read.set()
        while coordinator.led.some_are_loaded:  # noqa: ASYNC110 - turns of the loop, and no time
            await asyncio.sleep(0)
        assert errors(coordinator, ID) == {LOADING}
        assert at_once(coordinator.list_transactions(ListTransactionsRequest(), 0)).error_code == LOADING
        journal.commit()
        assert producer_of(init(coordinator)) == (1_000, 0)
        assert errors(coordinator, "") == {ErrorCode.INVALID_REQUEST}
        (listed,) = at_once(coordinator.list_transactions(ListTransactionsRequest(), 0)).transaction_states
        assert (listed.transactional_id, listed.transaction_state) == (ID, "Empty")
        coordinator.led.resigned(0)
        assert errors(coordinator, ID) == {NOT_COORDINATOR}
        await coordinator.close()

    asyncio.run(asyncio.wait_for(scene(), 60))


def test_a_broker_that_has_yet_to_hear_of_topics_takes_none_for_gone() -> None:
    """Roles come first at a start: whoever is to announce the rest may die in between."""

    async def scene() -> None:
        metadata, clock = MetadataCache(), Clock()
        coordinator = new_coordinator(metadata=metadata, clock=clock)
        ended: list[Now] = []
        end = TransactionEnd(1_000, 1, 0, True, 2, frozenset({TopicPartition("unheard of", 0)}))
        coordinator.markers.send(0, end, ended.append)
        for _ in range(2):
            clock.ms += 2 * UNKNOWN_MS_MAX
            await asyncio.sleep(1.5 * RETRY_S)
        assert ended == []
        partition = led_partition(TopicPartition(TRANSACTION_TOPIC, 0))
        assert metadata.apply(MetadataUpdate(controller_epoch=Epoch(1), partitions=[partition]))
        await asyncio.sleep(1.5 * RETRY_S)
        clock.ms += UNKNOWN_MS_MAX
        while not ended:  # noqa: ASYNC110 - the pause between two tries, and nothing else
            await asyncio.sleep(RETRY_S / 10)
        await coordinator.close()

    asyncio.run(asyncio.wait_for(scene(), 60))


class DamagedJournal(MemoryJournal):
    """Can be read to its end but for the last batch; or, while nothing says so, not beyond."""

    def __init__(self) -> None:
        super().__init__()
        self.damage = asyncio.get_running_loop().create_future()

    async def replay(self) -> AsyncIterator[bytes]:
        async for chunk in super().replay():
            yield chunk
        await self.damage
        raise CorruptLog(TopicPartition(TRANSACTION_TOPIC, 0), "/data", 0, "a test")


@pytest.mark.parametrize("is_resigned", [False, True])
def test_what_a_load_in_vain_has_found_is_not_counted(is_resigned: bool) -> None:
    """It would be once more with each try, until no id is taken any more."""
    world = World()
    ongoing(world)

    async def scene() -> None:
        coordinator, journal = new_coordinator(), DamagedJournal()
        journal.batches = world.journal.batches
        counts = coordinator.counts
        coordinator.led.elected(0, journal)
        while not counts.partitions:  # noqa: ASYNC110 - turns of the loop, and no time
            await asyncio.sleep(0)
        assert (counts.ids, counts.ongoing) == (1, 1)
        if is_resigned:
            coordinator.led.resigned(0)
        else:
            journal.damage.set_result(None)
        while counts.ids:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert (counts.id_bytes, counts.partitions, counts.ongoing) == (0, 0, 0)
        assert init(coordinator).error is NOT_COORDINATOR
        await coordinator.close()

    asyncio.run(asyncio.wait_for(scene(), 60))


class Writer(Nobody):
    """Writes markers when the test says so, to partitions that all lie here."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def write_here(self, end: EndMarker, partitions: Sequence[TopicPartition], marked: Marked) -> None:
        self.waiting.append(lambda: marked([ErrorCode.NONE for _ in partitions]))


@pytest.mark.parametrize("is_given_up", [False, True])
def test_partitions_of_the_next_transaction_wait_for_the_markers_of_the_last_one(is_given_up: bool) -> None:
    async def scene() -> None:
        writer = Writer()
        coordinator = new_coordinator(writer)
        coordinator.led.elected(0, MemoryJournal())
        while coordinator.led.some_are_loaded:  # noqa: ASYNC110 - turns of the loop, and no time
            await asyncio.sleep(0)
        asked = ProducerPartitions(ID, *producer_of(init(coordinator)), frozenset((A,)))
        begins, ends, waits = Answer[ErrorCode](), Answer[ProducerAnswer](), Answer[ErrorCode]()
        coordinator.add_partitions_when_at_rest(NOW, asked, begins)
        coordinator.end(NOW, EndAsked(ID, asked.producer_id, asked.producer_epoch, True, 0), ends)
        assert (begins.value, ends.value.error) == (ErrorCode.NONE, ErrorCode.NONE)
        at_once_answered = Answer[ErrorCode]()
        coordinator.add_partitions(NOW, asked, 2, at_once_answered)
        assert at_once_answered.value is ErrorCode.CONCURRENT_TRANSACTIONS
        coordinator.add_partitions_when_at_rest(NOW, asked, waits)
        assert not waits.came
        if is_given_up:
            coordinator.led.resigned(0)
            assert waits.value is NOT_COORDINATOR
        else:
            for write in writer.waiting:
                write()
            assert waits.value is ErrorCode.NONE
        await coordinator.close()

    asyncio.run(asyncio.wait_for(scene(), 60))


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_time_outs_over_the_limit_are_refused_by_every_broker(timeout_ms: int) -> None:
    assert init(new_coordinator(), timeout_ms=timeout_ms).error is ErrorCode.INVALID_TRANSACTION_TIMEOUT
    assert init(new_coordinator(), "", timeout_ms).error is ErrorCode.INVALID_REQUEST
