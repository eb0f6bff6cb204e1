"""A coordinator takes a partition over: from its log alone it knows all that was safe."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.groups.journal import MemoryJournal
from tests.groups.world import GROUP, SESSION_MS, TOPIC, TestClock, World, commit_error

from ottla import logs
from ottla.coordinators.loading import WORK_AT_ONCE_MAX, load
from ottla.groups.records.group_records import group_key
from ottla.model import ErrorCode
from ottla.protocol.hot.offset_records import offset_key, offset_value


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    written: list[str] = []
    output = logs.LogOutput(sink=written.append)
    monkeypatch.setattr("ottla.groups.shard.log_event", logs.Logger("groups", output))
    monkeypatch.setattr("ottla.coordinators.loading.log_event", logs.Logger("groups", output))
    return written


def key(partition: int = 0, topic: str = TOPIC) -> bytes:
    return offset_key(GROUP, topic, partition)


def value(offset: int) -> bytes:
    return offset_value(offset, -1, "", 1_700_000_000_000, -1, bytes(16))


def test_a_stable_group_goes_on(world: World) -> None:
    generation, (first, second) = world.stable(2)
    world.commit(5, member_id=first, generation=generation)
    world.restart()
    assert world.group().state_name == "Stable"
    assert world.heartbeat(first, generation) is ErrorCode.NONE
    assert world.sync(second, generation).value.assignment == second.encode()
    assert commit_error(world.commit(6, member_id=second, generation=generation)) is ErrorCode.NONE
    assert world.committed() == 6
    assert world.group().leader_id == first


def test_sessions_begin_anew(world: World) -> None:
    generation, (first, second) = world.stable(2)
    world.advance(SESSION_MS - 1)
    world.restart()
    world.advance(SESSION_MS - 1)
    assert world.heartbeat(first, generation) is ErrorCode.NONE
    world.advance(1)
    assert list(world.group().members) == [first]
    assert second not in world.group().members


def test_a_group_that_is_larger_than_it_may_be_rebalances(world: World) -> None:
    generation, ids = world.stable(3)
    world.settings = world.settings._replace(size_max=2)
    world.restart()
    assert world.heartbeat(ids[0], generation) is ErrorCode.REBALANCE_IN_PROGRESS
    answers = [world.join(member_id) for member_id in ids]
    assert answers[2].error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert answers[0].value.generation_id == generation + 1


def test_records_of_a_compacted_log(world: World) -> None:
    """Of each key the last record is left, and tombstones for a while: in any number, at any offset."""
    world.journal.next_offset = 1_000
    world.journal.add((key(1), None), (key(0), value(5)))
    world.journal.next_offset = 5_000
    world.journal.add((group_key("gone"), None))
    world.load()
    assert (world.committed(0), world.committed(1)) == (5, -1)
    assert list(world.shard.groups) == [GROUP]


def test_old_keys_and_values(world: World) -> None:
    old = b"\0\0" + (7).to_bytes(8, "big") + b"\0\4note" + (9).to_bytes(8, "big")
    world.journal.add((b"\0\0" + key()[2:], old))
    world.load()
    (topic,) = world.fetch().value.topics
    assert (topic.partitions[0].committed_offset, topic.partitions[0].metadata) == (7, "note")


def test_what_cannot_be_read_is_named_and_passed_over(world: World, lines: list[str]) -> None:
    world.journal.add(
        (b"\0\x09share", b"whatever"),
        (b"\0\x0fstreams", b""),
        (b"\0\x63", b""),
        (b"\xff\xff", b""),
        (b"\0", b""),
        (b"", b""),
        (None, b"keyless"),
        (b"\0\1\0\x09", value(1)),
        (key(7), b"\0\4short"),
        (key(8), b"\0\x63" + value(1)[2:]),
        (group_key("bad"), b"\0\3junk"),
        (b"\0\3\0", b""),
        (key(0), value(5)),
    )
    world.load()
    assert world.committed() == 5
    assert list(world.shard.groups) == [GROUP]
    said = "".join(lines)
    for offset, key_type in ((0, "9"), (1, "15"), (2, "99"), (3, "65535"), (4, "none"), (7, "1"), (10, "2"), (11, "3")):
        assert f"offset={offset} key_type={key_type} " in said


def test_a_damaged_batch_is_passed_over(world: World, lines: list[str]) -> None:
    world.journal.add((key(0), value(1)))
    world.journal.add((key(0), value(2)))
    world.journal.add((key(1), value(3)))
    damaged = bytearray(world.journal.batches[1])
    damaged[-3] ^= 1
    world.journal.batches[1] = bytes(damaged)
    world.load()
    assert (world.committed(0), world.committed(1)) == (1, 3)
    assert "batch of __consumer_offsets was skipped" in lines[0]
    assert "offset=1 " in lines[0]


def test_any_damage_is_survived(world: World, lines: list[str]) -> None:
    for number in range(4):
        world.journal.add((key(number), value(number)), (group_key(f"g{number}"), None))
    whole = b"".join(world.journal.batches)
    for at in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        world.journal.batches = [bytes(damaged)]
        world.load()


def test_offsets_of_a_transaction(world: World) -> None:
    world.journal.add((key(0), value(1)), (key(1), value(1)))
    world.journal.add((key(0), value(10)), producer_id=7)
    world.journal.add((key(1), value(11)), producer_id=8)
    world.journal.add((key(2), value(12)), producer_id=9)
    world.journal.mark(7, committed=True)
    world.journal.mark(8, committed=False)
    world.load()
    (topic,) = world.fetch({TOPIC: [0, 1, 2]}, stable=True).value.topics
    found = [(entry.committed_offset, ErrorCode(entry.error_code)) for entry in topic.partitions]
    assert found == [(10, ErrorCode.NONE), (1, ErrorCode.NONE), (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)]
    world.shard.end_transaction(9, committed=True)
    assert world.committed(2) == 12


def test_a_group_that_only_a_transaction_knows(world: World) -> None:
    world.journal.add((key(0), value(10)), producer_id=7)
    world.load()
    assert list(world.shard.groups) == [GROUP]
    assert world.committed() == -1


def test_others_have_their_turn(world: World) -> None:
    for number in range(10):
        world.journal.add(*((key(number * 1_000 + other), value(1)) for other in range(500)))
    turns = 0

    async def main() -> None:
        nonlocal turns
        done = False

        async def other() -> None:
            nonlocal turns
            while not done:
                turns += 1
                await asyncio.sleep(0)

        watching = asyncio.get_running_loop().create_task(other())
        found = await load(world.journal, world._new_shard(), TestClock(world))
        done = True
        await watching
        assert found == 5_000

    asyncio.run(main())
    assert turns >= 5_000 // WORK_AT_ONCE_MAX


class DamagedJournal(MemoryJournal):
    async def replay(self) -> AsyncIterator[bytes]:
        async for chunk in super().replay():
            yield chunk
        raise OSError("the rest cannot be read")


def test_what_a_load_in_vain_has_found_can_be_given_up(world: World) -> None:
    generation, (first, _) = world.stable(2)
    world.commit(5, member_id=first, generation=generation)
    journal, shard = DamagedJournal(), world._new_shard()
    journal.batches = world.journal.batches
    with pytest.raises(OSError, match="the rest"):
        asyncio.run(load(journal, shard, TestClock(world)))
    assert dict(shard.held()) == {"groups": 1, "offsets": 1}
    shard.unload(ErrorCode.NOT_COORDINATOR, world.now)
    assert dict(shard.held()) == {"groups": 0, "offsets": 0}


def test_what_a_load_has_found_is_shown_when_it_is_committed(world: World) -> None:
    """A new leader may find what no other replica has, and what is gone with it."""
    world.commit(5)
    world.journal.hold_what_is_found()
    world.restart()
    answer = world.fetch({TOPIC: [0]})
    assert not answer.came
    world.journal.commit()
    assert answer.value.topics[0].partitions[0].committed_offset == 5
