"""Protobuf one by one and as columns, from files and registries, and the same bytes as Confluent's."""

from __future__ import annotations

import json
import pickle
from base64 import b64encode
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Value
from google.type.datetime_pb2 import DateTime
from google.type.money_pb2 import Money
from tests.formats.protobuf.shop import SHOP, VALUE
from tests.formats.registry_server import RegistryServer

from ottla.formats import decoder, encoder
from ottla.formats.errors import BadRecord, BadSpec, BadValue
from ottla.formats.framing import header
from ottla.formats.protobuf.google_types import GOOGLES
from ottla.formats.protobuf.source_text import parse_proto

ORDER = 'syntax = "proto3"; package shop; message Order { int64 id = 1; } message Click { string page = 1; }'
LATER = ORDER.replace("id = 1;", "id = 1; string note = 2;")


def written(folder: Path, source: str, name: str = "it.proto") -> str:
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text(source)
    return f"protobuf:{folder / name}"


def test_everything(tmp_path: Path) -> None:
    spec = written(tmp_path, SHOP)
    raw = encoder(spec).encode_one(VALUE)
    found = decoder(spec).decode_one(raw)
    assert (found.a_string, found.deep.text, found.WhichOneof("either")) == ("héllo", "chosen", "deep")
    assert encoder(spec).encode_one(found) == raw
    column, errors = decoder(spec).decode(pa.array([raw, None, b""]))
    column.validate(full=True)
    assert errors.to_pylist() == [None] * 3
    assert column[0].as_py() == VALUE
    assert column[1].as_py() is None
    empty = column[2].as_py()
    assert (empty["an_int32"], empty["maybe"], empty["inner"], empty["numbers"]) == (0, None, None, [])
    assert encoder(spec).encode(column).to_pylist() == [raw, None, b""]


def test_bad_records(tmp_path: Path) -> None:
    spec = written(tmp_path, ORDER)
    good = encoder(spec).encode_one({"id": 7})
    column, errors = decoder(spec).decode(pa.array([good, good + b"\x0a", b"\xff", good]))
    assert column.to_pylist() == [{"id": 7}, None, None, {"id": 7}]
    assert [error and error.startswith("no shop.Order: ") for error in errors.to_pylist()] == [None, True, True, None]
    with pytest.raises(BadRecord, match=r"no shop\.Order"):
        decoder(spec).decode_one(b"\xff")


def test_a_maps_key_that_is_no_text_is_a_rows_own_error(tmp_path: Path) -> None:
    """Of proto2 the library checks no texts."""
    spec = written(tmp_path, 'syntax = "proto2"; message M { map<string, int32> m = 1; }')
    key, other = b"\x0a\3\x0a\1\xff", b"\x0a\3\x0a\1a"
    column, errors = decoder(spec).decode(pa.array([key, key + other, other]))
    assert column.to_pylist() == [None, None, {"m": [("a", 0)]}]
    assert [error and "is no UTF-8" in error for error in errors.to_pylist()] == [True, True, None]


def test_times_beyond_64_bits_are_a_rows_own_error(tmp_path: Path) -> None:
    importing = 'syntax = "proto3"; import "google/protobuf/timestamp.proto";'
    spec = written(tmp_path, f"{importing} message M {{ google.protobuf.Timestamp at = 1; }}")
    late = decoder(spec).decode_one(b"")
    late.at.seconds = 2**62
    column, errors = decoder(spec).decode(pa.array([late.SerializeToString(), b""]))
    assert column.to_pylist() == [None, {"at": None}]
    assert "no time in microseconds" in errors[0].as_py()


def test_a_time_beyond_pythons_is_named_with_its_row(tmp_path: Path) -> None:
    importing = 'syntax = "proto3"; import "google/protobuf/timestamp.proto";'
    spec = written(tmp_path, f"{importing} message M {{ google.protobuf.Timestamp at = 1; }}")
    times = pa.array([{"at": 0}, None, {"at": 2**62}], pa.struct([("at", pa.timestamp("us", "UTC"))]))
    with pytest.raises(BadValue, match="row 2: Python cannot hold it"):
        encoder(spec).encode(times)


def test_with_a_header(registry: RegistryServer, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"schema.registry.url": registry.url, "topic": "orders"}
    registry.add("another", '"long"')
    spec = written(tmp_path, ORDER)
    order = encoder(f"{spec}#Order", **settings).encode_one({"id": 7})
    click = encoder(f"{spec}#Click", **settings).encode_one({"page": "/"})
    assert (order[:6], click[:7]) == (b"\0\0\0\0\2\0", b"\0\0\0\0\2\x02\x02")
    each = decoder("protobuf", **settings)
    assert (each.decode_one(order).id, each.decode_one(click).page) == (7, "/")
    # A schema that came later, and a column of the earlier and of the later one.
    earlier = pickle.loads(pickle.dumps(decoder("protobuf:orders-value#Order", **settings)))
    registry.add("orders-value", LATER, kind="PROTOBUF")
    later = encoder("protobuf:orders-value#Order", **settings).encode_one({"id": 8, "note": "hello"})
    values = pa.array([order, later, click, header(99) + b"\0", header(1) + b"\0", header(2) + b"\x02\x08", b"\0"])
    column, errors = decoder("protobuf", **settings).decode(values)
    assert column.to_pylist()[:3] == [{"id": 7, "note": ""}, {"id": 8, "note": "hello"}, None]
    said = errors.to_pylist()
    assert said[:3] == [None, None, "a shop.Click, not a shop.Order"]
    assert "/schemas/ids/99: Schema not found" in said[3]
    assert said[4] == "schema 1: schema 1 is one of Avro, not of Protobuf"
    assert said[5] == "the Protobuf schema has no message at 4"
    assert "too few for a schema id" in said[6]
    assert earlier.arrow_type == pa.struct([("id", pa.int64())])
    assert earlier.decode(values)[0].to_pylist()[:2] == [{"id": 7}, {"id": 8}]
    rescued = decoder("protobuf:orders-value#Order", **settings, rescue_column="_rescued")
    assert rescued.decode(values)[0].field("_rescued").to_pylist()[:2] == [None, None]
    plain = decoder(f"{spec}#Order", framing="plain", rescue_column="_rescued")
    found = plain.decode(pa.array([later[6:]]))[0].to_pylist()
    assert found == [{"id": 8, "_rescued": '{"2":["aGVsbG8="]}'}]


def test_confluents_serializers_give_the_same_bytes(registry: RegistryServer, tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka.schema_registry.protobuf", exc_type=ImportError)
    from confluent_kafka.schema_registry import SchemaRegistryClient, topic_subject_name_strategy
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
    from confluent_kafka.serialization import MessageField, SerializationContext

    client = SchemaRegistryClient({"url": registry.url})
    context = SerializationContext("orders", MessageField.VALUE)
    by_topic = {"subject.name.strategy": topic_subject_name_strategy}
    settings: dict[str, Any] = {"schema.registry.url": registry.url, "topic": "orders"}
    spec = written(tmp_path, SHOP)
    message = decoder(spec).decode_one(encoder(spec).encode_one({**VALUE, "prices_by_day": {"a": 1}, "deeps": []}))
    registry.add("another", '"long"')
    raw = ProtobufSerializer(type(message), client, by_topic)(message, context)
    # Their registered form is a descriptor in base64.
    assert "syntax" not in registry.schemas[2]["schema"]
    assert encoder("protobuf", **settings).encode_one(message) == raw
    assert decoder("protobuf", **settings).decode_one(raw).SerializeToString() == message.SerializeToString()
    deep = message.inner.deep
    deeper = ProtobufSerializer(type(deep), client, by_topic)(deep, context)
    assert encoder("protobuf:orders-value#Deep", **settings).encode_one(deep) == deeper
    # And what ours has registered they read.
    other = encoder(f"{spec}#Other", **{**settings, "topic": "others"}).encode_one({"deep": {"text": "x"}})
    kind = type(decoder(f"{spec}#Other").decode_one(b""))
    read = ProtobufDeserializer(kind, {"use.deprecated.format": False, **by_topic}, client)
    assert read(other, SerializationContext("others", MessageField.VALUE)).deep.text == "x"


def test_files_that_import_others(registry: RegistryServer, tmp_path: Path) -> None:
    written(tmp_path, 'syntax = "proto3"; package b; message B { int32 x = 1; }', "parts/b.proto")
    source = 'syntax = "proto3"; import "parts/b.proto"; message A { b.B b = 1; }'
    spec = written(tmp_path, source, "a.proto")
    raw = encoder(spec).encode_one({"b": {"x": 5}})
    assert pickle.loads(pickle.dumps(decoder(spec))).decode(pa.array([raw]))[0].to_pylist() == [{"b": {"x": 5}}]
    with pytest.raises(BadSpec, match=r"needs other files, .* name the subject, 'as-value'"):
        encoder(spec, schema_registry_url=registry.url, topic="as").encode_one({})
    # In a registry they are references.
    registry.add("b", (tmp_path / "parts" / "b.proto").read_text(), kind="PROTOBUF")
    refers = [{"name": "parts/b.proto", "subject": "b", "version": 1}]
    registry.add("as-value", source, kind="PROTOBUF", references=refers)
    settings: dict[str, Any] = {"schema.registry.url": registry.url, "topic": "as"}
    framed = encoder("protobuf", **settings).encode_one({"b": {"x": 5}})
    assert framed[6:] == raw
    assert decoder("protobuf", **settings).decode(pa.array([framed]))[0].to_pylist() == [{"b": {"x": 5}}]
    for text, said in (
        ('import "nowhere.proto";', "nowhere.proto cannot be read"),
        ('import "../b.proto";', "not below its folder"),
        ('import "c.proto";', "in a circle"),
        ("message A { optional Unknown u = 1; }", "schema is none: .*Unknown"),
        ("message A { optional int32 a = 1; optional int32 b = 1; }", "schema is none"),
    ):
        with pytest.raises(BadSpec, match=said):
            decoder(written(tmp_path, text, "c.proto"))


PRICED = """syntax = "proto3"; import "confluent/meta.proto"; import "confluent/type/decimal.proto";
message Priced {
    option (confluent.message_meta).doc = "priced";
    confluent.type.Decimal price = 1 [(confluent.field_meta) = { params: [{ key: "precision", value: "8" }] }];
}"""


def test_what_confluents_registry_has_built_in(registry: RegistryServer, tmp_path: Path) -> None:
    """Its clients know these files, so that no schema has a reference to them."""
    value = {"price": {"value": b"\x01", "precision": 8, "scale": 2}}
    spec = written(tmp_path, PRICED, "priced.proto")
    raw = encoder(spec).encode_one(value)
    assert decoder(spec).decode(pa.array([raw]))[0].to_pylist() == [value]
    framed = encoder(spec, schema_registry_url=registry.url, topic="priced").encode_one(value)
    ours = decoder("protobuf", schema_registry_url=registry.url, topic="priced")
    assert ours.decode(pa.array([framed]))[0].to_pylist() == [value]


def test_googles_types_are_built_in(registry: RegistryServer) -> None:
    """The names and numbers are those of Google's own classes."""
    named = sorted(GOOGLES)
    text = "".join(f'import "{name}";' for name in named)
    text = f'syntax = "proto3"; {text} message A {{ google.type.Money paid = 1; google.type.DateTime at = 2; }}'
    registry.add("googles", text, kind="PROTOBUF")
    paid, at = Money(currency_code="EUR", units=6, nanos=5), DateTime(year=2026, utc_offset=Duration(seconds=3600))
    raw = b"\0\0\0\0\1\0"
    for number, message in ((1, paid), (2, at)):
        made = message.SerializeToString()
        raw += bytes([number << 3 | 2, len(made)]) + made
    found = decoder("protobuf:googles", schema_registry_url=registry.url).decode_one(raw)
    assert found.paid.SerializeToString() == paid.SerializeToString()
    assert found.at.SerializeToString() == at.SerializeToString()
    assert len(named) == 17
    for name in named:
        ours, theirs = FileDescriptorProto(), FileDescriptorProto()
        found.DESCRIPTOR.file.pool.FindFileByName(name).CopyToProto(ours)
        module = import_module(name.removesuffix(".proto").replace("/", ".") + "_pb2")
        module.DESCRIPTOR.CopyToProto(theirs)
        for kind in ("message_type", "enum_type", "dependency"):
            assert [str(one) for one in getattr(ours, kind)] == [str(one) for one in getattr(theirs, kind)], name


BESIDE_MAPS = """syntax = "proto3";
message A { map<string, int32> first = 1; message B { int32 x = 1; } map<string, int32> second = 2;
    message C { string y = 1; } }"""


def test_messages_beside_maps_have_the_indexes_of_confluents_java_client(
    registry: RegistryServer, tmp_path: Path
) -> None:
    """In a text the entries of maps are no messages; in a descriptor, as its Python client registers it, they are."""
    settings: dict[str, Any] = {"schema_registry_url": registry.url}
    spec = written(tmp_path, BESIDE_MAPS, "maps.proto")
    raw = encoder(f"{spec}#A.C", topic="maps", **settings).encode_one({"y": "c"})
    assert raw == b"\0\0\0\0\1" + b"\4\0\2" + b"\x0a\1c"
    reading = decoder("protobuf", **settings)
    assert reading.decode_one(b"\0\0\0\0\1" + b"\4\0\0" + b"\x08\5").x == 5
    assert reading.decode_one(raw).y == "c"
    # Other clients count the entries: what no message has here is looked for as they do.
    assert reading.decode_one(b"\0\0\0\0\1" + b"\4\0\6" + b"\x0a\1c").y == "c"
    file = b64encode(parse_proto(BESIDE_MAPS, "maps.proto").SerializeToString()).decode()
    registry.add("described", file, kind="PROTOBUF")
    assert decoder("protobuf", **settings).decode_one(b"\0\0\0\0\2" + b"\4\0\2" + b"\x08\5").x == 5


def test_an_import_that_is_in_no_reference(registry: RegistryServer) -> None:
    settings: dict[str, Any] = {"schema.registry.url": registry.url}
    options = 'syntax = "proto3"; import "my/options.proto"; message A { int32 x = 1 [(my.secret) = true]; }'
    registry.add("options", options, kind="PROTOBUF")
    assert decoder("protobuf:options", **settings).decode(pa.array([b"\0\0\0\0\1\0\x08\x05"]))[0].to_pylist() == [
        {"x": 5}
    ]
    # The other imports stay what they are.
    registry.add("inner", 'syntax = "proto3"; message B { int32 x = 1; }', kind="PROTOBUF")
    passes_on = 'syntax = "proto3"; import "my/options.proto"; import public "inner.proto";'
    inner = [{"name": "inner.proto", "subject": "inner", "version": 1}]
    registry.add("public", passes_on, kind="PROTOBUF", references=inner)
    outer = [{"name": "public.proto", "subject": "public", "version": 1}]
    registry.add("outer", 'syntax = "proto3"; import "public.proto"; message C { B b = 1; }', "PROTOBUF", outer)
    assert str(decoder("protobuf:outer", **settings).arrow_type) == "struct<b: struct<x: int32>>"
    typed = 'syntax = "proto3"; import "google/api/http.proto"; message A { google.api.Http x = 1; }'
    registry.add("typed", typed, kind="PROTOBUF")
    with pytest.raises(BadSpec, match=r"imports google/api/http\.proto, which is not there"):
        _ = decoder("protobuf:typed", **settings).arrow_type


def test_descriptor_sets(registry: RegistryServer, tmp_path: Path) -> None:
    file = parse_proto(ORDER, "order.proto")
    (tmp_path / "one.desc").write_bytes(FileDescriptorSet(file=[file]).SerializeToString())
    spec = f"protobuf:{tmp_path}/one.desc#Click"
    assert encoder(spec).encode_one({"page": "/"}) == b"\x0a\x01/"
    framed = encoder(spec, schema_registry_url=registry.url, topic="clicks").encode_one({"page": "/"})
    assert registry.schemas[1]["schema"] == b64encode(file.SerializeToString()).decode()
    assert decoder("protobuf", schema_registry_url=registry.url).decode_one(framed).page == "/"
    needs: Any = FileDescriptorProto(name="a.proto", dependency=["order.proto"])
    needs.message_type.add(name="A").field.add(name="o", number=1, label=1, type_name="shop.Order")
    (tmp_path / "two.desc").write_bytes(FileDescriptorSet(file=[file, needs]).SerializeToString())
    assert encoder(f"protobuf:{tmp_path}/two.desc").encode_one({"o": {"id": 1}}) == b"\x0a\x02\x08\x01"
    (tmp_path / "none.desc").write_bytes(b"\xff")
    with pytest.raises(BadSpec, match="no descriptor set"):
        decoder(f"protobuf:{tmp_path}/none.desc")


def test_messages_that_hold_each_other_twice(tmp_path: Path) -> None:
    levels = " ".join(f"message M{n} {{ M{n + 1} a = 1; M{n + 1} b = 2; }}" for n in range(20))
    spec = written(tmp_path, f'syntax = "proto3"; {levels} message M20 {{ int32 x = 1; }}')
    assert decoder(spec).decode_one(b"")
    with pytest.raises(BadSpec, match="a column of more than 10000 fields"):
        _ = decoder(spec).arrow_type


def test_a_message_in_itself(tmp_path: Path) -> None:
    spec = written(tmp_path, 'syntax = "proto3"; message Tree { Tree left = 1; int32 x = 2; }')
    raw = encoder(spec).encode_one({"left": {"left": {"x": 5}}})
    assert decoder(spec).decode_one(raw).left.left.x == 5
    with pytest.raises(BadSpec, match="Tree contains itself"):
        decoder(spec).decode(pa.array([raw]))
    deep: dict[str, Any] = {}
    for _ in range(10_000):
        deep = {"left": deep}
    with pytest.raises(BadValue, match="nested too deep"):
        encoder(spec).encode_one(deep)
    chain = b""
    for _ in range(500):
        size = len(chain)
        chain = b"\x0a" + (bytes([size]) if size < 128 else bytes([size & 0x7F | 0x80, size >> 7])) + chain
    with pytest.raises(BadRecord, match="no Tree"):
        decoder(spec).decode_one(chain)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (5, "int '5' is no tests.shop.Everything"),
        ({"nobody": 1}, "Everything has no field 'nobody'"),
        ({"an_int32": 2**31}, "an_int32: "),
        ({"an_int32": "x"}, "an_int32: "),
        ({"a_string": b"\xff"}, "a_string: "),
        ({"colour": "GREEN"}, "colour: Colour has no value 'GREEN'"),
        ({"numbers": "12"}, "numbers: str '12' is no list"),
        ({"inner": {"deep": {"texts": ""}}}, "inner: deep: Deep has no field 'texts'"),
        ({"at": "today"}, "at: str 'today' is no google.protobuf.Timestamp"),
        ({"at": VALUE["at"].replace(tzinfo=None)}, "at: .* must be with a time zone"),
        ({"wrapped": "x"}, "wrapped: "),
        ({"anything": "{"}, "anything: "),
        ({"text": "x", "deep": {"text": "y"}}, "deep: either has text, and can have one of them alone"),
        ({"a_float": 1e39}, r"a_float: 1e\+39 is no float of 32 bits"),
        ({"a_float": -(10**400)}, "a_float: int too large"),
        ({"a_double": 10**400}, "a_double: int too large"),
        ({"a_float": "x"}, "a_float: "),
        ({"a_uint64": Decimal("Infinity")}, "a_uint64: cannot convert Infinity"),
        ({"prices_by_day": ["ab"]}, "prices_by_day: list .* is no map"),
        ({"prices_by_day": [5]}, "prices_by_day: list .* is no map"),
    ],
)
def test_values_that_cannot_be_written(tmp_path: Path, value: Any, said: str) -> None:
    with pytest.raises(BadValue, match=said):
        encoder(written(tmp_path, SHOP)).encode_one(value)


def test_of_several_names_of_a_number_the_first_counts(tmp_path: Path) -> None:
    """As in Google's JSON."""
    source = 'syntax = "proto3"; enum E { option allow_alias = true; NO = 0; RED = 1; ROT = 1; } message M { E e = 1; }'
    ours = decoder(written(tmp_path, source))
    assert MessageToDict(ours.decode_one(b"\x08\x01")) == {"e": "RED"}
    assert ours.decode(pa.array([b"\x08\x01"]))[0].to_pylist() == [{"e": "RED"}]
    assert encoder(written(tmp_path, source)).encode_one({"e": "ROT"}) == b"\x08\x01"


@pytest.mark.parametrize(("seconds", "nanos"), [(0, -1), (-1, -1999), (-5, -1000), (0, 1999), (5, 0)])
def test_what_is_cut_off_of_a_duration(tmp_path: Path, seconds: int, nanos: int) -> None:
    importing = 'syntax = "proto3"; import "google/protobuf/duration.proto";'
    ours = decoder(written(tmp_path, f"{importing} message M {{ google.protobuf.Duration took = 1; }}"))
    message = ours.decode_one(b"")
    message.took.seconds, message.took.nanos = seconds, nanos
    found = ours.decode(pa.array([message.SerializeToString()]))[0].to_pylist()
    assert found == [{"took": Duration(seconds=seconds, nanos=nanos).ToTimedelta()}]


def test_a_group_that_the_schema_does_not_know(tmp_path: Path) -> None:
    ours = decoder(written(tmp_path, ORDER), rescue_column="more")
    raw = b"\x08\x07" + b"\x1b" + b"\x08\x05" + b"\x13\x0a\x01a\x14" + b"\x1c"
    assert ours.decode(pa.array([raw]))[0].to_pylist() == [{"id": 7, "more": '{"3":[{"1":[5],"2":[{"1":["YQ=="]}]}]}'}]


HOLDS = """syntax = "proto3"; import "google/protobuf/struct.proto"; import "google/protobuf/timestamp.proto";
message A {
    google.protobuf.Struct anything = 1; google.protobuf.Value value = 2; google.protobuf.ListValue list = 3;
    google.protobuf.Timestamp at = 4; B b = 5; map<string, B> by_name = 6;
    message B { int32 x = 1; int32 y = 2; }
}"""


def test_messages_in_a_mapping(tmp_path: Path) -> None:
    spec = written(tmp_path, HOLDS)
    whole = decoder(spec).decode_one(b"")
    whole.anything.update({"a": [1, None]})
    whole.value.string_value = "x"
    whole.list.append(5)
    whole.at.seconds = 7
    whole.b.SetInParent()
    ours = encoder(spec)
    names = ["anything", "value", "list", "at", "b"]
    assert ours.encode_one({name: getattr(whole, name) for name in names}) == whole.SerializeToString()
    # Of a class that another pool has made.
    assert ours.encode_one({"value": Value(string_value="x")}) == b"\x12\x03\x1a\x01x"
    with pytest.raises(BadValue, match=r"list: Value .* is no google\.protobuf\.ListValue"):
        ours.encode_one({"list": Value(string_value="x")})
    # The last of two entries counts, with nothing of the first.
    twice = ours.encode_one({"by_name": [("a", {"x": 1}), ("a", {"y": 2})]})
    assert twice == ours.encode_one({"by_name": {"a": {"y": 2}}})


NEEDS = """syntax = "proto2"; message Outer { optional Inner inner = 1; repeated Inner inners = 2; }
message Inner { required int32 x = 1; }"""


def test_messages_that_lack_what_is_required(tmp_path: Path) -> None:
    spec = written(tmp_path, NEEDS)
    inner = type(decoder(f"{spec}#Inner").decode_one(b"\x08\x01"))
    for value in (inner(), {}):
        with pytest.raises(BadValue, match=r"missing required fields: inner\.x"):
            encoder(spec).encode_one({"inner": value})
        with pytest.raises(BadValue, match=r"missing required fields: inners\[1\]\.x"):
            encoder(spec).encode_one({"inners": [{"x": 1}, value]})
    (tmp_path / "other").mkdir()
    other = written(tmp_path / "other", NEEDS.replace("required int32", "optional string"))
    unlike = decoder(f"{other}#Inner").decode_one(b"\x0a\x01a")
    unknown = decoder(spec).decode_one(encoder(spec).encode_one({"inner": inner(x=5)}))
    assert unknown.inner.x == 5
    with pytest.raises(BadValue, match=r"missing required fields: inner\.x"):
        encoder(spec).encode_one({"inner": unlike})


@pytest.mark.parametrize("seed", range(2))
def test_mutated_bytes_are_a_value_or_an_error(tmp_path: Path, seed: int) -> None:
    spec = written(tmp_path, SHOP)
    raw = encoder(spec).encode_one(VALUE)
    chance = Random(seed)
    rows = []
    for _ in range(1500):
        data = bytearray(raw)
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(data) + 1)
            if chance.random() < 0.2:
                del data[at:]
            elif chance.random() < 0.4:
                data[at:at] = bytes([chance.choice((0, 0x80, 0xFF, chance.randrange(256)))]) * chance.randrange(1, 12)
            elif at < len(data):
                data[at] = chance.randrange(256)
        rows.append(bytes(data))
    column, errors = decoder(spec, rescue_column="_rescued").decode(pa.array(rows))
    column.validate(full=True)
    assert column.is_null().to_pylist() == errors.is_valid().to_pylist()
    assert 0 < column.null_count < len(rows)
    for row in column.drop_null().to_pylist():
        json.loads(row["_rescued"] or "{}")
