"""Expressions that choose records."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli import faults
from ottla.cli.where import parse_where
from ottla.cli.where.parsing import CHARACTERS_MAX
from ottla.client.records import ConsumerRecord
from ottla.testing import InProcessBroker
from tests.cli.conftest import Command

ORDER = {
    "amount": 12.5,
    "count": 3,
    "who": {"name": "Alice", "from": "Bern", "order-id": "o-1"},
    "tags": ["new", "paid"],
    "lines": [{"price": 2}, {"price": 5}],
    "paid": True,
    "note": None,
}


def record(
    key: bytes | None = b"alice",
    value: bytes | None = json.dumps(ORDER).encode(),
    headers: tuple[tuple[str, bytes | None], ...] = (("source", b"web"), ("try", b"1"), ("try", b"2"), ("none", None)),
    **more: Any,
) -> ConsumerRecord:
    fields = {"topic": "orders", "partition": 2, "offset": 41, "timestamp": 1_700_000_000_000, **more}
    return ConsumerRecord(key=key, value=value, headers=headers, timestamp_type=0, leader_epoch=-1, **fields)


@pytest.mark.parametrize(
    "expression",
    [
        "key == 'alice'",
        "key == 'alice' and value.amount > 10",
        "key != 'bob' and not (value.amount < 10 or value.count == 4)",
        "value.who.name == 'Alice'",
        "value['who']['from'] == \"Bern\" and value.who['order-id'] == 'o-1'",
        "'paid' in value.tags and 'lost' not in value.tags",
        "value.lines[1].price == 5 and value.lines[-1].price == 5",
        "value.lines[0].price * value.count + 1 == 7 and value.count / 2 == 1.5 and -value.count % 2 == 1",
        "value.paid and value.paid == true and value.paid is True",
        "value.note == null and value.note is None and value.nothing == null",
        "headers.source == 'web' and headers['try'] == '2' and headers.none is null",
        "'source' in headers and 'none' in headers and 'lost' not in headers",
        "partition == 2 and offset >= 41 and 40 < offset < 42 and topic == 'orders'",
        "timestamp == 1700000000000 and timestamp > time('2023-11-14T22:13:19')",
        "key in ['alice', 'bob'] and partition in (1, 2)",
        "'lic' in key and startswith(key, 'al') and endswith(key, 'ice') and matches(key, '^a.*e$')",
        "len(key) == 5 and len(value.tags) == 2 and upper(key) == 'ALICE' and lower(value.who.name) == 'alice'",
        "number(headers['try']) == 2 and number('1.5') > 1 and number('x') is null",
        "  key == 'alice'\n",
    ],
)
def test_what_holds(expression: str) -> None:
    assert parse_where(expression)(record())


@pytest.mark.parametrize(
    "expression",
    [
        "value.amount > '10'",  # text and numbers have no order among each other
        "value.amount == '12.5'",
        "value.paid == 1",
        "value.missing > 0 or value.missing <= 0",
        "value.who > 1",
        "value.tags[7] == 'new' or value.tags.new or value.lines.price",
        "value.tags[true] == 'paid'",
        "'a' in 5 or 5 in 'a' or 5 in value.tags",
        "1 / 0 == 1 or 1 % 0 == 0 or value.who + 1 == 1 or -value.who == 1 or key * 3 == 'alicealicealice'",
        "number(value.tags) or len(5) or upper(5) or startswith(5, 'a') or matches(5, 'a')",
        "headers.missing",
        "key.anything == 'alice'",  # the key is no JSON
        "null",
    ],
)
def test_what_does_not_hold(expression: str) -> None:
    assert not parse_where(expression)(record())


def test_records_of_all_kinds() -> None:
    nothing = record(key=None, value=None, headers=())
    assert parse_where("key is null and value == null and value.x is null and len(key) is null")(nothing)
    binary = record(key=b"\xff\xfe", value=b"\xff{")
    assert parse_where("key != 'a' and len(key) == 2 and value.x is null and not (value < 'z')")(binary)
    assert parse_where("value.x == 1 and value == '{\"x\": 1}'")(record(value=b'{"x": 1}'))
    assert parse_where("value[0] == 1")(record(value=b"[1]"))
    assert not parse_where("value.a")(record(value=b"[" * 100_000))
    assert parse_where("key.id == 7")(record(key=b'{"id": 7}'))


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "not an expression"),
        ("key = 'a'", "write =="),
        ("key == alice", "column 8: there is no 'alice'; known are key, value,"),
        ("value.order-id == 1", "value['order-id']"),
        ("value.from == 'x'", "value['from']"),
        ("key == 'a", "not an expression"),
        ("key == 'a' && value", "not an expression"),
        ("__import__('os').system('true')", "functions stand alone"),
        ("open('/etc/passwd')", "there is no function 'open'; known are len, number,"),
        ("(lambda: 1)()", "functions stand alone"),
        ("lambda: 1", "there is nothing like lambda"),
        ("[x for x in value]", "there is nothing like [x for x in value]"),
        ("key if value else key", "there is nothing like"),
        ("f'{key}'", "there is nothing like"),
        ("key := 1", "not an expression"),
        ("(key := 1)", "there is nothing like"),
        ("value.tags[0:1]", "slices"),
        ("2 ** 99999", "nothing else"),
        ("~offset == 1", "only not and -"),
        ("b'a' == key", "neither text nor a number"),
        ("1j == key", "neither text nor a number"),
        ("... == key", "neither text nor a number"),
        ("partition.x == 1", "partition has no fields"),
        ("len()", "len takes 1 value, not 0"),
        ("startswith(key)", "startswith takes 2 values, not 1"),
        ("len(*value)", "plain values"),
        ("startswith(key, start='a')", "plain values"),
        ("matches(key, '(')", "not a regular expression"),
        ("matches(key, value)", "as text in quotes"),
        ("timestamp > time('soon')", "'soon' is not a time"),
        ("key == 'a'\0", "null byte"),
        ("(" * 5000 + ")" * 5000, "longer than"),
        ("not " * 1000 + "key", "nested too deeply"),
        ("-" * 3000 + "1", "nested too deeply"),
        ("(" * 1500 + "1" + ")" * 1500, "not an expression"),
        ("1" + "+1" * 1200, "nested too deeply"),
        ("1" * (CHARACTERS_MAX + 1), "longer than"),
    ],
)
def test_mistakes_are_one_line_that_helps(expression: str, said: str) -> None:
    with pytest.raises(faults.UsageFault) as caught:
        parse_where(expression)
    assert said in str(caught.value)
    assert len(str(caught.value)) < CHARACTERS_MAX


PIECES = st.sampled_from([
    *("key", "value", "headers", "offset", ".a", "[0]", "['b']", "(", ")", "==", "<", "in", "not", "and", "or", "is"),
    *("-", "*", "%", "1", "'x'", "null", "len(", "matches(", ",", "true", "[", "]", "~", "lambda", "1e999", ":", "="),
])  # fmt: skip
CONTENT = st.one_of(
    st.none(), st.binary(max_size=8), st.sampled_from([b"1", b"[[1]]", b'{"a": [1, {"b": "x"}]}', b"NaN"])
)


@given(pieces=st.lists(PIECES, max_size=12), key=CONTENT, value=CONTENT)
def test_any_text_is_refused_or_answers_for_any_record(
    pieces: list[str], key: bytes | None, value: bytes | None
) -> None:
    try:
        holds = parse_where(" ".join(pieces))
    except faults.UsageFault:
        return
    assert holds(record(key=key, value=value, headers=(("a", value),))) in {True, False}


def test_numbers_cannot_be_made_to_fill_the_memory() -> None:
    digits = b'{"n": ' + b"9" * 1000 + b"}"
    assert parse_where("value.n * value.n > value.n")(record(value=digits))
    assert parse_where("*".join(["value.n"] * 80) + " == null")(record(value=digits))


@pytest.fixture
def filled(ottla_broker: InProcessBroker, topic: str) -> str:
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    for number in range(100):
        value = json.dumps({"n": number, "even": number % 2 == 0})
        producer.produce(topic, value, f"k{number % 10}", partition=0, headers={"mod": str(number % 7)})
    assert producer.flush(30) == 0
    return topic


def test_consume_prints_what_is_wanted_and_counts_nothing_else(ottla: Command, filled: str) -> None:
    words = ("consume", filled, "--from-beginning", "-e", "-f", "%o\\n", "--where")
    assert ottla(*words, "value.n >= 10 and value.even and key == 'k4'").lines == [str(n) for n in range(14, 100, 10)]
    assert ottla(*words, "headers.mod == '3'", "-c", "2").lines == ["3", "10"]
    assert ottla(*words, "offset > 200").lines == []


def test_consume_refuses_a_bad_expression_before_it_connects(in_process: Command) -> None:
    ran = in_process("consume", "t", "--where", "kee == 1", "--bootstrap-server", "127.0.0.1:1")
    assert ran.code == faults.USAGE
    assert "there is no 'kee'" in ran.err
