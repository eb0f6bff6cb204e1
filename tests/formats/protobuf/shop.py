"""A schema with everything that Protobuf's have, and a value of it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

SHOP = r"""
// What a shop sells.
syntax = "proto3";
package tests.shop;

import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import public "google/protobuf/any.proto";

option java_package = "org.example"; /* passed over */
option (some.extension).name = { key: "a;b" inner { x: 1 } };

service Nothing { rpc Ask(Everything) returns (Everything) { option (http) = { get: "/x" }; } }

enum Colour {
  option allow_alias = true;
  UNKNOWN = 0;
  RED = 1 [deprecated = true, (mine) = { a: [1, 2] }];
  ROT = 0x1;
  BLUE = -2;
  reserved 5 to 7, 9;
  reserved "OLD";
}

message Everything {
  reserved 90 to max;
  reserved "gone", "lost";
  double a_double = 1;
  float a_float = 2;
  int32 an_int32 = 3;
  int64 an_int64 = 4;
  uint32 a_uint32 = 5;
  uint64 a_uint64 = 6;
  sint32 a_sint32 = 7;
  sint64 a_sint64 = 010;
  fixed32 a_fixed32 = 9;
  fixed64 a_fixed64 = 10;
  sfixed32 an_sfixed32 = 11;
  sfixed64 an_sfixed64 = 12;
  bool a_bool = 13;
  string a_string = 14 [json_name = "theString"];
  bytes some_bytes = 15;
  Colour colour = 16;
  optional string maybe = 17;
  optional int32 maybe_a_number = 18;
  repeated int32 numbers = 19;
  repeated string words = 20 [deprecated=true];
  repeated int32 loose = 21 [packed = false];
  message Inner {
    message Deep { string text = 1; }
    .tests.shop.Colour colour = 1;
    Deep deep = 2;
    repeated Deep deeps = 3;
    enum Kind { NONE = 0; SOME = 1; }
    Kind kind = 4;
  }
  Inner inner = 22;
  repeated Everything.Inner inners = 23;
  map<string, int64> prices_by_day = 24;
  map<int32, Inner.Deep> deeps = 25;
  map<bool, Colour> colours = 26;
  oneof either {
    option (thing) = true;
    string text = 27;
    Inner.Deep deep = 28;
    tests.shop.Colour other = 29;
  }
  google.protobuf.Timestamp at = 30;
  google.protobuf.Duration took = 31;
  google.protobuf.Int64Value wrapped = 32;
  google.protobuf.StringValue wrapped_text = 33;
  google.protobuf.Struct anything = 34;
  google.protobuf.Any any = 35;
  ;
}

message Other { Everything.Inner.Deep deep = 1; Everything.Inner.Kind kind = 2; }
"""

#: As a mapping that can be written, whole.
VALUE: dict[str, Any] = {
    "a_double": -2.25,
    "a_float": 1.5,
    "an_int32": -(2**31),
    "an_int64": 2**63 - 1,
    "a_uint32": 2**32 - 1,
    "a_uint64": Decimal(2**64 - 1),
    "a_sint32": -5,
    "a_sint64": -(2**63),
    "a_fixed32": 7,
    "a_fixed64": Decimal(8),
    "an_sfixed32": -9,
    "an_sfixed64": -10,
    "a_bool": True,
    "a_string": "héllo",
    "some_bytes": b"\x00\xff",
    "colour": "BLUE",
    "maybe": "",
    "maybe_a_number": None,
    "numbers": [1, -1, 300],
    "words": ["a", ""],
    "loose": [5, 6],
    "inner": {"colour": "UNKNOWN", "deep": {"text": "x"}, "deeps": [], "kind": "SOME"},
    "inners": [{"colour": "UNKNOWN", "deep": None, "deeps": [{"text": "y"}, {"text": ""}], "kind": "NONE"}],
    "prices_by_day": [("mon", 1), ("tue", 2)],
    "deeps": [(-1, {"text": "minus"}), (4, {"text": ""})],
    "colours": [(False, "BLUE")],
    "text": None,
    "deep": {"text": "chosen"},
    "other": None,
    "at": dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC),
    "took": dt.timedelta(seconds=-1, microseconds=-5),
    "wrapped": 0,
    "wrapped_text": None,
    "anything": '{"a":[1.0,null,"x"]}',
    "any": {"type_url": "x/y", "value": b"z"},
}
