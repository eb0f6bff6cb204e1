"""Moving a replica that the cleaner was in: no deleted key comes back."""

from __future__ import annotations

from tests.storage.at_once import finish_move, start_move
from tests.storage.cleaner.cleaning import COMPACTED, Cleaner, newest, put_keyed, records_of
from tests.storage.directory_world import NOW, TOPIC_ID, TP, A, B, World, copy_all
from tests.storage.log_world import World as LogWorld

from ottla.config.log import LogConfig
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.log.log import Log

LATER_MS = 2 * COMPACTED.delete_retention_ms


class CompactedWorld(World):
    def _config(self, topic: str) -> LogConfig:
        del topic
        return COMPACTED

    def clean(self, log: Log, now_ms: int) -> None:
        cleaner = Cleaner(LogWorld(self.disk))
        cleaner.now_ms = now_ms
        cleaner.clean(log)
        cleaner.remove()


def filled(world: CompactedWorld) -> LogDirectories:
    """With a key whose record the first half has, and its tombstone the second."""
    directories = world.open()
    log = directories.create(TP, TOPIC_ID, COMPACTED, now_ms=NOW)
    put_keyed(log, (b"gone", b"v"))
    put_others(log, 20)
    move = start_move(directories, TP, B, COMPACTED, now_ms=NOW)
    assert move is not None
    while move.log.end_offset < 20:
        move.copy_step(600)
    put_keyed(log, (b"gone", None))
    put_others(log, 40)
    return directories


def put_others(log: Log, count: int) -> None:
    for number in range(count):
        put_keyed(log, (b"k%d" % (number % 3), b"v%d" % number))


def check_deleted(world: CompactedWorld, log: Log) -> None:
    """Once tombstones may go, which the first pass that meets one decides."""
    for now_ms in (NOW, NOW + LATER_MS, NOW + 2 * LATER_MS):
        put_others(log, 40)
        world.clean(log, now_ms)
    left = records_of(log)
    assert b"gone" not in newest(left)
    assert (b"gone", None) not in {(each.key, each.value) for each in left}
    assert set(newest(left)) == {b"k0", b"k1", b"k2"}


def test_what_was_copied_before_a_pass_is_dirty_yet() -> None:
    world = CompactedWorld()
    directories = filled(world)
    source = directories.get(TP)
    assert source is not None
    world.clean(source, NOW)
    copy_all(directories)
    log, _ = finish_move(directories, TP, COMPACTED, now_ms=NOW)
    assert (log.cleaned_to, source.cleaned_to > 20) == (0, True)
    check_deleted(world, log)


def test_a_copy_of_an_earlier_life_is_dirty() -> None:
    """Its directory may have been away for a while, in which the original was cleaned."""
    world = CompactedWorld()
    filled(world).close({TP: 61})
    world.paths = (A,)
    alone = world.open()
    source = alone.get(TP)
    assert source is not None
    world.clean(source, NOW)
    alone.close({TP: 61})
    world.paths = (A, B)
    directories = world.open()
    assert 20 <= directories.moves[TP].log.end_offset < 61
    copy_all(directories)
    log, _ = finish_move(directories, TP, COMPACTED, now_ms=NOW)
    check_deleted(world, log)


def test_what_is_copied_of_a_cleaned_log_is_clean() -> None:
    world = CompactedWorld()
    directories = world.open()
    source = directories.create(TP, TOPIC_ID, COMPACTED, now_ms=NOW)
    put_others(source, 40)
    world.clean(source, NOW)
    assert start_move(directories, TP, B, COMPACTED, now_ms=NOW) is not None
    copy_all(directories)
    log, _ = finish_move(directories, TP, COMPACTED, now_ms=NOW)
    assert log.cleaned_to == source.cleaned_to > 0


def test_a_copy_that_begins_again_is_as_clean_as_its_original_is_by_then() -> None:
    world = CompactedWorld()
    directories = filled(world)
    source = directories.get(TP)
    assert source is not None
    world.clean(source, NOW)
    directories.moves[TP].start_over()
    copy_all(directories)
    log, _ = finish_move(directories, TP, COMPACTED, now_ms=NOW)
    assert log.cleaned_to == source.cleaned_to > 20
    check_deleted(world, log)
