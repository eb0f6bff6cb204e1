"""docs/several-machines.md, as it is written: each machine is a loopback address, and a folder for its `/srv`."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from confluent_kafka import KafkaError, Message, Producer
from tools.kafka_jars import BROKER_39, classpath

from ottla.client.sync import Consumer
from tests.cli.conftest import environment
from tests.conftest import found_jars

PAGE: Final = (Path(__file__).parents[1] / "docs" / "several-machines.md").read_text()
MACHINES: Final = (1, 2, 3)
SECONDS_MAX: Final = 120
TOPIC: Final = "orders"


class Block(NamedTuple):
    section: str
    #: The file that it is, where it is one.
    file: str | None
    #: Where it is run: `each`, or a machine's number.
    where: str | None
    text: str


def blocks() -> list[Block]:
    found: list[Block] = []
    for section in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        title = section.partition("\n")[0]
        for kind, value, text in re.findall(r"^```\w+ (file|on)=(\S+)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
            file, where = (value, None) if kind == "file" else (None, value)
            found.append(Block(title, file, where, text))
    return found


#: ZooKeeper's script, over the jars that are here: it starts a server in the background.
ZK_SERVER: Final = """#!/bin/bash
exec {java} -cp '{jars}' org.apache.zookeeper.server.quorum.QuorumPeerMain "$2" > "$2.out" 2>&1 < /dev/null &
echo $! > "$2.pid"
"""
JAVA: Final = "java -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
#: What a machine has on its path.
PROGRAMS: Final = {
    "ottla": '#!/bin/bash\nexec "{python}" -m ottla "$@"\n',
    "zkServer.sh": ZK_SERVER,
    "scp": '#!/bin/bash\nshift\nexec cp -r "$@"\n',
    "pip": "#!/bin/bash\nexit 0\n",
}


class Machines:
    """Three of them, and what a person types there."""

    def __init__(self, folder: Path, jars: Path) -> None:
        self.folder = folder
        #: Of this run alone: the ports are the page's own.
        self._net = f"127.{random.randint(10, 250)}.{random.randint(1, 250)}"
        programs = folder / "bin"
        programs.mkdir()
        for name, text in PROGRAMS.items():
            (programs / name).write_text(
                text.format_map({"java": JAVA, "jars": classpath(jars), "python": sys.executable})
            )
            (programs / name).chmod(0o755)
        self._environment = environment(HOME=str(folder), PATH=f"{programs}:{os.environ['PATH']}")

    def address(self, machine: int) -> str:
        return f"{self._net}.{machine}"

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{self.address(machine)}:9092" for machine in MACHINES)

    def srv(self, machine: int) -> Path:
        return self.folder / f"disk-{machine}"

    def adapted(self, text: str, machine: int) -> str:
        text = re.sub(r"\bN\b", str(machine), text)
        text = re.sub(r"machine-(\d):/srv", lambda found: str(self.srv(int(found[1]))), text)
        text = re.sub(r"(?<![\w/-])/srv\b", str(self.srv(machine)), text)
        return re.sub(r"\bmachine-(\d)\b", lambda found: self.address(int(found[1])), text)

    def follow(self, section: str) -> None:
        """All that a section has; `each` is one machine after the other."""
        done = 0
        for block in blocks():
            if block.section != section:
                continue
            done += 1
            for machine in MACHINES if block.where in {None, "each"} else [int(block.where or 0)]:
                if block.file is not None:
                    self.write(block, machine)
                else:
                    self.run(block.text, machine)
        assert done, f"the page has no section {section!r} with blocks"

    def write(self, block: Block, machine: int) -> None:
        assert block.file is not None
        path = Path(self.adapted(block.file, machine))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.adapted(block.text, machine))

    def run(self, text: str, machine: int) -> None:
        # A person looks at each line before typing the next.
        script = "set -e -o pipefail\n" + self.adapted(text, machine)
        with (self.folder / f"shell-{machine}.out").open("ab") as out:
            shell = subprocess.Popen(
                ["bash", "-c", script],
                cwd=self.folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        try:
            code: int | None = shell.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired:
            code = None
            os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
        assert code == 0, f"{'it does not end' if code is None else code}: {script}\n{self.said()}"

    def lose(self, machine: int) -> None:
        """SIGKILL for everything that runs there, and an empty disk but for the files that the page shows."""
        for pid in self.pids(machine):
            os.kill(pid, signal.SIGKILL)
        for pid in self.pids(machine):
            until_gone(pid)
        shutil.rmtree(self.srv(machine))
        for block in blocks():
            if block.file is not None:
                self.write(block, machine)

    def pids(self, machine: int) -> list[int]:
        return [int(path.read_text()) for path in self.srv(machine).glob("*/*.pid")]

    def end(self) -> None:
        for machine in MACHINES:
            for pid in self.pids(machine):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def said(self) -> str:
        files = [
            *self.folder.glob("shell-*.out"),
            *self.folder.glob("disk-*/*/*.log"),
            *self.folder.glob("disk-*/*/*.out"),
        ]
        return "\n".join(f"== {path.relative_to(self.folder)}\n{path.read_text()[-3000:]}" for path in files)


def until_gone(pid: int) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while Path(f"/proc/{pid}").exists() and "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < deadline, pid
        time.sleep(0.01)


class Sending:
    """An idempotent producer that writes numbers; whatever it is not told otherwise about is acknowledged."""

    def __init__(self) -> None:
        self.acknowledged: list[int] = []
        self.failed: list[KafkaError] = []
        self._next = 0

    @contextmanager
    def to(self, bootstrap: str) -> Iterator[None]:
        producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0})
        stop = threading.Event()

        def heard(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                self.failed.append(error)
            else:
                value = message.value()
                assert value is not None
                self.acknowledged.append(int(value))

        def send() -> None:
            while not stop.wait(0.005):
                producer.produce(TOPIC, str(self._next).encode(), partition=self._next % 3, on_delivery=heard)
                self._next += 1
                producer.poll(0)

        thread = threading.Thread(target=send)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            assert producer.flush(SECONDS_MAX) == 0

    def check(self, bootstrap: str) -> None:
        """Each is there once, in its partition's order."""
        assert not self.failed
        assert len(self.acknowledged) == self._next
        partitions = [(TOPIC, number) for number in range(3)]
        found: dict[int, list[int]] = {number: [] for number in range(3)}
        with Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            consumer.assign(partitions)
            end, read = sum(consumer.end_offsets(partitions).values()), 0
            while read < end:
                for record in consumer.poll(timeout_ms=1000):
                    read += 1
                    if record.value != b"hello":
                        found[record.partition].append(int(record.value))
        assert found == {number: list(range(number, self._next, 3)) for number in range(3)}


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    if not sys.platform.startswith("linux"):
        pytest.skip("all of 127.0.0.0/8 is this machine on Linux alone")
    made = Machines(tmp_path, found_jars(BROKER_39))
    try:
        yield made
    finally:
        made.end()


@pytest.mark.java
@pytest.mark.timeout(400)
@pytest.mark.slow
def test_the_page_as_it_is_written(machines: Machines) -> None:
    machines.follow("The ensemble")
    machines.follow("The brokers")
    sending = Sending()
    with sending.to(machines.bootstrap):
        machines.follow("A new version, one machine after the other")
        machines.lose(2)
        machines.follow("A machine is lost")
    assert len(sending.acknowledged) > 500
    sending.check(machines.bootstrap)
    machines.run("ottla topic create single -r 1 -b machine-1", 1)  # as one broker's `ottla up` has them
    machines.follow("Moving the tree")
    with sending.to(machines.bootstrap):
        machines.run("ottla cluster health -b machine-2 --exit-when-healthy", 1)
    sending.check(machines.bootstrap)


def test_every_section_has_its_blocks() -> None:
    assert {block.section for block in blocks()} == {
        "The ensemble",
        "The brokers",
        "A new version, one machine after the other",
        "A machine is lost",
        "Moving the tree",
    }
    assert len(re.findall(r"^```\w", PAGE, re.MULTILINE)) == len(blocks())
