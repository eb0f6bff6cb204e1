"""`ottla log import`: files of older Kafka become records of a topic; damage is named before anything is sent."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.cli import faults
from ottla.cli.log.importing import _send
from ottla.records.compression import GZIP, compress
from ottla.testing import InProcessBroker
from tests.cli.conftest import Command
from tests.records.generated_records import NOW
from tests.records.test_first_messages import entry
from tests.records.test_old_messages import RECORDS, message, written

FILE = f"{0:020d}.log"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "orders-0"
    made.mkdir()
    return made


def consumed(in_process: Command, broker: InProcessBroker, topic: str, form: str = "%p %k %v\\n") -> list[str]:
    ran = in_process("consume", topic, "-e", "--from-beginning", "--null", "NULL", "-f", form, *at(broker))
    assert ran.code == 0, ran.err
    return ran.lines


def at(broker: InProcessBroker) -> list[str]:
    return ["-b", broker.bootstrap]


def test_messages_get_their_keys_and_times(
    in_process: Command, ottla_broker: InProcessBroker, folder: Path, topic: str
) -> None:
    (folder / FILE).write_bytes(written(0, GZIP) + written(1, 0, 4))
    before = int(time.time() * 1000)
    ran = in_process("log", "import", str(folder), "--topic", topic, *at(ottla_broker))
    assert (ran.code, ran.out) == (0, f"{folder}: 8 records were sent to {topic}-0\n")
    lines = consumed(in_process, ottla_broker, topic, "%k|%v|%d\\n")
    shown = [f"{'NULL' if k is None else k.decode()}|{'NULL' if v is None else v.decode()}" for k, v in RECORDS]
    assert [line.rpartition("|")[0] for line in lines] == shown * 2
    times = [int(line.rpartition("|")[2]) for line in lines]
    # Where the format has no time, it is the producer's.
    assert times[4:] == [NOW, NOW + 1, NOW + 2, NOW + 3]
    assert min(times[:4]) >= before


def test_files_of_kafka_0_7_go_where_they_are_sent(
    in_process: Command, ottla_broker: InProcessBroker, folder: Path
) -> None:
    ottla_broker.create_topic("from-0-7", partitions=3)
    packed = entry(compress(GZIP, entry(b"two") + entry(b"three")), magic=1, codec=GZIP)
    (folder / f"{0:020d}.kafka").write_bytes(entry(b"one") + packed)
    ran = in_process("log", "import", str(folder), "--topic", "from-0-7", "-p", "2", "-z", "zstd", *at(ottla_broker))
    assert ran.code == 0, ran.err
    assert consumed(in_process, ottla_broker, "from-0-7") == ["2 NULL one", "2 NULL two", "2 NULL three"]


def test_all_partitions_of_a_topic_go_to_their_own(
    in_process: Command, ottla_broker: InProcessBroker, tmp_path: Path
) -> None:
    ottla_broker.create_topic("both", partitions=2)
    for number in range(2):
        made = tmp_path / f"orders-{number}"
        made.mkdir()
        (made / FILE).write_bytes(message(value=b"in %d" % number))
    assert in_process("log", "import", str(tmp_path), "--topic", "both", *at(ottla_broker)).code == 0
    assert sorted(consumed(in_process, ottla_broker, "both")) == ["0 NULL in 0", "1 NULL in 1"]
    os.rename(tmp_path / "orders-1", tmp_path / "orders-2")
    ran = in_process("log", "import", str(tmp_path), "--topic", "both", *at(ottla_broker))
    assert ran.code == faults.NOT_FOUND
    assert "both has 2 partitions, and" in ran.err
    assert len(consumed(in_process, ottla_broker, "both")) == 2, "nothing is sent before all is known"
    os.rename(tmp_path / "orders-2", tmp_path / "others-0")
    ran = in_process("log", "import", str(tmp_path), "--topic", "both", *at(ottla_broker))
    assert (ran.code, "orders, others" in ran.err) == (faults.USAGE, True)


def test_damage_is_named_and_nothing_is_sent(
    in_process: Command, ottla_broker: InProcessBroker, folder: Path, topic: str
) -> None:
    (folder / FILE).write_bytes(message(value=b"sound") + message(offset=1, value=b"torn")[:-2])
    (folder / f"{9:020d}.log").write_bytes(message(offset=9, value=b"behind"))
    words = ["log", "import", str(folder), "--topic", topic, *at(ottla_broker)]
    ran = in_process(*words)
    assert ran.code == faults.FAILED
    assert f"damage: {folder / FILE} at byte 39: no message can be read here" in ran.err
    assert consumed(in_process, ottla_broker, topic) == []
    assert in_process(*words, "--skip-damaged").code == 0
    assert consumed(in_process, ottla_broker, topic) == ["0 NULL sound", "0 NULL behind"]


def test_a_dry_run_counts_and_needs_no_broker(in_process: Command, folder: Path) -> None:
    (folder / FILE).write_bytes(written(1, GZIP))
    ran = in_process("log", "import", str(folder), "--topic", "any", "--dry-run", "-b", "127.0.0.1:1")
    assert (ran.code, ran.out) == (0, f"{folder}: 4 records in 1 segment\n")
    ran = in_process("log", "import", str(folder), "--topic", "any", "--dry-run", "-o", "json")
    assert [(row["folder"], row["records"]) for row in json.loads(ran.out)] == [(str(folder), 4)]


def test_what_is_not_there_is_named(in_process: Command, ottla_broker: InProcessBroker, folder: Path) -> None:
    ran = in_process("log", "import", str(folder / "none"), "--topic", "any")
    assert (ran.code, "there is no folder" in ran.err) == (faults.NOT_FOUND, True)
    ran = in_process("log", "import", str(folder), "--topic", "any")
    assert (ran.code, "no segment (.log, .kafka) is in" in ran.err) == (faults.NOT_FOUND, True)
    (folder / FILE).write_bytes(written(1))
    assert in_process("log", "import", str(folder), "--topic", "a b").code == faults.USAGE


def test_what_was_done_before_a_fault_is_said(
    in_process: Command, ottla_broker: InProcessBroker, tmp_path: Path
) -> None:
    """The second folder has a record that the client does not take: what is in the topic is not to be sent again."""
    ottla_broker.create_topic("halfway", partitions=2)
    for number, values in enumerate(([b"one", b"two"], [b"three", bytes(2_000_000), b"four"])):
        (tmp_path / f"halfway-{number}").mkdir()
        (tmp_path / f"halfway-{number}" / FILE).write_bytes(
            b"".join(message(offset=offset, value=value) for offset, value in enumerate(values))
        )
    folders = [str(tmp_path / f"halfway-{number}") for number in range(2)]
    ran = in_process("log", "import", *folders, "--topic", "halfway", "-o", "json", *at(ottla_broker))
    assert ran.code == faults.FAILED
    assert [(row["folder"], row["records"]) for row in json.loads(ran.out)] == [(folders[0], 2)]
    assert f"{folders[1]}: record 2: a record of " in ran.err
    assert "is over max.request.size, 1048576" in ran.err
    assert ran.err.endswith("; 1 record of this folder is in halfway: another import doubles them\n")
    assert sorted(consumed(in_process, ottla_broker, "halfway", "%v\\n")) == ["one", "three", "two"]


class OneOnItsWay:
    """A producer of which the first record is acknowledged, and whose others are waited for until somebody is tired."""

    def __init__(self) -> None:
        self.flushing = asyncio.Event()
        self.sent = 0

    async def send(self, *_: Any, on_delivery: Callable[[Any], None], **__: Any) -> None:
        self.sent += 1
        if self.sent == 1:
            on_delivery(SimpleNamespace(exception=lambda: None))

    async def flush(self) -> None:
        self.flushing.set()
        await asyncio.Event().wait()


def test_a_ctrl_c_behind_the_last_record_says_what_is_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    records = [SimpleNamespace(key=None, value=b"v", timestamp=-1, headers=[])] * 3
    log: Any = SimpleNamespace(files=SimpleNamespace(path="/old/orders-0"), data=lambda: iter(records))
    producer: Any = OneOnItsWay()
    watch: Any = SimpleNamespace()

    async def stopped() -> None:
        sending = asyncio.create_task(_send(log, producer, watch, "orders", 0))
        await producer.flushing.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending

    asyncio.run(stopped())
    assert "/old/orders-0: stopped; at least 1 record of this folder is in orders" in capsys.readouterr().err
