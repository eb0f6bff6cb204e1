"""Followers fetch from real leaders over real frames, in a virtual world; a test gives the roles."""

from __future__ import annotations

import asyncio

import pytest
from tests.replication.fetching.fetching_world import TP, FetchingWorld, in_world, run_in_world

from ottla.model import ErrorCode, TopicPartition
from ottla.records.batch import iterate

BUFFERED = {"log.flush.interval.messages": "9223372036854775807"}


def epochs_of(data: bytes) -> list[tuple[int, int]]:
    """Leader epoch and first offset of each batch."""
    return [(header.leader_epoch, header.base_offset) for _, header in iterate(data, 0, len(data))]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("properties", [BUFFERED, None], ids=["buffered", "flushed"])
def test_followers_get_what_the_leader_has_byte_for_byte(seed: int, properties: dict[str, str] | None) -> None:
    async def scenario(world: FetchingWorld) -> None:
        world.simulation.world.fabric.latency(0, 3)
        world.simulation.world.fabric.chop = True
        await world.lead_one(1, epoch=1)
        for number in range(20):
            assert await world.produce(b"%d" % number) == number
        await world.produce(*(b"x" * 1000 for _ in range(200)))
        await world.settled()
        assert world.values(2)[:20] == [b"%d" % number for number in range(20)]
        assert world.logs() == {world.bytes_of(1, TP)}
        assert world.high_watermarks() == {1: 220, 2: 220, 3: 220}

    run_in_world(scenario, seed=seed, properties=properties)


@in_world(properties=BUFFERED)
async def test_many_partitions_of_some_topics_and_leaders(world: FetchingWorld) -> None:
    partitions = [TopicPartition(topic, number) for topic in ("a", "b", "c") for number in range(7)]
    leaders = {tp: 1 + place % 3 for place, tp in enumerate(partitions)}
    await world.give([world.state(tp, leader, 1, (1, 2, 3)) for tp, leader in leaders.items()])
    for tp in partitions:
        await world.produce(*(b"%s" % tp.topic.encode() for _ in range(1 + tp.partition)), tp=tp)
    for tp in partitions:
        await world.settled(tp)
        assert world.logs(tp) == {world.bytes_of(leaders[tp], tp)}
        assert world.values(1, tp) == [tp.topic.encode()] * (1 + tp.partition)


@in_world()
async def test_a_follower_that_was_away_catches_up(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    await world.produce(b"before")
    world.kill(3)
    await world.lead_one(1, epoch=2, isr=(1, 2))
    for number in range(30):
        await world.produce(b"%d" % number)
    await world.start(3)
    await world.settled()
    assert world.logs() == {world.bytes_of(1, TP)}
    assert world.ends() == {1: 31, 2: 31, 3: 31}


@in_world()
async def test_a_new_leader_is_followed_from_where_the_old_one_ended(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    await world.produce(b"a", b"b")
    world.kill(1)
    await world.lead_one(2, epoch=2, isr=(2, 3))
    assert await world.produce(b"c") == 2
    await world.start(1)
    await world.settled()
    assert world.values(1) == [b"a", b"b", b"c"]
    assert epochs_of(world.bytes_of(1, TP)) == [(1, 0), (2, 2)]
    assert len(world.logs()) == 1


@in_world()
async def test_what_only_a_former_leader_had_is_cut(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    await world.produce(b"a", b"b")
    await world.settled()
    for other in (2, 3):
        world.kill(other)
    for number in range(3):
        assert await world.try_produce(b"only-%d" % number, to=1, acks=1) == (ErrorCode.NONE, 2 + number)
    world.kill(1)
    await world.start(2, 3)
    await world.lead_one(2, epoch=2, isr=(2, 3))
    assert await world.produce(b"c") == 2
    await world.start(1)
    await world.settled()
    assert world.values(1) == [b"a", b"b", b"c"]
    assert len(world.logs()) == 1
    assert len(world.said("was cut to what its leader has", "from=5 to=2")) == 1


@in_world()
async def test_logs_that_parted_in_several_leader_epochs_become_one(world: FetchingWorld) -> None:
    """KIP-279: one answer says the last leader epoch up to ours that the leader knows, and the log may have parted
    before that."""
    await world.lead_one(1, epoch=1)
    await world.produce(b"common")
    await world.settled()
    for each in (1, 2, 3):
        world.kill(each)
    for epoch in range(2, 8):
        leader = 1 if epoch % 2 == 0 else 2
        await world.start(leader)
        await world.lead_one(leader, epoch=epoch, isr=(leader,))
        values = [b"%d in %d" % (leader, epoch)] * (1 + epoch % 2)
        assert (await world.try_produce(*values, to=leader, acks=1))[0] == ErrorCode.NONE
        world.kill(leader)
    await world.start(1, 2, 3)
    await world.lead_one(2, epoch=8, isr=(2,))
    await world.settled()
    assert world.values(1) == [b"common", *(b"2 in %d" % epoch for epoch in (3, 3, 5, 5, 7, 7))]
    assert len(world.logs()) == 1


@in_world()
async def test_a_former_leader_that_wrote_nothing_is_a_follower_at_once(world: FetchingWorld) -> None:
    """Its own leader epoch, in which nothing was written, no other leader need know."""
    await world.lead_one(1, epoch=1)
    await world.produce(b"a")
    await world.settled()
    await world.lead_one(2, epoch=2, isr=(1, 2, 3))
    await world.lead_one(3, epoch=3, isr=(1, 2, 3))
    began = world.loop.time()
    assert await world.produce(b"b") == 1
    assert world.loop.time() - began < 0.3
    await world.settled()
    assert epochs_of(world.bytes_of(2, TP)) == [(1, 0), (3, 1)]
    assert not world.said("was cut")


# Times: who waits for what


@in_world(properties=BUFFERED)
async def test_a_partition_that_comes_does_not_wait_behind_a_fetch_that_its_leader_keeps(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    await world.produce(b"a")
    await asyncio.sleep(2.05)  # fetches are kept for half a second each
    other = TopicPartition("other", 0)
    await world.lead(other, 1, epoch=1, isr=(1, 2, 3))
    began = world.loop.time()
    await world.produce(b"x", tp=other)
    assert world.loop.time() - began < 0.1
    await asyncio.sleep(1)
    await world.produce(b"b")
    await world.settled()
    await world.settled(other)


@in_world(properties=BUFFERED)
async def test_a_follower_that_hears_of_a_new_leader_first_asks_again_soon(world: FetchingWorld) -> None:
    """The pause behind an error of a leader epoch is that of the news, and not replica.fetch.backoff.ms."""
    await world.lead_one(1, epoch=1)
    await world.produce(b"a")
    await world.settled()
    state = world.state(TP, 2, 2, (1, 2, 3))
    await world.give([state], to=(1, 3))
    await asyncio.sleep(1.0)  # answers are NOT_LEADER_OR_FOLLOWER
    await world.give([state], to=(2,))
    began = world.loop.time()
    await world.produce(b"b")
    assert world.loop.time() - began < 0.1
    await world.settled()


@in_world(properties=BUFFERED)
async def test_a_leader_that_hears_of_its_next_leader_epoch_first_is_fetched_from_soon(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    await world.produce(b"a")
    await world.settled()
    state = world.state(TP, 1, 2, (1, 2, 3))
    await world.give([state], to=(1,))
    waits = asyncio.ensure_future(world.produce(b"b"))
    await asyncio.sleep(0.7)  # answers are FENCED_LEADER_EPOCH
    assert not waits.done()
    await world.give([state], to=(2, 3))
    began = world.loop.time()
    await waits
    assert world.loop.time() - began < 0.1


@in_world(properties=BUFFERED)
async def test_a_topic_that_its_leader_hears_of_later_is_replicated_soon(world: FetchingWorld) -> None:
    state = world.state(TP, 1, 1, (1, 2, 3))
    await world.give([state], to=(2, 3))
    await asyncio.sleep(0.2)
    await world.give([state], to=(1,))
    began = world.loop.time()
    await world.produce(b"a")
    assert world.loop.time() - began < 0.5


@in_world(properties=BUFFERED)
async def test_a_partition_in_error_does_not_hold_up_the_others(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    unknown = TopicPartition("unknown", 0)
    await world.give([world.state(unknown, 1, 1, (1, 2, 3))], to=(2, 3))
    for number in range(20):
        began = world.loop.time()
        await world.produce(b"%d" % number)
        assert world.loop.time() - began < 0.1
        await asyncio.sleep(0.1)


@in_world()
async def test_where_the_topic_is_flushed_a_follower_vouches_for_its_disk(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    await world.produce(b"a")
    await world.settled()
    for each in (2, 3):
        world.brokers[each].ports.workers.latency_ms = (100.0, 100.0)
    began = world.loop.time()
    await world.produce(b"b")
    assert 0.099 < world.loop.time() - began < 0.2


@in_world()
async def test_a_slow_disk_of_one_topic_does_not_hold_up_another(world: FetchingWorld) -> None:
    buffered = TopicPartition("buffered", 0)
    world.configs["buffered"] = {"flush.messages": "1000000"}
    await world.lead_one(1, epoch=1)
    await world.lead(buffered, 1, epoch=1, isr=(1, 2, 3))
    await world.produce(b"a")
    await world.produce(b"a", tp=buffered)
    for each in (2, 3):
        world.brokers[each].ports.workers.latency_ms = (2_000.0, 2_000.0)
    slow = asyncio.ensure_future(world.try_produce(b"b", to=1, acks=1))
    await asyncio.sleep(0.05)
    for number in range(10):
        began = world.loop.time()
        await world.produce(b"%d" % number, tp=buffered)
        assert world.loop.time() - began < 0.1
    await slow
    await world.settled()


# Fetchers


@in_world(properties={**BUFFERED, "num.replica.fetchers": "3"})
async def test_partitions_are_spread_over_the_fetchers_of_a_leader(world: FetchingWorld) -> None:
    partitions = [TopicPartition("t", number) for number in range(9)]
    await world.give([world.state(tp, 1, 1, (1, 2, 3)) for tp in partitions])
    for tp in partitions:
        await world.produce(b"a", tp=tp)
        await world.settled(tp)
    fetchers = world.fetchers(2)
    assert fetchers.fetchers == 3
    assert {(f.leader, f.number) for f, _ in fetchers.partitions()} == {(1, 0), (1, 1), (1, 2)}
    assert len(list(fetchers.partitions())) == 9


@in_world(properties=BUFFERED)
async def test_another_number_of_fetchers_while_it_runs(world: FetchingWorld) -> None:
    partitions = [TopicPartition("t", number) for number in range(9)]
    await world.give([world.state(tp, 1, 1, (1, 2, 3)) for tp in partitions])
    for wanted in (2, 4, 1):
        for tp in partitions:
            await world.produce(b"a", tp=tp)
        world.reconfigure(2, {"num.replica.fetchers": str(wanted)})
        for tp in partitions:
            await world.produce(b"b", tp=tp)
            await world.settled(tp)
            assert len(world.logs(tp)) == 1
        await asyncio.sleep(5)
        assert world.fetchers(2).fetchers == wanted


@in_world(properties=BUFFERED)
async def test_a_fetcher_without_partitions_ends_and_its_connections_with_it(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    await world.produce(b"a")
    assert world.fetchers(2).fetchers == 1
    await world.lead_one(2, epoch=2, isr=(1, 2, 3))
    await asyncio.sleep(5)
    assert world.fetchers(2).fetchers == 0
    assert world.fetchers(1).fetchers == 1
    life = world.brokers[1].broker
    assert life is not None
    assert life.connection_count <= 1  # the client's


@in_world(properties=BUFFERED)
async def test_nothing_is_fetched_while_there_is_no_leader(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    await world.produce(b"a")
    await world.settled()
    world.kill(1)
    await world.lead_one(-1, epoch=2, isr=(1,))
    assert not list(world.fetchers(2).partitions())
    await world.start(1)
    await world.lead_one(1, epoch=3, isr=(1,))
    await world.settled()


@in_world(properties=BUFFERED)
async def test_where_nothing_changes_a_fetch_is_a_constant(world: FetchingWorld) -> None:
    """A thousand partitions: each fetch names none, and each answer has none."""
    partitions = [TopicPartition("t", number) for number in range(200)]
    await world.give([world.state(tp, 1, 1, (1, 2, 3)) for tp in partitions])
    await world.produce(b"a", tp=partitions[0])
    await asyncio.sleep(2)
    sent: list[int] = []
    fetcher = next(iter(world.fetchers(2).partitions()))[0]
    connection = fetcher._link.connection
    assert connection is not None
    send = connection.send_frame

    def noted(frame: bytearray, *arguments: object) -> None:
        sent.append(len(frame))
        send(frame, *arguments)  # type: ignore[arg-type]

    connection.send_frame = noted  # type: ignore[method-assign, assignment]
    await asyncio.sleep(10)
    assert 15 < len(sent) < 25
    assert set(sent) == {sent[0]}
    assert sent[0] < 100


@in_world(properties=BUFFERED)
async def test_the_leaders_log_start_is_followed(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    for number in range(10):
        await world.produce(b"%d" % number)
    await world.settled()
    world.log(1, TP).advance_start(4)
    await world.produce(b"more")
    await world.settled()
    assert [world.log(each, TP).start_offset for each in (1, 2, 3)] == [4, 4, 4]


@in_world(properties=BUFFERED)
async def test_high_watermarks_follow_without_records(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    await world.produce(b"a")
    began = world.loop.time()
    await world.settled()
    assert world.loop.time() - began < 1.0
    assert world.high_watermarks() == {1: 1, 2: 1, 3: 1}


@in_world()
async def test_a_topic_that_is_no_longer_flushed_before_the_answer_waits_for_no_disk(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    await world.produce(b"a")
    for each in (1, 2, 3):
        world.brokers[each].ports.workers.latency_ms = (5_000.0, 5_000.0)
    waits = asyncio.ensure_future(world.produce(b"b"))
    await asyncio.sleep(0.1)
    for each in (1, 2, 3):
        log = world.log(each, TP)
        log.reconfigure(log.config._replace(flush_messages=1_000_000))
    await world.until(lambda: world.high_watermarks()[1] == 2 or world.loop.time() > 4)
    assert world.loop.time() < 1.5
    await asyncio.wait([waits])
