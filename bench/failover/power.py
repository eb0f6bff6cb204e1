"""Power cuts of all nodes at once, with a flush before each answer: what was acknowledged is on the medium.

    python -m bench.failover power --cuts 500

SIGKILL alone proves nothing about a flush, since the system's memory outlives the process. Here all brokers and their
tree keep their files on an ext4 of their own, in an image that a loop device serves. All processes are killed at once,
and then the image is copied as it stands, without what the system has yet to write: the next lives run on the copy,
whose journal is replayed as after a power cut. It is mounted so that nothing but a flush commits that journal.

Needs root and loop devices. The image's copy is not made in one moment, but nobody writes to the file system any more.
"""

from __future__ import annotations

import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from bench.failover.cycles import BROKERS, PARTITIONS, WHOLE_S_MAX, tell
from bench.failover.load import Writer, read_all
from ottla.client.errors import KafkaError
from ottla.testing.histories import ClientHistory, HistoryFault
from ottla.testing.processes import Cluster

TOPIC: Final = "power"
WRITERS: Final = 2
#: Sparse: what was never written takes no room.
IMAGE_BYTES: Final = 1 << 30
#: Seconds of load in each life, behind its start.
LOAD_S: Final = (0.3, 2.5)
#: Flush before the answer; and nothing that would be larger than what is measured.
_PROPERTIES: Final = {"log.flush.interval.messages": "1", "log.segment.bytes": "1048576"}
#: Seconds between two commits of the file system's journal, if nobody flushes.
_COMMIT_S: Final = 300


class Outcome(NamedTuple):
    cuts: int
    history: ClientHistory
    faults: list[HistoryFault]
    #: Bytes that a cut took from the system's memory at most.
    dirty_bytes_max: int
    seconds: float

    def report(self) -> str:
        history = self.history
        return (
            f"{self.cuts} power cuts in {self.seconds:.0f} s, {history.acknowledged_count} of {history.sent_count} "
            f"records acknowledged; up to {self.dirty_bytes_max >> 10} KiB were in memory alone; "
            f"{len(self.faults)} faults"
        )


def run(cuts: int, seed: int) -> Outcome:
    chance = random.Random(seed)
    history = ClientHistory()
    partitions = [(TOPIC, number) for number in range(PARTITIONS)]
    began, dirty = time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="ottla-power-") as folder:
        image, copy = Path(folder, "image"), Path(folder, "copy")
        _make(image)
        for cut in range(cuts):
            with _mounted(image, Path(folder, "disk")) as disk, _cluster(disk) as cluster:
                if cut == 0:
                    cluster.create_topic(TOPIC, PARTITIONS)
                _until_whole(cluster)
                writers = [
                    Writer(f"w{cut}-{number}", cluster.bootstrap, partitions, history) for number in range(WRITERS)
                ]
                for writer in writers:
                    writer.start()
                cluster.until(lambda w=writers: all(each.acknowledged_at for each in w), WHOLE_S_MAX)  # type: ignore[misc]
                time.sleep(chance.uniform(*LOAD_S))
                cluster.kill_all()
                dirty = max(dirty, _dirty_bytes())
                subprocess.run(["cp", "--sparse=always", image, copy], check=True)
                for writer in writers:
                    writer.give_up()
            copy.replace(image)
            if (cut + 1) % 10 == 0:
                tell(f"{cut + 1} power cuts, {history.acknowledged_count} records acknowledged")
        with _mounted(image, Path(folder, "disk")) as disk, _cluster(disk) as cluster:
            _until_whole(cluster)
            read_all(cluster.bootstrap, partitions, history)
    return Outcome(cuts, history, history.faults(), dirty, time.monotonic() - began)


def _make(image: Path) -> None:
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)


@contextmanager
def _mounted(image: Path, place: Path) -> Iterator[Path]:
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", f"loop,commit={_COMMIT_S}", image, place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@contextmanager
def _cluster(disk: Path) -> Iterator[Cluster]:
    with Cluster(BROKERS, data=disk, properties=_PROPERTIES, links=False) as cluster:
        yield cluster


def _until_whole(cluster: Cluster) -> None:
    def is_whole() -> bool:
        with suppress(KafkaError, TimeoutError, OSError):
            return all(len(isr) == BROKERS for isr in cluster.isrs(TOPIC))
        return False

    cluster.until(is_whole, WHOLE_S_MAX)


def _dirty_bytes() -> int:
    """What the system has yet to write, of all file systems."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("Dirty:")), 0)
