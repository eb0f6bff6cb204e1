"""The checksum's extension module, loaded without its package."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import PathFinder

import crc32c as package
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.records import checksum


def test_check_value_of_the_polynomial() -> None:
    assert checksum.crc32c(b"123456789") == 0xE3069283
    assert checksum.crc32c(b"") == 0


@given(st.binary(max_size=300), st.sampled_from([bytes, bytearray, memoryview]))
def test_same_as_the_package(data: bytes, kind: type) -> None:
    assert checksum.crc32c(kind(data)) == package.crc32c(data)


def test_package_is_used_where_the_extension_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PathFinder, "find_spec", lambda *_: None)
    assert checksum._load()(b"123456789") == 0xE3069283


def test_the_package_and_what_it_imports_stay_out_of_the_way() -> None:
    code = (
        "import sys, ottla.records.batch; print(sorted({'crc32c', 'email', 'argparse', 'zipfile'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
