"""`ottla txn`, and transactions of `produce` and `consume`."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from ottla.cli import faults
from ottla.client.sync import Producer
from ottla.testing import InProcessBroker
from tests.cli.conftest import Command


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
