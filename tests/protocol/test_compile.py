"""The generated modules are what the schemas say, and what is wrong in a schema is told with its line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ottla.protocol.apis import APIS, ApiKey, api, response_header_version
from ottla.protocol.compile.__main__ import compile_all, differences
from ottla.protocol.compile.module import module
from ottla.protocol.compile.schema import SchemaError, Versions, parse
from ottla.protocol.errors import DecodeError

DATUM = """# A made-up record.
data CommitValue
versions 0-4
flexible 4+

fields
  offset      int64
  epoch       int32      3+ = -1 ignorable
  metadata    string     nullable 2-3
  labels      [string]?  1+
  parts       [Part]     4+ tag 0
    number    uint16
    weights   [float64]
"""


def test_generated_modules_are_what_the_schemas_say() -> None:
    assert differences(compile_all()) == []


def test_check_tells_a_difference(tmp_path: Path) -> None:
    files = compile_all()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert differences(files, str(tmp_path)) == []
    (tmp_path / "fetch.py").write_text("changed")
    (tmp_path / "metadata.py").unlink()
    (tmp_path / "stray.py").write_text("")
    assert differences(files, str(tmp_path)) == ["metadata.py", "stray.py", "fetch.py"]


def test_command_checks() -> None:
    done = subprocess.run([sys.executable, "-m", "ottla.protocol.compile", "--check"], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_datum_becomes_a_class_of_its_own() -> None:
    schema = parse(DATUM)
    assert schema.api_key == -1
    names: dict[str, object] = {"__name__": "made"}
    exec(module(schema, "commit_value.schema"), names)
    value, part = names["CommitValue"], names["Part"]
    assert callable(value)
    assert callable(part)
    one = value(offset=5, metadata=None, labels=["a", "b"])
    assert one.encode(2).hex() == "0000000000000005ffff00000002000161000162"
    assert type(one).decode(one.encode(2), 2) == (one, 20)
    rich = value(offset=5, epoch=1, metadata="m", parts=[part(number=65535, weights=[0.5])])
    raw = rich.encode(4)
    assert raw.hex() == "000000000000000500000001026d0101000d02ffff023fe000000000000000"
    assert type(rich).decode(raw, 4) == (rich, len(raw))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("  x  int33", "'int33' is no type"),
        ("  x  [int32", "is no type"),
        ("  offset  int8", "offset stands twice in CommitValue"),
        ("  x  Part2", "nothing defines Part2"),
        ("  x  int8  5+", "x is in no version"),
        ("  x  int8  banana", "'banana' is not a range of versions"),
        ("  x  int8  0-3 tag 1", "x is tagged in a version that is not flexible"),
        ("  x  Part?  1+", "a struct that may be null needs `= null`"),
        ("struct Part\n  y  int8", "Part is defined twice"),
        ("struct Lonely\n  y  int8", "nothing uses Lonely"),
        ("  me  CommitValue", "CommitValue contains itself"),
        ("nonsense", "not a line of a schema"),
        ("   x  int8", "indentation"),
    ],
)
def test_fault_in_a_schema_is_told(line: str, complaint: str) -> None:
    with pytest.raises(SchemaError, match=re.escape(complaint)):
        parse(DATUM + line + "\n")


def test_null_default_of_a_field_that_is_never_null_is_told() -> None:
    with pytest.raises(SchemaError, match="x defaults to null, but may never be null"):
        module(parse(DATUM + "  x  string  = null\n"), "commit_value.schema")


def test_versions_know_their_range() -> None:
    assert Versions.parse("3") == Versions(3, 3)
    assert Versions.parse("3-5") == Versions(3, 5)
    assert 7 in Versions.parse("3+")
    assert 2 not in Versions.parse("3+")


def test_catalogue_agrees_with_the_messages() -> None:
    assert len(APIS) == len(ApiKey) == 81
    for info in APIS.values():
        assert ApiKey(info.key).name.replace("_", "") == info.name.upper()
        for cls in (info.request_type(), info.response_type()):
            assert (info.key, info.min, info.max) == (cls.API_KEY, cls.MIN_VERSION, cls.MAX_VERSION)
            assert info.flexible_from == cls.FLEXIBLE_FROM
    assert (api(ApiKey.PRODUCE).min, api(ApiKey.PRODUCE).max) == (0, 13)
    with pytest.raises(DecodeError, match="no API with key 52"):
        api(52)


def test_api_versions_answers_without_tagged_fields_in_the_header() -> None:
    assert response_header_version(ApiKey.API_VERSIONS, 4) == 0
    assert response_header_version(ApiKey.METADATA, 9) == 1
    assert response_header_version(ApiKey.METADATA, 8) == 0
    assert response_header_version(ApiKey.SASL_HANDSHAKE, 1) == 0


def test_import_of_apis_loads_no_message() -> None:
    script = (
        "import sys, ottla.protocol.apis, ottla.protocol.header\n"
        "print(sorted(name for name in sys.modules if 'generated.' in name))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True)
    assert done.stdout.strip() == "['ottla.protocol.generated.catalogue']"
