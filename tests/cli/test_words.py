"""The small languages of the command line: offsets, times, assignments, formats, lines, envelopes, tables."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.assignments import assignment_lists, assignments, names
from ottla.cli.envelope import EnvelopeFault, RecordEnvelope, envelope
from ottla.cli.faults import UsageFault
from ottla.cli.format_tokens import escaped
from ottla.cli.lines import LineFault, ParsedRecord, kafka_lines
from ottla.cli.offsets import EARLIEST, LATEST, OffsetPoint, parse_place, parse_time
from ottla.cli.output import show, table_of
from ottla.cli.record_format import console_format, parse_format
from ottla.client.records import ConsumerRecord

NOVEMBER_21_10H = 1_795_255_200_000  # 2026-11-21T10:00:00Z


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("start", OffsetPoint(word=EARLIEST)),
        ("Earliest", OffsetPoint(word=EARLIEST)),
        ("beginning", OffsetPoint(word=EARLIEST)),
        ("end", OffsetPoint(word=LATEST)),
        ("latest", OffsetPoint(word=LATEST)),
        ("0", OffsetPoint(offset=0)),
        ("9223372036854775807", OffsetPoint(offset=2**63 - 1)),
        ("-10", OffsetPoint(before_end=10)),
        ("@0", OffsetPoint(time_ms=0)),
        ("@1700000000000:1700000001000", OffsetPoint(time_ms=1_700_000_000_000, until_ms=1_700_000_001_000)),
        ("@1700000000000:@1700000001000", OffsetPoint(time_ms=1_700_000_000_000, until_ms=1_700_000_001_000)),
        ("@2026-11-21T10:00", OffsetPoint(time_ms=NOVEMBER_21_10H)),
        (
            "@2026-11-21T10:00:00:2026-11-21T11:00",
            OffsetPoint(time_ms=NOVEMBER_21_10H, until_ms=NOVEMBER_21_10H + 3_600_000),
        ),
        (
            "@2026-11-21T10:00+00:00:2026-11-21T13:00+02:00",
            OffsetPoint(time_ms=NOVEMBER_21_10H, until_ms=NOVEMBER_21_10H + 3_600_000),
        ),
        (f"@2026-11-21T10:00:{NOVEMBER_21_10H}", OffsetPoint(time_ms=NOVEMBER_21_10H, until_ms=NOVEMBER_21_10H)),
        ("@:2026-11-21T10:00", OffsetPoint(time_ms=0, until_ms=NOVEMBER_21_10H)),
        ("@2026-11-21T10:00:", OffsetPoint(time_ms=NOVEMBER_21_10H)),
    ],
)
def test_places(text: str, place: OffsetPoint) -> None:
    assert parse_place(text) == place


@pytest.mark.parametrize(
    "text",
    [
        *("", "-", "--1", "middle", "1.5", "9223372036854775808", "\u0661"),
        *("@", "@@", "@yesterday", "@2:1", "@1:x"),
        *("1" * 5000, f"-{'1' * 5000}", f"@{'1' * 5000}", f"@5:{'1' * 5000}"),
    ],
)
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(UsageFault) as refused:
        parse_place(text)
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("2026-11-21", NOVEMBER_21_10H - 36_000_000),
        ("20261121", NOVEMBER_21_10H - 36_000_000),
        ("2026-11-21T10", NOVEMBER_21_10H),
        ("2026-11-21 10:00:00.250", NOVEMBER_21_10H + 250),
        ("2026-11-21T10:00:00Z", NOVEMBER_21_10H),
        ("2026-11-21T11:00:00+01:00", NOVEMBER_21_10H),
        ("1795255200000", NOVEMBER_21_10H),
        ("99999999", 99_999_999),
        (f"{'0' * 5000}5", 5),
        ("1" * 5000, None),
        ("1969-12-31T23:59:59.999", 0),
        ("10:00", None),
        ("now", None),
    ],
)
def test_times(text: str, ms: int | None) -> None:
    assert parse_time(text) == ms


def test_assignments() -> None:
    assert assignments("--config", ["a=1", "b=[1,2]", "c=x=y", "a=2", "d="]) == {
        "a": "2",
        "b": "1,2",
        "c": "x=y",
        "d": "",
    }
    assert assignment_lists("--add-config", ["a=1,b=[x,y]", "c=z"]) == {"a": "1", "b": "x,y", "c": "z"}
    assert names(["a,b", " c "]) == ["a", "b", "c"]
    for text in ("a", "=1", ""):
        with pytest.raises(UsageFault, match="is not NAME=VALUE"):
            assignments("--config", [text])


# Records


def record(**fields: Any) -> ConsumerRecord:
    given_fields: dict[str, Any] = {
        "topic": "t",
        "partition": 3,
        "offset": 7,
        "timestamp": 1000,
        "timestamp_type": 0,
        "key": b"k",
        "value": b"v",
        "headers": (),
        "leader_epoch": 0,
        **fields,
    }
    return ConsumerRecord(**given_fields)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("", b""),
        ("%t %p %o %T %k %K %v %V %s %S %h|%%", b"t 3 7 1000 k 1 v 1 v 1 |%"),
        ("%v\\n\\t\\r\\0\\\\\\xff", b"v\n\t\r\0\\\xff"),
        ("\u00e4%v", "\u00e4v".encode()),
        # rpk's
        ("%d %e %i %H %{%}%%", b"1000 0 1 0 {}%"),
        ("%v{hex} %k{base64} %k{base64raw} %t{hex}", b"76 aw== aw 74"),
        ("%o{big32}%o{little16}%o{byte}", b"\0\0\0\x07\x07\0\x07"),
        ("%o{hex64} %p{hex8} %p{hex4} %K{bool} %o{ascii}", b"0000000000000007 03 3 true 7"),
        ("%d{strftime[%F %T]}", b"1970-01-01 00:00:01"),
        ("%d{strftime### [%F] ###}", b" [1970-01-01] "),
        ("%d{go[2006-01-02T15:04:05.000Z07:00]} %d{hex16}", b"1970-01-01T00:00:01.000Z 03e8"),
        # kcat's
        ("%R%s", b"\0\0\0\x01v"),
    ],
)
def test_formats(text: str, printed: bytes) -> None:
    assert parse_format(text, b"null")(record()) == printed


def test_a_format_with_nulls_and_headers() -> None:
    empty = record(key=None, value=None, headers=(("a", b"1"), ("b", None)))
    assert parse_format("%k %K %v %V %h", b"null")(empty) == b"null -1 null -1 a=1,b=null"
    assert parse_format("%H%h{ %k=%v{hex}/%V}", b"-")(empty) == b"2 a=31/1 b=-/-1"
    assert parse_format("%k{hex} %v{base64}", b"null")(empty) == b"null null"


def test_a_format_counts_its_records_and_shows_any_time() -> None:
    numbered = parse_format("%i %d{strftime[%Y]}", b"")
    assert [numbered(record()), numbered(record(timestamp=2**62))] == [b"1 1970", b"2 %d" % 2**62]


@pytest.mark.parametrize(
    "text",
    [
        *("%", "%q", "\\", "\\q", "\\x", "\\x1", "\\xzz"),
        *("%v{", "%v{octal}", "%v{hex", "%o{base64}", "%o{big128}", "%d{strftime[%F}", "%h{%o}"),
    ],
)
def test_formats_that_mean_nothing(text: str) -> None:
    with pytest.raises(UsageFault):
        parse_format(text, b"")


def test_kafkas_formatter() -> None:
    named = ("timestamp", "partition", "offset", "headers", "key", "value")
    everything = console_format({f"print.{name}": "true" for name in named})
    assert everything(record()) == b"CreateTime:1000\tPartition:3\tOffset:7\tNO_HEADERS\tk\tv\n"
    assert everything(record(timestamp_type=1, headers=(("h", None),), key=None)) == (
        b"LogAppendTime:1000\tPartition:3\tOffset:7\th:null\tnull\tv\n"
    )
    own = console_format({"print.key": "true", "key.separator": " - ", "line.separator": ";\\n", "null.literal": ""})
    assert own(record(value=None)) == b"k - ;\n"


def test_kafkas_line_reader() -> None:
    assert kafka_lines({})(b"a\tb") == ParsedRecord(None, b"a\tb", [])
    assert kafka_lines({})(b"") == ParsedRecord(None, b"", [])
    assert kafka_lines({"null.marker": b""})(b"") == ParsedRecord(None, None, [])
    assert kafka_lines({"parse.key": b"true"})(b"a\tb\tc") == ParsedRecord(b"a", b"b\tc", [])
    parse = kafka_lines({"parse.headers": b"true", "parse.key": b"true", "null.marker": b"NULL"})
    assert parse(b"h:1,i:NULL\tk\tNULL") == ParsedRecord(b"k", None, [("h", b"1"), ("i", None)])
    assert parse(b"NULL\tk\tv") == ParsedRecord(b"k", b"v", [])
    for line in (b"h:1", b"h:1\tk", b"h\tk\tv", b"\tk\tv"):
        with pytest.raises(LineFault):
            parse(line)
    lenient = kafka_lines({"parse.key": b"true", "ignore.error": b"true"})
    assert lenient(b"no key") == ParsedRecord(None, b"no key", [])
    with pytest.raises(UsageFault, match=r"there is no parse\.value"):
        kafka_lines({"parse.value": b"true"})


CONTENT = st.none() | st.binary(max_size=20) | st.text(max_size=10).map(str.encode)


@given(
    key=CONTENT,
    value=CONTENT,
    headers=st.lists(st.tuples(st.text(max_size=5), CONTENT), max_size=3),
    timestamp=st.integers(-1, 2**63 - 1),
)
def test_an_envelope_holds_any_record(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]], timestamp: int
) -> None:
    line = envelope(
        topic="t",
        partition=1,
        offset=5,
        is_append_time=False,
        timestamp=timestamp,
        headers=headers,
        key=key,
        value=value,
    )
    assert "\n" not in line
    opened = RecordEnvelope(line)
    assert (opened.key, opened.value, opened.headers) == (key, value, headers)
    assert (opened.topic, opened.partition, opened.timestamp) == ("t", 1, timestamp)


@given(
    st.binary(max_size=40)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["key", "headers", "ts", "base64"]), inner)
        ),
    ).map(lambda found: json.dumps(found).encode())
)
def test_an_envelope_of_any_bytes_is_opened_or_refused(line: bytes) -> None:
    try:
        opened = RecordEnvelope(line)
    except EnvelopeFault:
        return
    assert opened.key is None or isinstance(opened.key, bytes)
    assert all(isinstance(name, str) for name, _ in opened.headers)


@pytest.mark.parametrize(
    "line",
    [
        "[]",
        "1",
        "{",
        '{"key": 5}',
        '{"payload": 1, "ts": "now"}',
        '{"payload": 1, "ts": true}',
        '{"payload": 1, "value": 2}',
        '{"payload": 1, "Key": "k"}',
        '{"payload": 1, "partition": -1}',
        '{"payload": 1, "topic": 5}',
        '{"payload": 1, "payload": 2}',
        '{"payload": 1, "headers": ["a"]}',
        '{"payload": 1, "headers": [1, 2]}',
        '{"payload": 1, "key": {"base64": "?"}}',
    ],
)
def test_envelopes_that_are_none(line: str) -> None:
    with pytest.raises(EnvelopeFault):
        RecordEnvelope(line)


def test_a_payload_may_be_json_itself() -> None:
    assert RecordEnvelope('{"payload": {"a": [1, "\u00e4"]}, "key": 5}').value == '{"a":[1,"\u00e4"]}'.encode()
    assert RecordEnvelope('{"key": 5, "payload": null}').key == b"5"


def test_a_field_that_envelopes_do_not_have_is_named_with_those_that_they_have() -> None:
    with pytest.raises(EnvelopeFault, match="it has a field value, which envelopes do not have; did you mean payload"):
        RecordEnvelope('{"key": "k", "value": "v"}')
    with pytest.raises(EnvelopeFault, match='it has no payload; for a null one say "payload": null'):
        RecordEnvelope('{"key": "k"}')


def test_an_envelope_of_kcat_is_understood() -> None:
    line = (
        '{"topic":"t","partition":0,"offset":3,"tstype":"create","ts":1531477349286,"broker":1,'
        '"headers":["h","1"],"key":null,"payload":"x"}'
    )
    assert RecordEnvelope(line).value == b"x"


@given(st.text(max_size=30))
def test_escapes_end_in_bytes_or_in_a_mistake_of_the_user(text: str) -> None:
    try:
        escaped(text)
    except UsageFault:
        assert "\\" in text


# Output


def test_a_table_is_as_wide_as_it_needs_to_be() -> None:
    rows: list[dict[str, Any]] = [
        {"name": "a", "size": 5, "on": True},
        {"name": "long\nname", "size": None, "on": [1, 2]},
    ]
    assert table_of(rows, {"name": "NAME", "size": "SIZE", "on": "ON"}).split("\n") == [
        "NAME        SIZE  ON",
        "a              5  yes",
        "long\\nname     -  1,2",
        "",
    ]
    assert table_of([], {"name": "NAME"}) == "NAME\n"


def test_json_and_yaml_hold_what_was_given(capsys: pytest.CaptureFixture[str]) -> None:
    import yaml

    data = [{"name": "\u00e4: #1", "none": None, "list": [1, "2"], "deep": {"yes": "no"}}]
    show("json", data, "unused")
    assert json.loads(capsys.readouterr().out) == data
    show("yaml", data, "unused")
    assert yaml.safe_load(capsys.readouterr().out) == data
    show("table", data, "used\n")
    assert capsys.readouterr().out == "used\n"
