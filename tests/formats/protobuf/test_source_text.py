""".proto files are understood as protoc understands them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from tests.formats.protobuf.shop import SHOP

from ottla.formats.errors import BadSpec
from ottla.formats.protobuf.files import ProtobufSchema, _pool
from ottla.formats.protobuf.source_text import DEPTH_MAX, parse_proto

PROTO2 = r"""
syntax = 'proto2';
package old;
message A {
  required int32 id = 1 [default = -5];
  optional string name = 2 [default = "a\n\"b\x41\101"];
  optional E e = 3 [default = TWO];
  optional double d = 4 [default = 1.5e3];
  repeated int64 xs = 5 [packed = true];
  optional float inf = 6 [default = -inf];
  extensions 100 to 199;
  enum E { ONE = 1; TWO = 2; }
  oneof o { int32 x = 7; string _e = 8; }
}
extend A { optional int32 more = 100; }
"""
CLASHES = 'syntax = "proto3"; message M { optional int32 x = 1; optional int32 y = 2; oneof _y { bool b = 3; } }'
DEFAULTS = r"""
syntax = "proto2";
message A {
  optional bytes octal = 1 [default = "\001\377\\x\"\'\n?"];
  optional bytes text = 2 [default = "aé" '\303' "\251"];
  optional string parts = 3 [default = "\303" '\251'];
  optional string wide = 4 [default = "\U0001F600\u00e9\ud83d\ude00"];
  optional float from_octal = 5 [default = 017];
  optional double large = 6 [default = -123456789012345678901234567890];
  optional int32 hexadecimal = 7 [default = -0x1F];
  optional uint64 most = 8 [default = 0xFFFFFFFFFFFFFFFF];
}
"""
DECLARED = """
syntax = "proto2";
message A {
  extensions 4 to 10 [
    declaration = { number: 4 full_name: ".x.y" type: "int32" },
    declaration = { number: 5, reserved: true },
    verification = DECLARATION
  ];
  optional int32 x = 1;
}
"""
BYTE_ORDER_MARK = '\ufeffsyntax = "proto3"; message A { int32 x = 1; }'
UNDERLINED = 'syntax = "proto3"; message A { optional int32 a = 1; optional string _a = 2; oneof _b { bool b = 3; } }'
NO_SYNTAX = "message A { optional int32 x = 1; }"


def protoc(source: str, folder: Path) -> FileDescriptorProto:
    """Without what ours passes over."""
    compiler = pytest.importorskip("grpc_tools.protoc")
    from importlib.resources import files

    (folder / "it.proto").write_text(source)
    include = str(files("grpc_tools") / "_proto")
    out = folder / "set"
    words = ["protoc", f"-I{folder}", f"-I{include}", f"--descriptor_set_out={out}", str(folder / "it.proto")]
    assert compiler.main(words) == 0
    (found,) = FileDescriptorSet.FromString(out.read_bytes()).file
    return _stripped(found)


def _stripped(file: Any) -> Any:
    for name in ("options", "extension", "service"):
        file.ClearField(name)

    def strip(message: Any) -> None:
        for name in ("extension_range", "reserved_range", "reserved_name"):
            message.ClearField(name)
        for field in message.field:
            field.options.ClearField("deprecated")
            if not field.options.HasField("packed"):
                field.ClearField("options")
        for enum in message.enum_type:
            strip_enum(enum)
        for nested in message.nested_type:
            strip(nested)

    def strip_enum(enum: Any) -> None:
        for name in ("reserved_range", "reserved_name"):
            enum.ClearField(name)
        for value in enum.value:
            value.ClearField("options")

    for message in file.message_type:
        strip(message)
    for enum in file.enum_type:
        strip_enum(enum)
    return file


def ours(source: str) -> FileDescriptorProto:
    """With the types' full names, as the pool finds them."""
    pool: DescriptorPool = _pool([parse_proto(source, "it.proto")])
    found = FileDescriptorProto()
    pool.FindFileByName("it.proto").CopyToProto(found)
    return _stripped(found)


def known_to_protoc(source: str) -> str:
    """Without options that protoc would have to know."""
    import re

    source = re.sub(r"option \((some|thing|http).*;(?= }|\n)", "", source)
    return re.sub(r", \(mine\) = \{[^}]*\}", "", source)


@pytest.mark.parametrize(
    "source",
    [SHOP, PROTO2, DEFAULTS, DECLARED, CLASHES, UNDERLINED, BYTE_ORDER_MARK, NO_SYNTAX],
    ids=["shop", "proto2", "defaults", "declared", "clashes", "underlined", "byte order mark", "no syntax"],
)
def test_as_protoc(source: str, tmp_path: Path) -> None:
    theirs = protoc(known_to_protoc(source), tmp_path)
    found = ours(source)
    for file in (theirs, found):
        for message in file.message_type:
            _clear_json_names(message)
    assert found == theirs


def _clear_json_names(message: Any) -> None:
    """The pool gives them to no field that has the usual one."""
    for field in message.field:
        if field.json_name != "theString":
            field.ClearField("json_name")
    for nested in message.nested_type:
        _clear_json_names(nested)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("message A {", "line 1 .* 'the end' is unexpected"),
        ("message A { int32 }", "'}' is unexpected"),
        ('syntax = "proto3";\nmessage A { int32 x = y; }', "line 2 .* 'y' is unexpected"),
        ('syntax = "proto3"; message A { int32 x 1; }', "'1' is unexpected in place of '='"),
        ('syntax = "proto4";', "syntax 'proto4': proto2 and proto3 are known"),
        ('edition = "2023";', "edition '2023'"),
        ('syntax = "proto3"; message A { required int32 x = 1; }', "required field x"),
        ('syntax = "proto2"; message A { int32 x = 1; }', "field x without a label"),
        ('syntax = "proto2"; message A { optional group G = 1 { } }', "a group"),
        ('syntax = "proto3"; message A { map<float, int32> x = 1; }', "a map with keys of float"),
        ('syntax = "proto3"; enum E { }', "enum E has no values"),
        ("message A ` { }", "'` { }' is no word"),
        ("message A { optional string s = 1 [(mine) = {", "'the end' is unexpected"),
        ("message A { optional int32 x = 99999999999; }", "'99999999999' is unexpected"),
        ('syntax = "proto3"; enum E { A = 0; B = 2147483648; }', "'2147483648' is unexpected"),
        ('syntax = "proto3"; enum E { A = 0; B = -2147483649; }', "'2147483649' is unexpected"),
        ("message A { optional int32 x = 2147483648; }", "'2147483648' is unexpected"),
        ("message A { optional double x = 1 [default = 09]; }", "'09' is unexpected"),
        ('message A { optional double x = 1 [default = -"1"]; }', "'\"1\"' is unexpected"),
        (r'message A { optional string x = 1 [default = "\ud800"]; }', "line 1 .* a text that is no UTF-8"),
        (r'message A { optional string x = 1 [default = "\377"]; }', "line 1 .* a text that is no UTF-8"),
        (r'message A { optional string x = 1 [default = "\U00110000"]; }', r"no character \\U00110000"),
        ("message A { " * (DEPTH_MAX + 1), f"messages {DEPTH_MAX} deep"),
        ("/* without an end", "'/' is unexpected"),
    ],
)
def test_what_is_no_schema(source: str, said: str) -> None:
    with pytest.raises(BadSpec, match=said):
        parse_proto(source, "it.proto")


def test_messages_are_found_by_their_names_and_indexes() -> None:
    def of(name: str | None) -> ProtobufSchema:
        return ProtobufSchema([parse_proto(SHOP, "it.proto")], name)

    assert of(None).name == "tests.shop.Everything"
    assert of("Deep").name == "tests.shop.Everything.Inner.Deep"
    assert of("tests.shop.Other").path() == (1,)
    # The entries of the maps count among the messages, as the library counts them; they stand where their map does.
    assert of("Deep").path() == (0, 0, 0)
    assert of("Deep").at((1,)).full_name == "tests.shop.Other"
    with pytest.raises(BadSpec, match=r"has 0 messages 'Nobody'; it has tests.shop.Everything, "):
        of("Nobody")
    with pytest.raises(BadSpec, match="has no message"):
        ProtobufSchema([parse_proto("enum E { A = 0; }", "it.proto")], None)
