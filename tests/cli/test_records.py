"""Records from the command line to a topic and back."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Producer

from ottla.cli import faults
from ottla.testing import InProcessBroker
from ottla.testing import broker as broker_in_process
from tests.cli.conftest import Command, environment, run_process

KEPT = pytest.mark.ottla_topic(configs={"retention.ms": "-1"})
THREE_KEPT = pytest.mark.ottla_topic(partitions=3, configs={"retention.ms": "-1"})

#: The time of the first record that `fill` writes, and of each after it a second later.
FIRST_MS = 1_700_000_000_000


@pytest.fixture
def filled(ottla_broker: InProcessBroker, topic: str) -> str:
    """A topic with ten records, `k0` to `k9` and `v0` to `v9`, a second apart."""
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    for number in range(10):
        producer.produce(topic, f"v{number}", f"k{number}", partition=0, timestamp=FIRST_MS + number * 1000)
    assert producer.flush(30) == 0
    return topic


def test_lines_come_back_as_they_were(ottla: Command, topic: str) -> None:
    ran = ottla("produce", topic, stdin=b"one\n\nthree\r\nwithout an end")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    assert ottla("consume", topic, "--from-beginning", "-e").out == "one\n\nthree\r\nwithout an end\n"
    assert ottla("consume", topic, "-e").out == "one\n\nthree\r\nwithout an end\n"  # what is there
    assert ottla("consume", topic, "-e", "-o", "end").out == ""


def test_keys_headers_and_nulls(ottla: Command, topic: str) -> None:
    ran = ottla(
        "produce", topic, "-K", ":", "--null", "NIL", "-H", "from=here", "-z", "lz4", stdin=b"a:1\nNIL:b:c\nd:NIL\n"
    )
    assert ran.code == 0, ran.err
    shown = ottla("consume", topic, "--from-beginning", "-e", "-f", "%k/%K/%v/%V/%h%%\\n", "--null", "-").out
    assert shown == "a/1/1/1/from=here%\n-/-1/b:c/3/from=here%\nd/1/-/-1/from=here%\n"


def test_kafkas_reader_and_formatter(ottla: Command, topic: str) -> None:
    reader = ("--property", "parse.key=true", "--property", "parse.headers=true", "--property", "key.separator=|")
    ran = ottla("produce", "--topic", topic, *reader, stdin=b"h1:v1,h2:v2\tk|v\n")
    assert ran.code == 0, ran.err
    names = ("partition", "offset", "headers", "key", "value")
    formatter = [word for name in names for word in ("--property", f"print.{name}=true")]
    ran = ottla("consume", "--topic", topic, "--from-beginning", "--max-messages", "1", *formatter)
    assert ran.out == "Partition:0\tOffset:0\th1:v1,h2:v2\tk\tv\n"


@THREE_KEPT
def test_envelopes_go_out_and_come_in_again(ottla: Command, topic: str) -> None:
    given: list[dict[str, object]] = [
        {"key": "a", "payload": "1", "headers": ["h", "v", "n", None], "ts": FIRST_MS},
        {"key": None, "payload": None, "headers": [], "ts": FIRST_MS + 1},
        {
            "key": {"base64": "/w=="},
            "payload": "zwei\nZeilen",
            "headers": ["b", {"base64": "/w=="}],
            "ts": FIRST_MS + 2,
        },
    ]
    lines = "\n".join(json.dumps(each) for each in given)
    assert ottla("produce", topic, "-J", "-p", "2", stdin=lines.encode()).code == 0
    first = ottla("consume", topic, "--from-beginning", "-e", "-J").out
    read = [json.loads(line) for line in first.splitlines()]
    assert [{name: each[name] for name in given[0]} for each in read] == given
    assert [(each["topic"], each["partition"], each["offset"]) for each in read] == [(topic, 2, n) for n in range(3)]
    assert ottla("produce", topic, "-J", "-p", "1", stdin=first.encode()).code == 0
    again = ottla("consume", topic, "--from-beginning", "-e", "-J", "-p", "1").out
    assert again == first.replace('"partition":2', '"partition":1')


def test_a_content_that_is_json_keeps_the_digits_of_its_numbers(ottla: Command, topic: str) -> None:
    contents = [
        '{"id":12345678901234567890123,"price":1.10,"small":1e-400,"large":1E400,"none":-0,"exact":0.1234567890123456789}',
        '[19.990,[],{},null,true,"\u00fc"]',
        "1.50",
        "9" * 5000,
    ]
    lines = "\n".join(f'{{"key": 2.50, "headers": ["n", 0.10], "payload": {content}}}' for content in contents)
    assert ottla("produce", topic, "-J", "-p", "0", stdin=lines.encode()).code == 0
    shown = ottla("consume", topic, "--from-beginning", "-e", "-f", "%k %h %v\\n").lines
    assert shown == [f"2.50 n=0.10 {content}" for content in contents]
    for name, kind in (("topic", "text"), ("ts", "a number")):
        ran = ottla("produce", topic, "-J", stdin=f'{{"{name}": 1.5, "payload": ""}}'.encode())
        assert f"line 1: {name} is not {kind}" in ran.err


def test_an_envelope_goes_where_it_says_or_is_refused(ottla: Command, topic: str) -> None:
    named = json.dumps({"topic": topic, "payload": "named"}).encode()
    elsewhere = json.dumps({"topic": "elsewhere", "payload": "other"}).encode()
    assert ottla("produce", "-J", stdin=named).code == 0
    assert ottla("produce", topic, "-J", stdin=named).code == 0
    ran = ottla("produce", topic, "-J", stdin=named + b"\n" + elsewhere)
    assert ran.code == 1
    assert ran.err == (
        f"ottla: line 2: its topic is elsewhere, not {topic}: leave TOPIC out to send each to its own, or give "
        f"--ignore-place to send all to {topic}; 1 record before it was sent\n"
    )
    ran = ottla("produce", "-J", stdin=b'{"payload": "nowhere"}')
    assert (ran.code, "line 1: it names no topic, and neither does the command line" in ran.err) == (1, True)
    assert ottla("produce", topic, "-J", "--ignore-place", stdin=elsewhere).code == 0
    assert ottla("consume", topic, "--from-beginning", "-e").lines == ["named", "named", "named", "other"]
    assert ottla("produce", stdin=b"x").code == faults.USAGE


@THREE_KEPT
def test_an_envelope_goes_to_its_partition(ottla: Command, topic: str) -> None:
    third = json.dumps({"topic": topic, "partition": 2, "payload": "x"}).encode()
    assert ottla("produce", topic, "-J", stdin=third).code == 0
    assert ottla("produce", topic, "-J", "-p", "1", stdin=third).code == 0
    assert ottla("produce", topic, "-J", "--ignore-place", "-k", "a", stdin=third).code == 0
    shown = ottla("consume", topic, "--from-beginning", "-e", "-f", "%p\\n").lines
    assert sorted(shown)[-2:] != ["2", "2"] or len(shown) == 3
    assert {"1", "2"} <= set(shown)
    none = json.dumps({"topic": topic, "partition": 7, "payload": "x"}).encode()
    assert ottla("produce", topic, "-J", stdin=none).code == faults.NOT_FOUND


def test_envelopes_that_would_have_been_nulls_are_refused(ottla: Command, topic: str) -> None:
    ran = ottla("produce", topic, "-J", stdin=b'{"key": "k", "value": "v"}\n')
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("ottla: line 1: it has a field value, which envelopes do not have; did you mean payload")
    assert ottla("consume", topic, "--from-beginning", "-e").lines == []


@KEPT
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--from-beginning"], range(10)),
        (["--offset", "start"], range(10)),
        (["--offset", "end"], range(0)),
        (["--offset", "7"], range(7, 10)),
        (["--offset", "-3"], range(7, 10)),
        (["--offset", "-300"], range(10)),
        (["--offset", f"@{FIRST_MS + 4000}"], range(4, 10)),
        (["--offset", f"@{FIRST_MS + 3999}:{FIRST_MS + 6000}"], range(4, 6)),
        (["--offset", "@2023-11-14T22:13:21:2023-11-14T22:13:24+00:00"], range(1, 4)),
        (["--offset", f"@:{FIRST_MS + 2000}"], range(2)),
        (["--offset", f"@{FIRST_MS + 8000}:"], range(8, 10)),
        (["--offset", "@2001-01-01:2002-01-01"], range(0)),
        (["--offset", "@2023-12-01"], range(0)),
        (["--from-beginning", "-c", "2"], range(2)),
        (["--from-beginning", "-p", "0"], range(10)),
    ],
)
def test_where_to_begin_and_where_to_end(ottla: Command, filled: str, words: list[str], expected: range) -> None:
    ran = ottla("consume", filled, *words, "-e")
    assert ran.code == 0, ran.err
    assert ran.lines == [f"v{number}" for number in expected]


@KEPT
def test_a_range_of_times_ends_by_itself(ottla: Command, filled: str) -> None:
    assert ottla("consume", filled, "--offset", f"@{FIRST_MS}:{FIRST_MS + 2000}").lines == ["v0", "v1"]


@KEPT
def test_a_range_that_ends_in_the_future_ends_with_the_first_record_of_that_time(ottla: Command, filled: str) -> None:
    soon = json.dumps({"payload": "late", "ts": 4_000_000_000_000})
    settings = ("--topic", filled, "--config", "message.timestamp.after.max.ms=9000000000000")
    assert ottla("config", "alter", *settings).code == 0
    assert ottla("produce", filled, "-J", stdin=soon.encode()).code == 0
    assert ottla("consume", filled, "--offset", f"@{FIRST_MS + 8000}:2090-01-01").lines == ["v8", "v9"]


@KEPT
def test_silence_ends_it_where_a_time_was_given(ottla: Command, filled: str) -> None:
    ran = ottla("consume", filled, "--from-beginning", "--timeout-ms", "2000")
    assert (ran.code, len(ran.lines)) == (0, 10)


@THREE_KEPT
def test_partitions_that_have_nothing_do_not_keep_it_from_ending(ottla: Command, filled: str) -> None:
    assert len(ottla("consume", filled, "--from-beginning", "-e").lines) == 10
    assert ottla("consume", filled, "--from-beginning", "-e", "-p", "1", "-p", "2").lines == []
    assert ottla("consume", filled, "--offset", "0", "-p", "3").code == faults.NOT_FOUND


@KEPT
def test_an_offset_that_is_yet_to_come_is_waited_for(ottla: Command, filled: str) -> None:
    assert ottla("consume", filled, "--offset", "11", "-e").lines == []
    assert ottla("consume", filled, "--offset", "11", "--timeout-ms", "200").lines == []
    command = [sys.executable, "-m", "ottla", "consume", filled, "--offset", "11", "-c", "1", "-f", "%o %v"]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, env=environment(OTTLA_BOOTSTRAP_SERVER=os.environ["OTTLA_BOOTSTRAP_SERVER"])
    )
    try:
        assert ottla("produce", filled, stdin=b"ten\neleven\ntwelve\n").code == 0
        assert child.communicate(timeout=60)[0] == b"11 eleven"
    finally:
        child.kill()
        child.communicate()


def test_an_offset_that_is_empty_is_none(in_process: Command) -> None:
    for words in (["-o", ""], ["-o", "", "-e"], ["--offset="]):
        ran = in_process("consume", "t", *words, "-b", "127.0.0.1:1")
        assert (ran.code, ran.out) == (faults.USAGE, ""), ran


def test_it_goes_on_for_ever_until_ctrl_c(ottla_broker: InProcessBroker, topic: str) -> None:
    command = [sys.executable, "-m", "ottla", "consume", topic, "--bootstrap-server", ottla_broker.bootstrap]
    child = subprocess.Popen(
        [*command, "--from-beginning"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert child.stdout is not None
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    for text in (b"first", b"second"):
        producer.produce(topic, text)
        assert producer.flush(30) == 0
        assert child.stdout.readline() == text + b"\n"
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out, err) == (faults.INTERRUPTED, b"", b"")


def test_ctrl_c_does_not_wait_for_one_more_line(ottla_broker: InProcessBroker, topic: str) -> None:
    command = [sys.executable, "-m", "ottla", "produce", topic, "--bootstrap-server", ottla_broker.bootstrap]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = subprocess.Popen(command, env=environment(), **pipes)  # type: ignore[call-overload]
    child.stdin.write(b"sent at once\n")
    child.stdin.flush()
    reading = [sys.executable, "-m", "ottla", "consume", topic, "--bootstrap-server", ottla_broker.bootstrap]
    read = subprocess.run(
        [*reading, "--from-beginning", "-c", "1"], capture_output=True, env=environment(), timeout=60, check=True
    )
    assert read.stdout == b"sent at once\n"
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert (child.returncode, err) == (faults.INTERRUPTED, b"")


# What goes wrong


def test_a_line_that_is_not_what_it_should_be_ends_it_after_those_before(ottla: Command, topic: str) -> None:
    ran = ottla("produce", topic, "-K", ":", stdin=b"a:1\nb\nc:3\n")
    assert (ran.code, ran.err) == (
        1,
        "ottla: line 2: there is no ':' between key and value; 1 record before it was sent\n",
    )
    ran = ottla("produce", topic, "-J", stdin=b'{"payload": "2"}\n{"payload"\n')
    assert ran.code == 1
    assert "line 2: it is not JSON" in ran.err
    assert ottla("consume", topic, "--from-beginning", "-e").lines == ["1", "2"]


@KEPT
@pytest.mark.parametrize(
    ("words", "second", "said"),
    [
        ((), "x" * 2_000_000, "line 2: a record of 2000032 bytes is over max.request.size, 1048576"),
        (("-J",), '{"payload": "x", "ts": -5}', "line 2: timestamp must be from 0 to"),
        (("-J",), '{"payload": "x", "partition": 7}', "line 2: TOPIC has no partition 7"),
        (("-f", "%p %v\\n"), "9999999999 x", "record 2: partition must be from 0 to 2147483647, not 9999999999"),
    ],
    ids=["large", "time", "partition", "number"],
)
def test_a_record_that_cannot_be_sent_is_named_too(
    ottla: Command, topic: str, words: tuple[str, ...], second: str, said: str
) -> None:
    first = '{"payload": "a"}' if words == ("-J",) else "0 a" if words else "a"
    ran = ottla("produce", topic, *words, stdin=f"{first}\n{second}\n{first}\n".encode())
    assert ran.code in {faults.FAILED, faults.NOT_FOUND}
    assert said.replace("TOPIC", topic) in ran.err
    assert ran.err.endswith("; 1 record before it was sent\n")
    assert ottla("consume", topic, "-o", "start", "-e").lines == ["a"]


def test_records_that_the_broker_refuses(ottla: Command, ottla_broker: InProcessBroker) -> None:
    ottla_broker.create_topic("small", configs={"max.message.bytes": "200"})
    ran = ottla("produce", "small", stdin=b"x" * 500 + b"\n")
    assert ran.code == faults.FAILED
    assert ran.err.startswith("ottla: 1 record was not acknowledged: ")
    ottla_broker.delete_topic("small")


def test_a_partition_and_a_topic_that_are_not_there(ottla: Command, topic: str) -> None:
    assert ottla("consume", "none", "-e").code == faults.NOT_FOUND
    assert ottla("produce", topic, "-p", "7", stdin=b"x\n").code == faults.NOT_FOUND


def test_settings_of_the_client(ottla: Command, topic: str) -> None:
    assert ottla("produce", topic, "--producer-property", "linger.ms=0", "--acks", "1", stdin=b"x\n").code == 0
    ran = ottla("consume", topic, "--consumer-property", "fetch.min.byte=1")
    assert (ran.code, "fetch.min.bytes" in ran.err) == (faults.USAGE, True)
    ran = ottla("produce", topic, "--acks", "0", "--producer-property", "enable.idempotence=true", stdin=b"x\n")
    assert ran.code == faults.USAGE


# Measuring


def test_perf_produce_and_consume(ottla: Command, topic: str) -> None:
    ran = ottla("perf", "produce", topic, "--num-records", "2000", "--record-size", "50", "-o", "json")
    made = json.loads(ran.out)
    assert (ran.code, made["records"]) == (0, 2000)
    assert 0 < made["latency_ms_p50"] <= made["latency_ms_p99"] <= made["latency_ms_max"]
    read = json.loads(ottla("perf", "consume", topic, "--messages", "2000", "-o", "json").out)
    assert read["records"] == 2000
    ran = ottla("perf", "consume", topic, "--messages", "2001", "--timeout", "2000")
    assert ran.code == faults.FAILED
    assert ran.lines[0].split() == ["records", "2000"]


def test_perf_produce_keeps_to_a_rate(ottla: Command, topic: str) -> None:
    words = ("--num-records", "60", "--throughput", "300", "--producer-props", "acks=1", "linger.ms=0")
    made = json.loads(ottla("perf", "produce", topic, *words, "-o", "json").out)
    assert made["seconds"] >= 0.19


def test_a_file_as_standard_input(ottla_broker: InProcessBroker, ottla: Command, topic: str, tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(20_000)]
    file = tmp_path / "lines"
    file.write_text("\n".join(lines))
    command = [sys.executable, "-m", "ottla", "produce", topic, "--bootstrap-server", ottla_broker.bootstrap]
    with file.open("rb") as opened:
        subprocess.run(command, stdin=opened, env=environment(), timeout=60, check=True)
    assert ottla("consume", topic, "--from-beginning", "-e").lines == lines


def test_why_a_partition_takes_nothing(in_process: Command, tmp_path: Path) -> None:
    """One of two log directories is lost: the partition in it has no leader any more."""
    folders = [tmp_path / "data", tmp_path / "more"]
    with broker_in_process(properties={"log.dirs": ",".join(map(str, folders))}) as broker:
        broker.create_topic("halved", partitions=2)
        lost = 0 if (folders[1] / "halved-0").exists() else 1
        shutil.rmtree(folders[1])
        folders[1].write_text("a file in its place")
        words = ("--bootstrap-server", broker.bootstrap)
        settings = {"delivery.timeout.ms": "1500", "request.timeout.ms": "500", "linger.ms": "0"}
        named = [word for pair in settings.items() for word in ("--producer-property", "=".join(pair))]
        in_process("topic", "create", "notices", "--partitions", "2", *words)
        ran = run_process(("produce", "halved", "-p", str(lost), *words, *named), stdin=b"hello\n")
    assert ran.code == faults.UNREACHABLE
    assert ran.err == (
        f"ottla: halved-{lost} has no leader (`ottla cluster health` says why); trying again\n"
        f"ottla: 1 record was not acknowledged: halved-{lost}: 1 record was not acknowledged within 1500 ms; "
        f"the last fault was: halved-{lost}: it has no leader\n"
    )
