"""What a power cut may leave of a disk, faults on demand, and that neither is more or less than the contract says."""

from __future__ import annotations

import errno
from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest

from ottla.ports.disk import File
from ottla.ports.memory import SimulatedCrash
from ottla.ports.memory.clock import Timeline, VirtualClock
from ottla.ports.memory.disk import MemoryDisk
from ottla.ports.memory.inode import PAGE_BYTES, SECTOR_BYTES

SEEDS = range(200)
STALE = r"[Ss]tale"


def new_disk(capacity_bytes: int = 1 << 40) -> MemoryDisk:
    disk = MemoryDisk(VirtualClock(Timeline()), capacity_bytes=capacity_bytes)
    disk.make_directory("/data")
    disk.sync_directory("/")
    return disk


def certain_file(disk: MemoryDisk, path: str = "/data/log", content: bytes = b"") -> File:
    file = disk.open(path, create=True)
    file.append([content])
    file.sync()
    disk.sync_directory("/data")
    return file


def outcomes(prepare: Callable[[MemoryDisk], object], path: str = "/data/log") -> list[bytes | None]:
    """What the file holds after a crash, over many seeds; None where it is gone."""
    found: list[bytes | None] = []
    for seed in SEEDS:
        disk = new_disk()
        prepare(disk)
        disk.crash(Random(seed))
        found.append(disk.read_file(path) if disk.exists(path) else None)
    return found


# Contents


def test_synced_bytes_survive_every_crash() -> None:
    assert set(outcomes(lambda disk: certain_file(disk, content=b"certain"))) == {b"certain"}


def test_unsynced_append_is_kept_lost_or_torn_but_never_hurts_what_was_synced() -> None:
    def prepare(disk: MemoryDisk) -> None:
        certain_file(disk, content=b"c" * 1000).append([b"u" * 3000])

    found = outcomes(prepare)
    assert all(content is not None and content[:1000] == b"c" * 1000 for content in found)
    assert b"c" * 1000 in found
    assert b"c" * 1000 + b"u" * 3000 in found
    # Torn within the page: new in front, zeros behind, at a sector's edge.
    torn = [content for content in found if content and b"u\0" in content]
    assert torn
    assert all(content.index(b"u\0") % SECTOR_BYTES == SECTOR_BYTES - 1 for content in torn)
    # And a size between.
    assert any(content and 1000 < len(content) < 4000 for content in found)


def test_later_pages_may_survive_while_earlier_ones_are_lost() -> None:
    def prepare(disk: MemoryDisk) -> None:
        certain_file(disk).append([b"u" * (8 * PAGE_BYTES)])

    pages = [
        [content[start : start + PAGE_BYTES].count(b"u") for start in range(0, 8 * PAGE_BYTES, PAGE_BYTES)]
        for content in outcomes(prepare)
        if content is not None and len(content) == 8 * PAGE_BYTES
    ]
    assert any(first == 0 and last == PAGE_BYTES for first, *_, last in pages)
    assert any(first == PAGE_BYTES and last == 0 for first, *_, last in pages)
    assert any(all(page == PAGE_BYTES for page in each) for each in pages)


def test_overwritten_page_is_old_or_new() -> None:
    def prepare(disk: MemoryDisk) -> None:
        certain_file(disk, content=b"o" * (2 * PAGE_BYTES)).write(b"n" * (2 * PAGE_BYTES), 0)

    found = {content for content in outcomes(prepare) if content is not None}
    assert {b"o" * (2 * PAGE_BYTES), b"n" * (2 * PAGE_BYTES), b"o" * PAGE_BYTES + b"n" * PAGE_BYTES} <= found
    assert all(set(content) <= set(b"on") and len(content) == 2 * PAGE_BYTES for content in found)


def test_lost_truncation_brings_back_what_was_cut_off() -> None:
    def prepare(disk: MemoryDisk) -> None:
        certain_file(disk, content=b"c" * 10_000).truncate(100)

    assert set(outcomes(prepare)) == {b"c" * 10_000, b"c" * 100}


def test_truncation_and_sync_stay() -> None:
    def prepare(disk: MemoryDisk) -> None:
        file = certain_file(disk, content=b"c" * 10_000)
        file.truncate(100)
        file.sync()

    assert set(outcomes(prepare)) == {b"c" * 100}


def test_failed_sync_is_not_made_good_by_the_next() -> None:
    def prepare(disk: MemoryDisk) -> None:
        file = certain_file(disk, content=b"c" * PAGE_BYTES)
        disk.fail("sync", "*/log", errno.EIO, times=1)
        file.write(b"u" * PAGE_BYTES, 0)
        with pytest.raises(OSError, match="Input/output"):
            file.sync()
        file.append([b"later"])
        file.sync()

    found = outcomes(prepare)
    assert all(content is not None and content.endswith(b"later") for content in found)
    assert any(content is not None and content.startswith(b"c") for content in found)

    def write_again(disk: MemoryDisk) -> None:
        prepare(disk)
        file = disk.open("/data/log")
        file.write(b"again" * 800, 0)
        file.sync()

    assert {content[:4000] for content in outcomes(write_again) if content} == {b"again" * 800}


# Names


def test_created_name_is_certain_after_its_folder_was_synced() -> None:
    def create(disk: MemoryDisk) -> None:
        file = disk.open("/data/log", create=True)
        file.append([b"x"])
        file.sync()

    assert set(outcomes(create)) == {b"x", None}

    def create_and_sync(disk: MemoryDisk) -> None:
        create(disk)
        disk.sync_directory("/data")

    assert set(outcomes(create_and_sync)) == {b"x"}


def test_removed_name_may_come_back_with_its_bytes() -> None:
    def prepare(disk: MemoryDisk) -> None:
        certain_file(disk, content=b"x").close()
        disk.remove("/data/log")

    assert set(outcomes(prepare)) == {b"x", None}


def test_rename_is_whole_or_has_not_happened() -> None:
    for seed in SEEDS:
        disk = new_disk()
        certain_file(disk, content=b"old").close()
        file = certain_file(disk, "/data/log.tmp", b"new")
        file.close()
        disk.rename("/data/log.tmp", "/data/log")
        disk.crash(Random(seed))
        state = {name: disk.read_file(f"/data/{name}") for name in disk.names("/data")}
        assert state in ({"log": b"new"}, {"log": b"old", "log.tmp": b"new"})


def test_names_of_one_folder_are_lost_independently_and_in_order_for_each() -> None:
    seen = set()
    for seed in SEEDS:
        disk = new_disk()
        for name in ("a", "b"):
            certain_file(disk, f"/data/{name}", name.encode()).close()
        disk.remove("/data/a")
        disk.rename("/data/b", "/data/c")
        disk.open("/data/a", create=True).close()
        disk.crash(Random(seed))
        state = tuple((name, disk.read_file(f"/data/{name}")) for name in disk.names("/data"))
        seen.add(state)
        # The new, empty `a` only where the old one's removal was kept.
        assert sum(name in {"b", "c"} for name, _ in state) == 1
    assert len(seen) == 6  # a: old, gone or new; times the rename: yes or no


def test_folder_that_was_never_certain_takes_its_files_with_it() -> None:
    def prepare(disk: MemoryDisk) -> None:
        disk.make_directory("/data/t-0")
        file = disk.open("/data/t-0/log", create=True)
        file.append([b"x"])
        file.sync()
        disk.sync_directory("/data/t-0")

    assert set(outcomes(prepare, "/data/t-0/log")) == {b"x", None}


def test_rename_across_folders_needs_both_synced() -> None:
    seen = set()
    for seed in SEEDS:
        disk = new_disk()
        disk.make_directory("/other")
        disk.sync_directory("/")
        certain_file(disk, content=b"x").close()
        disk.rename("/data/log", "/other/log")
        if seed % 2:
            disk.sync_directory("/other")
        disk.crash(Random(seed))
        seen.add((seed % 2, disk.exists("/data/log"), disk.exists("/other/log")))
    assert seen == {(0, True, False), (0, False, True), (1, True, True), (1, False, True)}


# Random runs against a model


class Model:
    """Every state of one file since its last sync, kept the dumbest way there is: in full."""

    def __init__(self, content: bytes) -> None:
        self.content = bytearray(content)
        self.states = [bytes(content)]

    def put(self, data: bytes, position: int) -> None:
        self.content.extend(bytes(max(0, position - len(self.content))))
        self.content[position : position + len(data)] = data
        self.states.append(bytes(self.content))

    def truncate(self, size: int) -> None:
        del self.content[size:]
        self.states.append(bytes(self.content))

    def sync(self) -> None:
        self.states = [bytes(self.content)]

    def check(self, found: bytes) -> None:
        """Each sector, or where two meet each byte, is of some state; with one state it is that state exactly."""
        sizes = [len(state) for state in self.states]
        assert min(sizes) <= len(found) <= max(sizes)
        for start in range(0, len(found), SECTOR_BYTES):
            sector = found[start : start + SECTOR_BYTES]
            possible = [state[start : start + len(sector)].ljust(len(sector), b"\0") for state in self.states]
            if sector not in possible:
                assert len(self.states) > 1
                for place, value in enumerate(sector):
                    assert value in {each[place] for each in possible}, f"byte {start + place}"


@pytest.mark.parametrize("block", range(10))
def test_a_hundred_random_lives_hold_every_synced_byte(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        rng = Random(seed)
        disk = new_disk()
        file = certain_file(disk)
        model = Model(b"")
        for _ in range(3):  # lives
            for _ in range(rng.randrange(1, 12)):
                size = rng.choice((1, 100, 700, 5000))
                match rng.randrange(6):
                    case 0 | 1:
                        data = rng.randbytes(size)
                        file.append([data[:50], data[50:]])
                        model.put(data, len(model.content))
                    case 2:
                        position, data = rng.randrange(len(model.content) + 1), rng.randbytes(size)
                        file.write(data, position)
                        model.put(data, position)
                    case 3:
                        cut = rng.randrange(len(model.content) + 1)
                        file.truncate(cut)
                        model.truncate(cut)
                    case _:
                        file.sync()
                        model.sync()
            assert file.read(1 << 20, 0) == model.content, f"seed {seed}"
            disk.crash(rng)
            found = disk.read_file("/data/log")
            model.check(found)
            model = Model(found)
            with pytest.raises(OSError, match=STALE):
                file.append([b"x"])
            file = disk.open("/data/log")


def replace_checkpoint(disk: MemoryDisk, content: bytes, *, sync_first: bool) -> None:
    file = disk.open("/data/checkpoint.tmp", create=True)
    file.truncate(0)
    file.append([content])
    if sync_first:
        file.sync()
    file.close()
    disk.rename("/data/checkpoint.tmp", "/data/checkpoint")
    disk.sync_directory("/data")


def checkpoint_after_crash(operation: int, seed: int, *, sync_first: bool) -> bytes:
    disk = new_disk()
    certain_file(disk, "/data/checkpoint", b"old" * 1000).close()
    disk.crash_at(operation)
    with suppress(SimulatedCrash):  # it may be through before the power goes
        replace_checkpoint(disk, b"new" * 1000, sync_first=sync_first)
    disk.crash(Random(seed))
    return disk.read_file("/data/checkpoint")


def test_checkpoint_is_old_or_new_whatever_operation_the_power_goes_in() -> None:
    found = {
        operation: {checkpoint_after_crash(operation, seed, sync_first=True) for seed in range(50)}
        for operation in range(1, 8)
    }
    assert set().union(*found.values()) == {b"old" * 1000, b"new" * 1000}
    assert found[1] == {b"old" * 1000}
    assert found[7] == {b"new" * 1000}


def test_checkpoint_renamed_before_it_is_synced_is_found_out() -> None:
    found = {checkpoint_after_crash(7, seed, sync_first=False) for seed in range(50)}
    assert found - {b"old" * 1000, b"new" * 1000}


# Crashes


def test_crash_at_counts_what_changes_something() -> None:
    disk = new_disk()
    file = certain_file(disk)
    before = disk.operations
    disk.read_file("/data/log")
    disk.names("/data")
    assert disk.operations == before
    disk.crash_at(2)
    file.append([b"one"])
    with pytest.raises(SimulatedCrash, match="append of /data/log"):
        file.append([b"two"])
    for call in (lambda: file.read(1, 0), lambda: disk.names("/data"), lambda: disk.open("/data/log"), file.sync):
        with pytest.raises(SimulatedCrash, match="off"):
            call()
    disk.crash(Random(1))
    assert disk.names("/data") == ["log"]


def test_sync_that_the_power_went_in_has_synced_nothing() -> None:
    found = set()
    for seed in SEEDS:
        disk = new_disk()
        file = certain_file(disk)
        file.append([b"x"])
        disk.crash_at(1)
        with pytest.raises(SimulatedCrash):
            file.sync()
        disk.crash(Random(seed))
        found.add(disk.read_file("/data/log"))
    assert {b"", b"x"} <= found


def test_crash_frees_locks_and_handles() -> None:
    disk = new_disk()
    disk.lock("/data/.lock")
    disk.sync_directory("/data")
    disk.crash(Random(1))
    disk.lock("/data/.lock").release()


def test_successor_without_a_crash_keeps_what_was_written() -> None:
    disk = new_disk()
    file = disk.open("/data/log", create=True)
    file.append([b"in the page cache"])
    disk.lock("/data/.lock")
    successor = disk.successor()
    assert successor.read_file("/data/log") == b"in the page cache"
    successor.lock("/data/.lock").release()
    for call in (lambda: disk.exists("/data"), lambda: file.append([b"x"]), lambda: disk.remove("/data/log")):
        with pytest.raises(OSError, match=STALE):
            call()


def test_same_seed_same_remains() -> None:
    def remains(seed: int) -> bytes:
        disk = new_disk()
        certain_file(disk).append([bytes(range(256)) * 200])
        disk.crash(Random(seed))
        return disk.read_file("/data/log")

    assert [remains(seed) for seed in range(20)] == [remains(seed) for seed in range(20)]


# Faults


def test_full_disk_takes_what_fits_and_says_so() -> None:
    disk = new_disk(capacity_bytes=1000)
    file = disk.open("/data/log", create=True)
    file.append([b"x" * 900])
    with pytest.raises(OSError, match="No space left"):
        file.append([b"y" * 200])
    assert file.size() == 1000
    assert disk.free_bytes("/data") == 0
    file.truncate(900)
    assert disk.free_bytes("/data") == 100
    with pytest.raises(OSError, match="No space left"):
        file.allocate(1001)
    file.truncate(900)
    other = disk.open("/data/other", create=True)
    other.append([b"z" * 100])
    disk.remove("/data/other")
    assert disk.free_bytes("/data") == 0  # still open
    other.close()
    assert disk.free_bytes("/data") == 100
    disk.capacity_bytes = 2000
    file.append([b"y" * 1000])
    assert disk.free_bytes("/data") == 100


def test_fault_strikes_where_and_as_often_as_asked() -> None:
    disk = new_disk()
    file, other = certain_file(disk), certain_file(disk, "/data/other")
    disk.fail("append", "*/log", errno.EIO, after=1, times=2)
    file.append([b"1234"])
    other.append([b"1234"])
    for _ in range(2):
        with pytest.raises(OSError, match="/data/log"):
            file.append([b"5678"])
    file.truncate(4)
    file.append([b"90"])
    assert file.read(10, 0) == b"123490"


def test_failed_append_may_have_written_some() -> None:
    disk = new_disk()
    file = certain_file(disk, content=b"abc")
    disk.fail("append", "*", errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        file.append([b"defghi"])
    assert file.size() > 3
    disk.stop_failing()
    file.truncate(3)
    file.append([b"d"])
    assert file.read(10, 0) == b"abcd"


@pytest.mark.parametrize(
    ("operation", "call"),
    [
        ("open", lambda disk: disk.open("/data/log")),
        ("open", lambda disk: disk.open_read_only("/data/log")),
        ("create", lambda disk: disk.open("/data/new", create=True)),
        ("read", lambda disk: disk.open("/data/log").read(1, 0)),
        ("read", lambda disk: disk.read_file("/data/log")),
        ("write", lambda disk: disk.open("/data/log").write(b"x", 0)),
        ("truncate", lambda disk: disk.open("/data/log").truncate(0)),
        ("allocate", lambda disk: disk.open("/data/log").allocate(100)),
        ("sync", lambda disk: disk.open("/data/log").sync()),
        ("rename", lambda disk: disk.rename("/data/log", "/data/new")),
        ("remove", lambda disk: disk.remove("/data/log")),
        ("remove_tree", lambda disk: disk.remove_tree("/data")),
        ("remove_files", lambda disk: disk.remove_files("/data")),
        ("make_directory", lambda disk: disk.make_directory("/data/new")),
        ("sync_directory", lambda disk: disk.sync_directory("/data")),
        ("names", lambda disk: disk.names("/data")),
        ("lock", lambda disk: disk.lock("/data/.lock")),
        ("*", lambda disk: disk.size("/data/log")),
    ],
)
def test_every_operation_can_fail(operation: str, call: Callable[[MemoryDisk], object]) -> None:
    disk = new_disk()
    certain_file(disk, content=b"x").close()
    disk.fail(operation, "/data*", errno.EACCES)
    with pytest.raises(PermissionError):
        call(disk)
    disk.stop_failing()
    call(disk)


def test_bit_rot_is_read_and_stays() -> None:
    disk = new_disk()
    file = certain_file(disk, content=bytes(5000))
    file.write(b"\xff", 4999)
    disk.flip("/data/log", 4500, bit=3)
    assert file.read(1, 4500) == b"\x08"
    for seed in range(20):
        disk.crash(Random(seed))
        assert disk.read_file("/data/log")[4500] == 8
