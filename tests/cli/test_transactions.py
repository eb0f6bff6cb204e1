"""`ottla txn`, and transactions of `produce` and `consume`."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

import pytest

from ottla.cli import faults
from ottla.client.admin.admin import Admin
from ottla.client.sync import Producer
from ottla.model import TopicPartition
from ottla.testing import InProcessBroker
from tests.cli.conftest import Command, environment
from tests.client.admin.test_transactions import write_behind_the_end


@pytest.fixture
def opened(ottla_broker: InProcessBroker, topic: str) -> Iterator[Producer]:
    """A producer whose transaction is open, with a record in partition 0; its id is the topic's name."""
    with Producer(bootstrap_servers=ottla_broker.bootstrap, transactional_id=topic) as producer:
        producer.begin()
        producer.send_and_wait(topic, b"open", partition=0)
        yield producer


def test_the_input_is_one_transaction(process: Command, topic: str) -> None:
    assert process("produce", topic, "--transactional-id", topic, stdin=b"one\ntwo\n").code == 0
    assert process("consume", topic, "--read-committed", "-e").lines == ["one", "two"]


def test_a_line_that_is_none_aborts_it(process: Command, topic: str) -> None:
    ran = process("produce", topic, "-K", ":", "--transactional-id", topic, stdin=b"a:one\nno key\n")
    assert (ran.code, ran.err.count("\n")) == (faults.FAILED, 1)
    assert process("consume", topic, "--read-committed", "-e").lines == []


class Producing:
    """`ottla produce --transactional-id` in an interpreter of its own, whose input does not end by itself."""

    def __init__(self, broker: InProcessBroker, topic: str, *words: str) -> None:
        command = [sys.executable, "-m", "ottla", "produce", topic, "--bootstrap-server", broker.bootstrap]
        self._child = subprocess.Popen(
            [*command, "--transactional-id", topic, *words],
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def write(self, line: bytes) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(line)
        self._child.stdin.flush()

    def answers_first(self) -> bytes:
        """The first of its answers; nobody reads the others."""
        assert self._child.stdout is not None
        with self._child.stdout as out:
            return out.readline()

    def writes_until_it_ends(self, line: bytes) -> tuple[int, bytes]:
        while self._child.poll() is None:
            with suppress(BrokenPipeError):
                self.write(line)
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(0.05)
        return self.ended()

    def signalled(self, number: int) -> None:
        self._child.send_signal(number)

    def ended(self) -> tuple[int, bytes]:
        """Its exit code, and what it has said of what went wrong."""
        try:
            self._child.wait(60)
            assert self._child.stderr is not None
            return self._child.returncode, self._child.stderr.read()
        finally:
            self._child.kill()
            self._child.wait()
            for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
                if pipe is not None:
                    with suppress(BrokenPipeError):
                        pipe.close()


def assert_nothing_is_committed_or_open(ottla: Command, topic: str) -> None:
    """It is aborted when the command has ended, and not by its time-out: an id that comes next waits for nobody."""
    assert ottla("consume", topic, "-e").lines == ["one"]
    assert ottla("consume", topic, "--read-committed", "-e").lines == []
    (row,) = json.loads(ottla("txn", "describe", topic, "-o", "json").out)
    assert row["state"] in {"PrepareAbort", "CompleteAbort"}
    assert ottla("produce", topic, "--transactional-id", topic, stdin=b"next\n").code == 0
    assert ottla("consume", topic, "--read-committed", "-e").lines == ["next"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_aborts_it(ottla: Command, ottla_broker: InProcessBroker, topic: str, number: int) -> None:
    producing = Producing(ottla_broker, topic)
    producing.write(b"one\n")
    assert ottla("consume", topic, "--from-beginning", "-c", "1").lines == ["one"]
    producing.signalled(number)
    assert producing.ended() == (128 + number, b"")
    assert_nothing_is_committed_or_open(ottla, topic)


def test_nobody_who_reads_its_answers_aborts_it(ottla: Command, ottla_broker: InProcessBroker, topic: str) -> None:
    """As with `| head -1`: what it has said of the first is read, and what comes behind it cannot be said."""
    producing = Producing(ottla_broker, topic, "-o", "%o\\n")
    producing.write(b"one\n")
    assert producing.answers_first() == b"0\n"
    assert producing.writes_until_it_ends(b"two\n") == (faults.BROKEN_PIPE, b"")
    assert set(ottla("consume", topic, "-e").lines) == {"one", "two"}
    assert ottla("consume", topic, "--read-committed", "-e").lines == []


def test_readers_end_before_what_is_open(ottla: Command, opened: Producer, topic: str) -> None:
    assert ottla("consume", topic, "-e").lines == ["open"]
    assert ottla("consume", topic, "-e", "--read-committed").lines == []
    opened.commit()
    assert ottla("consume", topic, "-e", "--isolation-level", "read_committed").lines == ["open"]
    ran = ottla("consume", topic, "--read-committed", "--isolation-level", "read_uncommitted")
    assert ran.code == faults.USAGE


def test_list_and_describe(ottla: Command, opened: Producer, topic: str) -> None:
    def ids(*words: str) -> set[str]:
        return {row["transactional_id"] for row in json.loads(ottla("txn", "list", "-o", "json", *words).out)}

    assert topic in ids("--state", "ongoing,empty", "--duration-filter", "0")
    assert topic not in ids("--state", "completecommit")
    assert ids("--transactional-id-pattern", topic) == {topic}
    assert "STATE" in ottla("txn", "list").lines[0]
    assert ottla("txn", "list", "--state", "open").code == faults.USAGE
    (row,) = json.loads(ottla("txn", "describe", topic, "-o", "json").out)
    assert row["state"] == "Ongoing"
    assert row["partitions"] == [f"{topic}-0"]
    assert row["duration_ms"] >= 0
    assert f"{topic}-0" in ottla("txn", "describe", "--transactional-id", topic).lines[1]
    assert ids("--producer-id", str(row["producer_id"])) == {topic}
    ran = ottla("txn", "describe", "nobody")
    assert (ran.code, ran.err) == (
        faults.NOT_FOUND,
        "ottla: nobody: there is no such transactional id; `ottla txn list` names those that there are\n",
    )
    assert ottla("txn", "describe").code == faults.USAGE


def test_none_hangs_that_a_coordinator_knows(ottla: Command, opened: Producer, topic: str) -> None:
    assert json.loads(ottla("txn", "find-hanging", topic, "-o", "json").out) == []
    assert json.loads(ottla("txn", "find-hanging", topic, "--max-transaction-timeout", "0", "-o", "json").out) == []
    assert json.loads(ottla("txn", "find-hanging", "--broker", "1", "-o", "json").out) == []
    assert ottla("txn", "find-hanging", "--partition", "0").code == faults.USAGE
    assert ottla("txn", "find-hanging", topic, "--partition", "7").code == faults.NOT_FOUND
    assert ottla("txn", "find-hanging", "--broker", "7").code == faults.NOT_FOUND


def test_an_end_by_hand(ottla: Command, opened: Producer, topic: str) -> None:
    """By the offset at which it begins; the marker is the partition's matter, and its coordinator is not asked."""
    abort = ("txn", "abort", topic, "--partition", "0")
    planned = ottla(*abort, "--start-offset", "0", "-o", "json")
    assert planned.code == faults.NOT_CONFIRMED
    (row,) = json.loads(planned.out)
    assert row["start_offset"] == 0
    assert ottla(*abort, "--start-offset", "5").code == faults.NOT_FOUND
    assert ottla(*abort, "--producer-id", str(row["producer_id"]), "--producer-epoch", "99").code == faults.NOT_FOUND
    for words in ((), ("--start-offset", "0", "--producer-id", "1")):
        assert ottla(*abort, *words).code == faults.USAGE
    assert ottla("txn", "abort", topic, "--start-offset", "0").code == faults.USAGE
    done = ottla(*abort, "--producer-id", str(row["producer_id"]), "--yes")
    assert (done.code, done.lines[-1]) == (0, "aborted")
    assert ottla(*abort, "--start-offset", "0", "--yes").code == faults.NOT_FOUND
    assert ottla("consume", topic, "-e", "--read-committed").lines == []


def test_one_that_hangs_is_found_and_ended(in_process: Command) -> None:
    """As brokers before KIP-890 let them arise: a batch comes behind its transaction's end."""
    topic = "hanging"
    with InProcessBroker(properties={"transaction.partition.verification.enable": "false"}) as broker:
        to = ("-b", broker.bootstrap)
        assert in_process("topic", "create", topic, *to).code == 0
        producer_id, epoch = asyncio.run(leave_one_hanging(broker.bootstrap, topic))
        find = ("txn", "find-hanging", topic, *to)
        assert json.loads(in_process(*find, "--max-transaction-timeout", "30", "-o", "json").out) == []
        (row,) = json.loads(in_process(*find, "-o", "json").out)  # longer than fifteen minutes
        assert row.pop("last_timestamp") > 0
        assert row == {
            "topic": topic,
            "partition": 0,
            "producer_id": producer_id,
            "producer_epoch": epoch,
            "coordinator_epoch": row["coordinator_epoch"],
            "start_offset": 0,
            "duration_minutes": 20,
        }
        assert json.loads(in_process("txn", "find-hanging", *to, "-o", "json").out) != []  # of all topics
        header, line = in_process(*find).lines
        assert header.split()[:5] == ["TOPIC", "PARTITION", "PRODUCER", "EPOCH", "COORDINATOR"]
        assert line.split()[:4] == [topic, "0", str(producer_id), str(epoch)]
        assert in_process("consume", topic, *to, "-e", "--read-committed").lines == []
        abort = ("txn", "abort", topic, "--partition", "0", "--start-offset", str(row["start_offset"]), *to)
        assert in_process(*abort).code == faults.NOT_CONFIRMED
        done = in_process(*abort, "--yes")
        assert (done.code, done.lines[-1]) == (0, "aborted")
        assert json.loads(in_process(*find, "-o", "json").out) == []
        # Readers of what is committed go on behind it.
        assert in_process("produce", topic, *to, stdin=b"behind\n").code == 0
        assert in_process("consume", topic, *to, "-e", "--read-committed").lines == ["behind"]


async def leave_one_hanging(bootstrap: str, topic: str) -> tuple[int, int]:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        producer = (await admin.fence_producers([topic]))[topic]
        await write_behind_the_end(admin, TopicPartition(topic, 0), producer, age_ms=20 * 60_000)
        return producer.producer_id, producer.epoch


def test_epochs_belong_to_a_producer(in_process: Command) -> None:
    for option in ("--producer-epoch", "--coordinator-epoch"):
        ran = in_process("txn", "abort", "t", "-p", "0", "--start-offset", "1", option, "3", "-b", "127.0.0.1:1")
        assert (ran.code, "belong to --producer-id" in ran.err) == (faults.USAGE, True), ran
