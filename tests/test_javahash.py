"""Java's hash of strings, and the partition that follows. The numbers were computed by a Java virtual machine."""

from __future__ import annotations

import pytest

from ottla.javahash import java_hash, partition_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("hello", 99162322),
        ("Test-Group", -1703213692),
        ("polygenelubricants", -(2**31)),
        ("组", 32452),
        ("\N{MATHEMATICAL SCRIPT CAPITAL X}", 1772318),
    ],
)
def test_hash(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_the_one_hash_without_a_positive_counterpart_is_partition_0() -> None:
    assert partition_of("polygenelubricants", 50) == 0


def test_partition_is_of_the_absolute_value() -> None:
    assert partition_of("Test-Group", 50) == 1703213692 % 50


def test_a_name_of_65000_characters() -> None:
    name = "g" * 65_000
    expected = 0
    for _ in range(65_000):
        expected = (expected * 31 + ord("g")) % 2**32
    assert java_hash(name) % 2**32 == expected
    assert 0 <= partition_of(name, 50) < 50
