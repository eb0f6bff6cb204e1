"""The pairs' topic: what is recorded is read again, by whoever writes last, in spite of what others write late."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest

from ottla.client.admin.admin import Admin
from ottla.client.consuming.consumer import Consumer
from ottla.client.producing.producer import Producer
from ottla.mirror.faults import Overtaken, PairsWouldVanish
from ottla.mirror.journal import Journal, PartitionJournal
from ottla.mirror.pairs import OffsetPairs, Pair
from ottla.mirror.record_forms import PAGE_PAIRS_MAX, Page, PageKey
from ottla.model import TopicPartition
from tests.mirror.flows import Clusters, create, records_of

SOURCE, TARGET = b"s" * 16, b"t" * 16
PLACE = TopicPartition("orders", 3)
_names = (f"pairs-{number}.internal" for number in itertools.count())


@asynccontextmanager
async def opened(clusters: Clusters, topic: str) -> AsyncIterator[Journal]:
    settings = {"bootstrap.servers": clusters.target}
    async with (
        Consumer(settings, auto_offset_reset="earliest") as reader,
        Producer(settings, linger_ms=0) as producer,
        Admin(settings) as admin,
    ):
        journal = Journal(topic, reader, producer, admin, 1)
        await journal.prepare()
        yield journal


async def one(journal: Journal, place: TopicPartition = PLACE) -> PartitionJournal:
    return (await journal.read([place]))[place]


def many(count: int) -> OffsetPairs:
    return OffsetPairs(Pair(3 * number, number) for number in range(count))


async def test_pairs_of_several_pages_are_read_again(clusters: Clusters) -> None:
    topic = next(_names)
    async with opened(clusters, topic) as journal:
        written = await one(journal)
        assert written.recorded is None
        pairs = many(2 * PAGE_PAIRS_MAX + 5)
        await written.save(SOURCE, TARGET, pairs, 17, nonce=1)
        for number in range(len(pairs), len(pairs) + 2 * PAGE_PAIRS_MAX, 100):
            pairs.add(Pair(9 * number, number))
            await written.save(SOURCE, TARGET, pairs, number, nonce=1)
        other = await one(journal, TopicPartition("orders", 4))
        found = (await one(journal)).recorded
    assert other.recorded is None
    assert found is not None
    assert list(found.pairs) == list(pairs)
    assert (found.source_id, found.target_id) == (SOURCE, TARGET)
    assert found.reached == number


async def test_only_the_last_page_is_written_again(clusters: Clusters) -> None:
    topic = next(_names)
    async with opened(clusters, topic) as journal:
        written = await one(journal)
        pairs = many(3 * PAGE_PAIRS_MAX + 1)
        await written.save(SOURCE, TARGET, pairs, 0, nonce=1)
        before = len(await records_of(clusters.target, topic))
        pairs.add(Pair(10**6, 10**5))
        await written.save(SOURCE, TARGET, pairs, 0, nonce=1)
    assert len(await records_of(clusters.target, topic)) == before + 1


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
async def test_a_topic_that_would_lose_pairs_is_refused(clusters: Clusters, policy: str) -> None:
    """As a broker makes one that a client asks for, or a person who does not know what it is for."""
    topic = next(_names)
    await create(clusters.target, topic, cleanup_policy=policy)
    with pytest.raises(PairsWouldVanish, match=f"has cleanup.policy={policy}, .*: set it to compact"):
        async with opened(clusters, topic):
            pass


async def test_what_is_recorded_is_not_written_again(clusters: Clusters) -> None:
    """A copy to which nothing comes is noted every few seconds. One that was made again begins as the former did."""
    topic = next(_names)
    async with opened(clusters, topic) as journal:
        written = await one(journal)
        await written.save(SOURCE, TARGET, many(1), 0, nonce=1)
        before = len(await records_of(clusters.target, topic))
        for _ in range(3):
            await written.save(SOURCE, TARGET, many(1), 0, nonce=1)
        assert len(await records_of(clusters.target, topic)) == before
        await written.save(SOURCE, b"u" * 16, many(1), 0, nonce=1)
        found = (await one(journal)).recorded
    assert found is not None
    assert found.target_id == b"u" * 16


async def test_a_former_writer_that_wakes_changes_nothing(clusters: Clusters) -> None:
    topic = next(_names)
    async with opened(clusters, topic) as journal:
        former = await one(journal)
        pairs = many(4)
        await former.save(SOURCE, TARGET, pairs, 4, nonce=1)
        later = await one(journal)
        assert later.recorded is not None
        taken = OffsetPairs(later.recorded.pairs)
        taken.add(Pair(100, 50))
        await later.save(SOURCE, TARGET, taken, 51, nonce=2)
        await former.save(SOURCE, TARGET, pairs, 51, nonce=1)
        pairs.add(Pair(90, 50))
        with pytest.raises(Overtaken):
            await former.save(SOURCE, TARGET, pairs, 51, nonce=1)
        found = (await one(journal)).recorded
    assert found is not None
    assert list(found.pairs) == list(taken)


async def test_of_two_that_began_at_once_the_one_that_goes_on_counts(clusters: Clusters) -> None:
    """Two attempts at one task: both have read the same, and taken the same number."""
    topic = next(_names)
    async with opened(clusters, topic) as journal, opened(clusters, topic) as another:
        killed, goes_on = await one(journal), await one(another)
        await killed.save(SOURCE, TARGET, many(4), 4, nonce=9)
        pairs = many(PAGE_PAIRS_MAX + 4)
        await goes_on.save(SOURCE, TARGET, pairs, 4, nonce=1)
        with pytest.raises(Overtaken):
            await killed.save(SOURCE, TARGET, many(5), 5, nonce=9)
        pairs.add(Pair(10**6, 10**5))
        await goes_on.save(SOURCE, TARGET, pairs, 10**5, nonce=1)
        found = (await one(journal)).recorded
    assert found is not None
    assert list(found.pairs) == list(pairs)


async def test_pages_without_a_first_one_do_not_count(clusters: Clusters) -> None:
    """Whoever takes a partition over writes page 0 last: without it the writer did not come so far."""
    topic = next(_names)
    async with opened(clusters, topic) as journal:
        written = await one(journal)
        await written.save(SOURCE, TARGET, many(4), 4, nonce=1)
        key, value = [(record.key, record.value) for record in await records_of(clusters.target, topic)][-1]
        other = bytearray(key)
        other[-4:] = (1).to_bytes(4)  # the page
        other[-20:-12] = (9).to_bytes(8)  # the writer
        async with Producer(bootstrap_servers=clusters.target) as producer:
            await producer.send_and_wait(topic, value, bytes(other))
            await producer.send_and_wait(topic, b"what is this", b"no key")
        found = (await one(journal)).recorded
    assert found is not None
    assert len(found.pairs) == 4


async def test_a_plan_that_changes_is_written_anew(clusters: Clusters) -> None:
    topic = next(_names)
    async with opened(clusters, topic) as journal:
        written = await one(journal)
        pairs = many(PAGE_PAIRS_MAX + 10)
        await written.save(SOURCE, TARGET, pairs, 0, nonce=1)
        pairs.add(Pair(10**6, 5))
        await written.save(SOURCE, TARGET, pairs, 0, nonce=1)
        found = (await one(journal)).recorded
    assert found is not None
    assert list(found.pairs) == [*many(5), Pair(10**6, 5)]


class SlowTopic:
    """Takes its first records long after the next ones would come."""

    def __init__(self) -> None:
        self.pages: dict[PageKey, Page] = {}
        self._calls = 0

    async def read(self, places: list[TopicPartition]) -> dict[TopicPartition, PartitionJournal]:
        return {tp: PartitionJournal(self, tp, dict(self.pages)) for tp in places}  # type: ignore[arg-type]

    async def keys(self, _tp: TopicPartition, _offset: int) -> set[PageKey]:
        return set(self.pages)

    async def write(self, records: Iterable[tuple[PageKey, Page | None]]) -> int:
        self._calls += 1
        for _ in range(20 if self._calls == 1 else 1):
            await asyncio.sleep(0)
        for key, page in records:
            if page is None:
                self.pages.pop(key, None)
            else:
                self.pages[key] = page
        return 0


async def test_two_that_record_at_once_leave_the_newer() -> None:
    """A copy's pairs, and the note of how far it has come."""
    slow = SlowTopic()
    written = PartitionJournal(slow, PLACE, {})  # type: ignore[arg-type]  # of a journal it needs no more
    pairs = many(2 * PAGE_PAIRS_MAX)
    note = asyncio.ensure_future(written.save(SOURCE, TARGET, pairs, 1, nonce=1))
    await asyncio.sleep(0)
    pairs.add(Pair(5, 2))
    await asyncio.gather(note, written.save(SOURCE, TARGET, pairs, 2, nonce=1))
    found = PartitionJournal(slow, PLACE, slow.pages).recorded  # type: ignore[arg-type]
    assert found is not None
    assert list(found.pairs) == [Pair(0, 0), Pair(3, 1), Pair(5, 2)]


async def test_a_writer_learns_of_the_claim_of_a_later_one_before_it_goes_on(clusters: Clusters) -> None:
    """Also of one that has recorded nothing yet; and that one has read all that the former may go on by."""
    topic = next(_names)
    async with opened(clusters, topic) as journal, opened(clusters, topic) as another:
        former, later = await one(journal), await one(another)
        pairs = many(4)
        await former.save(SOURCE, TARGET, pairs, 4, nonce=1)
        pairs.add(Pair(90, 50))
        await former.save(SOURCE, TARGET, pairs, 50, nonce=1)
        await later.claim(nonce=2)
        assert later.recorded is not None
        assert list(later.recorded.pairs) == list(pairs)
        pairs.add(Pair(100, 51))
        with pytest.raises(Overtaken):
            await former.save(SOURCE, TARGET, pairs, 51, nonce=1)
        assert not former.is_mine
        with pytest.raises(Overtaken):
            await former.save(SOURCE, TARGET, pairs, 51, nonce=1)
        await former.claim(nonce=1)
        await former.save(SOURCE, TARGET, pairs, 51, nonce=1)
        with pytest.raises(Overtaken):
            await later.save(SOURCE, TARGET, later.recorded.pairs, 51, nonce=2)
        found = (await one(journal)).recorded
    assert found is not None
    assert list(found.pairs) == list(pairs)


async def test_of_two_that_claim_at_once_each_has_a_number_of_its_own(clusters: Clusters) -> None:
    topic = next(_names)
    async with opened(clusters, topic) as journal, opened(clusters, topic) as another:
        writers = [await one(journal), await one(another)]
        await asyncio.gather(*(writer.claim(nonce=number) for number, writer in enumerate(writers)))
        saved = await asyncio.gather(
            *(writer.save(SOURCE, TARGET, many(4 + n), 4, nonce=n) for n, writer in enumerate(writers)),
            return_exceptions=True,
        )
        found = (await one(journal)).recorded
    assert found is not None
    (last,) = [number for number, error in enumerate(saved) if error is None]
    assert len(found.pairs) == 4 + last
