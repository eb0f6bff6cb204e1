"""The cleaner in a running broker: its process, logs that cannot be cleaned, and what is told of them."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import BrokerThread
from tools.ottla_server import ottla_broker

from ottla.broker.cleaning import _RETRY_MS, Cleaning
from ottla.broker.metrics import register_broker_metrics
from ottla.controller.interface import TopicRef
from ottla.model import TopicPartition
from ottla.records.record import Record, decode_batch, encode_batch
from ottla.replication.throttles import NO_LIMIT, ReplicationQuota
from ottla.storage.formats import offset_checkpoint
from ottla.storage.log.log import Log

SECONDS_MAX = 60.0
BACKOFF = {"log.cleaner.backoff.ms": "20"}
COMPACTED = {"cleanup_policy": "compact", "internal_segment_bytes": "2000", "file_delete_delay_ms": "0"}


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.005)


class Compacted(BrokerThread):
    """With topics whose logs are written to directly."""

    def log(self, name: str) -> Log:
        return next(log for log in self.broker.logs() if log.tp.topic == name)

    def fill(self, name: str, keys: int = 5, batches: int = 100) -> None:
        async def write() -> None:
            assert self.broker.services is not None
            leader = self.broker.services.replicas.leaders[TopicPartition(name, 0)]
            now_ms = self.ports.clock.wall_ms()
            leader.log.staging.rolls_apart = False  # this is no request, and may wait for the disk
            for number in range(batches):
                record = Record(0, now_ms, b"k%d" % (number % keys), b"v%d" % number + b"." * 50)
                batch = memoryview(bytearray(encode_batch([record])))
                leader.log.stage(batch, leader.epoch, now_ms)
            self.broker.services.writes.staged(leader)
            self.broker.services.writes.write(now_ms)

        self.run(write())

    def keys(self, name: str) -> list[bytes | None]:
        """Of all records, in order."""

        async def read() -> list[bytes | None]:
            found: list[bytes | None] = []
            log, at = self.log(name), 0
            while at < log.end_offset:
                for record in decode_batch(log.read(at, 1, log.end_offset).read()):
                    found.append(record.key)
                    at = record.offset + 1
            return found

        return self.run(read())

    @property
    def cleaning(self) -> Cleaning:
        assert self.broker.cleaning is not None
        return self.broker.cleaning

    def scrape(self) -> str:
        register_broker_metrics(self.broker)
        return self.broker.registry.render()


def test_a_log_is_cleaned_by_another_process(tmp_path: Path) -> None:
    with Compacted(str(tmp_path), **BACKOFF) as broker:
        broker.create_topic("t", **COMPACTED)
        broker.fill("t")
        until(lambda: broker.log("t").cleaned_to > 0)
        last = broker.log("t").active.base_offset
        until(lambda: broker.cleaning.passes > 0 and len(broker.keys("t")) <= 5 + 100 - last)
        assert _child_of(broker) > 0
        assert set(broker.keys("t")) == {b"k%d" % number for number in range(5)}
        folder = tmp_path / "logs" / "t-0"
        until(lambda: not [path for path in folder.iterdir() if path.suffix in {".cleaned", ".swap", ".deleted"}])
        checkpoint = offset_checkpoint.decode((tmp_path / "logs" / offset_checkpoint.CLEANER_OFFSETS).read_bytes())
        assert checkpoint == {TopicPartition("t", 0): broker.log("t").cleaned_to}
        said = broker.scrape()
        assert "kafka_log_logcleaner_deadthreadcount 0" in said
        assert f'kafka_log_logcleanermanager_uncleanable_partitions_count{{logdirectory="{tmp_path}/logs"}} 0' in said
        assert broker.cleaning.last is not None
        assert broker.cleaning.last.records_kept < broker.cleaning.last.records_read

    with Compacted(str(tmp_path), **BACKOFF) as broker:
        assert set(broker.keys("t")) == {b"k%d" % number for number in range(5)}
        assert broker.log("t").cleaned_to == checkpoint[TopicPartition("t", 0)]


def test_a_log_that_cannot_be_cleaned_is_named_and_does_not_hold_up_others(
    tmp_path: Path, log_lines: list[str]
) -> None:
    with Compacted(str(tmp_path), **BACKOFF, **{"log.cleaner.threads": "0"}) as broker:
        for name in ("bad", "good"):
            broker.create_topic(name, **COMPACTED)
            broker.fill(name)
        first = tmp_path / "logs" / "bad-0" / f"{0:020d}.log"
        until(lambda: broker.log("bad").recovery_point >= broker.log("bad").active.base_offset)
        sound = first.read_bytes()
        first.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
        _set(broker, cleaner_threads=1)

        until(lambda: broker.cleaning.passes > 0 and TopicPartition("bad", 0) in broker.cleaning.set_aside)
        assert broker.log("good").cleaned_to > 0
        assert broker.log("bad").cleaned_to == 0
        assert len(broker.keys("good")) < 100
        said = broker.scrape()
        assert f'uncleanable_partitions_count{{logdirectory="{tmp_path}/logs"}} 1' in said
        assert 'ottla_log_cleaner_failures{topic="bad",partition="0"} 1' in said
        lines = [line for line in log_lines if "cannot be cleaned" in line]
        assert len(lines) == 1
        assert "bad-0" in lines[0]
        assert "checksum" in lines[0]

        # As bad as before when its time has come: then it waits for twice as long.
        tp, now_ms = TopicPartition("bad", 0), broker.ports.clock.monotonic_ms()
        assert broker.cleaning.set_aside[tp].again_ms <= now_ms + 60_000
        _try_again(broker, tp)
        until(lambda: broker.cleaning.set_aside[tp].failures == 2)
        assert now_ms + 120_000 <= broker.cleaning.set_aside[tp].again_ms
        assert 'ottla_log_cleaner_failures{topic="bad",partition="0"} 2' in broker.scrape()

        # Mended, and its time has come: it is tried again, and is not set aside any more.
        first.write_bytes(sound)
        _try_again(broker, tp)
        until(lambda: broker.log("bad").cleaned_to > 0 and not broker.cleaning.set_aside)
        assert f'uncleanable_partitions_count{{logdirectory="{tmp_path}/logs"}} 0' in broker.scrape()


def test_a_worker_process_that_is_killed_in_the_middle_of_a_pass(tmp_path: Path) -> None:
    """Nothing is lost of the log; it is named as set aside, and the next pass is made by another process."""
    # Two seconds are left of the pass when its first file is seen: a busy machine may take one of them to kill it.
    slowly = {"log.cleaner.io.max.bytes.per.second": "10000", "log.cleaner.io.buffer.size": "4096"}
    folder, tp = tmp_path / "logs" / "t-0", TopicPartition("t", 0)
    with Compacted(str(tmp_path), **BACKOFF, **slowly) as broker:
        broker.create_topic("t", **{**COMPACTED, "internal_segment_bytes": "20000"})
        broker.fill("t", batches=300)
        until(lambda: bool(list(folder.glob("*.cleaned"))))
        first = _child_of(broker)
        os.kill(first, signal.SIGKILL)
        until(lambda: tp in broker.cleaning.set_aside)
        assert "died" in broker.cleaning.set_aside[tp].reason
        assert 'ottla_log_cleaner_failures{topic="t",partition="0"} 1' in broker.scrape()
        assert not broker.cleaning.is_dead
        assert len(broker.keys("t")) == 300
        assert list(folder.glob("*.cleaned")), "it could not remove them"

        _set(broker, cleaner_io_bytes_per_second_max=1e300)
        _try_again(broker, tp)
        until(lambda: broker.log("t").cleaned_to > 0 and not broker.cleaning.set_aside)
        assert _child_of(broker) not in {0, first}
        assert set(broker.keys("t")) == {b"k%d" % number for number in range(5)}
        assert len(broker.keys("t")) < 300
        assert not list(folder.glob("*.cleaned"))


def test_a_broker_that_is_killed_in_the_middle_of_a_pass(tmp_path: Path) -> None:
    """Its worker ends too: the next broker finds a folder that nobody else writes to, and cleans it."""
    named = {"broker.id": "1"}
    with Compacted(str(tmp_path), **named, **{"log.cleaner.enable": "false"}) as broker:
        broker.create_topic("t", **COMPACTED)
        broker.fill("t")
    # A hundred bytes a second: left alone the worker would be at it for minutes.
    slowly = {"log.cleaner.io.max.bytes.per.second": "100", **BACKOFF}
    server = ottla_broker(tmp_path / "process", properties={"log.dirs": f"{tmp_path}/logs", **slowly})
    server.start()
    try:
        until(lambda: bool(_children(server.pid)))
        (worker,) = _children(server.pid)
    finally:
        server.kill()
    until(lambda: not _runs(worker))

    with Compacted(str(tmp_path), **named, **BACKOFF) as broker:
        until(lambda: broker.log("t").cleaned_to > 0)
        assert set(broker.keys("t")) == {b"k%d" % number for number in range(5)}


def test_a_worker_process_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without room for another process is no disk that fails."""
    with Compacted(str(tmp_path), **BACKOFF) as broker:
        tp = TopicPartition("t", 0)
        with monkeypatch.context() as patched:
            patched.setattr(sys, "executable", "/nowhere/python")
            broker.create_topic("t", **COMPACTED)
            broker.fill("t")
            until(lambda: tp in broker.cleaning.set_aside)
        assert broker.look(lambda it: [log.tp for log in it.logs() if log.tp == tp]), "its directory is not offline"
        _try_again(broker, tp)
        until(lambda: broker.log("t").cleaned_to > 0 and not broker.cleaning.set_aside)


def test_a_folder_in_a_segments_place_sets_its_partition_aside(tmp_path: Path) -> None:
    with Compacted(str(tmp_path), **BACKOFF, **{"log.cleaner.threads": "0"}) as broker:
        broker.create_topic("t", **COMPACTED)
        broker.fill("t")
        home = Path(broker.log("t").directory)
        until(lambda: broker.log("t").recovery_point >= broker.log("t").active.base_offset)
        first = home / f"{0:020d}.log"
        first.unlink()
        first.mkdir()
        _set(broker, cleaner_threads=1)
        until(lambda: list(broker.cleaning.set_aside) == [TopicPartition("t", 0)])
        assert broker.broker.services is not None
        assert broker.broker.services.replicas.directories.online_paths == [str(home.parent)]
        broker.fill("t")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no file here whose reading fails")
def test_a_disk_that_refuses_takes_its_directory_offline(tmp_path: Path) -> None:
    folders = f"{tmp_path}/one,{tmp_path}/two"
    with Compacted(str(tmp_path), **BACKOFF, **{"log.dirs": folders, "log.cleaner.threads": "0"}) as broker:
        broker.create_topic("t", **COMPACTED)
        broker.fill("t")
        home = Path(broker.log("t").directory)
        until(lambda: broker.log("t").recovery_point >= broker.log("t").active.base_offset)
        first = home / f"{0:020d}.log"
        first.unlink()
        first.symlink_to("/proc/self/mem")  # whose first page is nobody's: reading it is EIO
        assert broker.broker.services is not None
        directories = broker.broker.services.replicas.directories
        _set(broker, cleaner_threads=1)
        until(
            lambda: list(directories.online_paths) == [each for each in folders.split(",") if each != str(home.parent)]
        )


def test_a_log_that_is_copied_to_another_directory_is_not_cleaned_meanwhile(tmp_path: Path) -> None:
    """The copy could have a key's older record, and miss the tombstone that was due."""
    folders = f"{tmp_path}/one,{tmp_path}/two"
    slowly = {"replica.alter.log.dirs.io.max.bytes.per.second": "1"}
    with Compacted(str(tmp_path), **BACKOFF, **slowly, **{"log.dirs": folders, "log.cleaner.threads": "0"}) as broker:
        for name in ("t", "other"):
            broker.create_topic(name, **COMPACTED)
            broker.fill(name)
        home = os.path.dirname(broker.log("t").directory)
        target = next(folder for folder in folders.split(",") if folder != home)
        replicas = broker.broker.services.replicas  # type: ignore[union-attr]
        tp = TopicPartition("t", 0)

        async def move() -> None:
            await replicas.change(replicas.moves.starting(tp, target))

        broker.run(move())
        _set(broker, cleaner_threads=1)
        for _ in range(3):
            passes = broker.cleaning.passes
            broker.fill("other")
            until(lambda passes=passes: broker.cleaning.passes > passes)  # type: ignore[misc]
        assert tp in replicas.directories.moves
        assert broker.log("t").cleaned_to == -1
        replicas.moves.quota = ReplicationQuota(broker.ports.clock, lambda: NO_LIMIT)
        until(lambda: os.path.dirname(broker.log("t").directory) == target)
        until(lambda: broker.log("t").cleaned_to > 0)
        assert broker.cleaning.failures == 0


def test_a_log_that_cannot_even_be_looked_at_holds_up_no_other(tmp_path: Path, log_lines: list[str]) -> None:
    with Compacted(str(tmp_path), **{"log.cleaner.enable": "false"}) as broker:
        for name in ("bad", "good"):
            broker.create_topic(name, **COMPACTED, max_compaction_lag_ms="1000000")
            broker.fill(name)
    with Compacted(str(tmp_path), **BACKOFF, **{"log.cleaner.threads": "0"}) as broker:
        os.truncate(tmp_path / "logs" / "bad-0" / f"{0:020d}.log", 0)
        _set(broker, cleaner_threads=1)
        for _ in range(3):
            passes = broker.cleaning.passes
            broker.fill("good")
            until(lambda passes=passes: broker.cleaning.passes > passes)  # type: ignore[misc]
        assert list(broker.cleaning.set_aside) == [TopicPartition("bad", 0)]
        lines = [line for line in log_lines if "cannot be cleaned" in line]
        assert len(lines) == 1, "it waits for its next try"
        assert "bad-0" in lines[0]


def test_a_fault_of_the_cleaner_itself_is_told_and_it_begins_anew(tmp_path: Path, log_lines: list[str]) -> None:
    with Compacted(str(tmp_path), **BACKOFF) as broker:
        broker.cleaning.set_aside = None  # type: ignore[assignment]
        until(lambda: broker.cleaning.failures > 0)
        assert not broker.cleaning.is_dead
        assert [line for line in log_lines if "begins anew" in line]
        broker.cleaning.set_aside = {}
        broker.create_topic("t", **COMPACTED)
        broker.fill("t")
        until(lambda: broker.log("t").cleaned_to > 0)


def _set(broker: Compacted, **settings: Any) -> None:
    live = broker.broker.services.live  # type: ignore[union-attr]
    live.current = live.current._replace(storage=live.current.storage._replace(**settings))


def _try_again(broker: Compacted, tp: TopicPartition) -> None:
    """As if its time had come."""
    broker.cleaning.set_aside[tp] = broker.cleaning.set_aside[tp]._replace(again_ms=0)


def _children(pid: int) -> list[int]:
    numbers = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    return [number for number in numbers if _state_and_parent(number)[1] == pid]


def _runs(pid: int) -> bool:
    return _state_and_parent(pid)[0] not in {"", "Z"}


def _state_and_parent(pid: int) -> tuple[str, int]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return "", 0
    state, parent = text.rpartition(")")[2].split()[:2]  # behind the name, which may hold anything
    return state, int(parent)


def _child_of(broker: Compacted) -> int:
    process = broker.ports.workers._cleaning.child._process
    return 0 if process is None else process.pid


def test_a_deleted_topic_is_forgotten(tmp_path: Path) -> None:
    with Compacted(str(tmp_path), **BACKOFF) as broker:
        for name in ("gone", "stays"):
            broker.create_topic(name, **COMPACTED)
            broker.fill(name)
        until(lambda: all(broker.log(name).cleaned_to > 0 for name in ("gone", "stays")))

        async def delete() -> None:
            services = broker.broker.services
            assert services is not None
            await services.controller.delete_topics([TopicRef("gone")], timeout_ms=60_000)

        broker.run(delete())
        broker.fill("stays")
        path = tmp_path / "logs" / offset_checkpoint.CLEANER_OFFSETS
        until(lambda: [tp.topic for tp in offset_checkpoint.decode(path.read_bytes())] == ["stays"])
        assert not broker.cleaning.set_aside


def test_a_topic_that_is_made_anew_does_not_wait_for_the_one_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Compacted(str(tmp_path), **BACKOFF) as broker:
        with monkeypatch.context() as patched:
            patched.setattr(sys, "executable", "/nowhere/python")
            broker.create_topic("t", **COMPACTED)
            broker.fill("t")
            until(lambda: TopicPartition("t", 0) in broker.cleaning.set_aside)
            _set(broker, cleaner_threads=0)

        async def delete() -> None:
            services = broker.broker.services
            assert services is not None
            await services.controller.delete_topics([TopicRef("t")], timeout_ms=60_000)

        broker.run(delete())
        broker.create_topic("t", **COMPACTED)
        broker.fill("t")
        began = time.monotonic()
        _set(broker, cleaner_threads=1)
        until(lambda: broker.log("t").cleaned_to > 0)
        assert time.monotonic() - began < _RETRY_MS / 2_000
        assert not broker.cleaning.set_aside


def test_a_topic_that_is_not_compacted_any_more_is_left_alone(tmp_path: Path) -> None:
    with Compacted(str(tmp_path), **BACKOFF) as broker:
        broker.create_topic("plain", internal_segment_bytes="2000")
        broker.create_topic("t", **COMPACTED)
        broker.fill("plain")
        broker.fill("t")
        until(lambda: broker.log("t").cleaned_to > 0)
        assert broker.log("plain").cleaned_to == -1
        assert len(broker.keys("plain")) == 100
