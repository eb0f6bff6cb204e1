"""The cleaner in a running broker: its process, logs that cannot be cleaned, and what is told of them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from tests.server.conftest import BrokerThread

from ottla.controller.interface import TopicRef
from ottla.model import TopicPartition
from ottla.records.record import Record, decode_batch, encode_batch
from ottla.server.broker_metrics import register_broker_metrics
from ottla.server.cleaning import Cleaning
from ottla.storage.formats import offset_checkpoint
from ottla.storage.log import Log

SECONDS_MAX = 30.0
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
            for number in range(batches):
                record = Record(0, now_ms, b"k%d" % (number % keys), b"v%d" % number + b"." * 50)
                batch = memoryview(bytearray(encode_batch([record])))
                leader.log.stage(batch, leader.epoch, now_ms)
            self.broker.services.replicas.staged(leader)
            self.broker.services.replicas.write_round()

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
        _set_threads(broker, 1)

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

        # Mended, and its time has come: it is tried again, and is not set aside any more.
        first.write_bytes(sound)
        aside = broker.cleaning.set_aside[TopicPartition("bad", 0)]
        broker.cleaning.set_aside[TopicPartition("bad", 0)] = aside._replace(again_ms=0)
        until(lambda: broker.log("bad").cleaned_to > 0 and not broker.cleaning.set_aside)
        assert "uncleanable_partitions_count" in broker.scrape()


def _set_threads(broker: Compacted, threads: int) -> None:
    live = broker.broker.services.live  # type: ignore[union-attr]
    live.current = live.current._replace(storage=live.current.storage._replace(cleaner_threads=threads))


def test_a_worker_process_that_dies_is_started_again(tmp_path: Path) -> None:
    slowly = {"log.cleaner.io.max.bytes.per.second": "20000"}
    with Compacted(str(tmp_path), **BACKOFF, **slowly) as broker:
        broker.create_topic("t", **COMPACTED)
        broker.fill("t")
        until(lambda: _child_of(broker) > 0)
        first = _child_of(broker)
        os.kill(first, signal.SIGKILL)
        tp = TopicPartition("t", 0)
        until(lambda: tp in broker.cleaning.set_aside)
        assert "died" in broker.cleaning.set_aside[tp].reason
        assert not broker.cleaning.is_dead
        broker.cleaning.set_aside[tp] = broker.cleaning.set_aside[tp]._replace(again_ms=0)
        until(lambda: _child_of(broker) not in {0, first})
        live = broker.broker.services.live  # type: ignore[union-attr]
        live.current = live.current._replace(
            storage=live.current.storage._replace(cleaner_io_bytes_per_second_max=1e300)
        )
        until(lambda: broker.log("t").cleaned_to > 0 and not broker.cleaning.set_aside)


def _child_of(broker: Compacted) -> int:
    process = broker.ports.workers._child._process
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
            await services.controller.delete_topics([TopicRef("gone")], timeout_ms=5000)

        broker.run(delete())
        broker.fill("stays")
        path = tmp_path / "logs" / offset_checkpoint.CLEANER_OFFSETS
        until(lambda: [tp.topic for tp in offset_checkpoint.decode(path.read_bytes())] == ["stays"])
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
