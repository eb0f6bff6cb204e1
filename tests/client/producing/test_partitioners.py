"""The same partitions as Java's: the numbers below were computed by Kafka's own classes and Java's own String."""

from __future__ import annotations

import tracemalloc

import pytest

from ottla.client.errors import SettingsError
from ottla.client.producing.partitioners import (
    ANY,
    integer_key_partitioner,
    java_string_hash,
    murmur2_partitioner,
    partitioner_for,
)
from ottla.records.keyhash import murmur2

#: key (hex of UTF-8), Utils.murmur2 as unsigned, toPositive % 12, String.hashCode, JasonPartitioner of 4 and of 7.
GOLDEN = [
    ("", 275646681, 9, 0, 0, 0),
    ("61", 2731586172, 4, 97, 1, 6),
    ("6162", 316155434, 2, 3105, 1, 4),
    ("616263", 479470107, 3, 96354, 2, 6),
    ("61626364", 2971317748, 8, 2987074, 2, 6),
    ("6162636465", 461995741, 1, 92599395, 3, 0),
    ("3231", 3321034988, 0, 1599, 1, 0),
    ("666f6f626172", 3504634814, 6, -1268878963, 3, 2),
    ("612d6c6974746c652d6269742d6c6f6e672d737472696e67", 3308985760, 8, -865776169, 1, 6),
    ("612d6c6974746c652d6269742d6c6f6e6765722d737472696e67", 2808662467, 11, -1512594870, 2, 3),
    ("30", 971027396, 8, 48, 0, 0),
    ("31", 2301521807, 3, 49, 1, 1),
    ("32", 648968168, 8, 50, 2, 2),
    ("33", 3146801791, 11, 51, 3, 3),
    ("3137", 3870874916, 0, 1574, 1, 3),
    ("2d37", 430111211, 11, 1450, 3, 0),  # -7: the remainder's absolute value
    ("2b35", 27670980, 0, 1386, 1, 5),  # +5
    ("32313437343833363437", 3867753013, 5, -359771092, 3, 1),
    ("32313437343833363438", 1897219614, 6, -359771091, 3, 1),  # one more than an int holds: hashed as text
    ("2d32313437343833363438", 3491352544, 8, 381796378, 0, 2),
    ("2033", 710079005, 5, 1043, 3, 0),  # a blank is no digit
    ("315f303030", 3395122508, 0, 48130338, 2, 4),  # neither is an underscore
    ("c3a974c3a9", 2193773721, 1, 227742, 2, 4),
    ("e4b8ade69687", 1074123597, 9, 646394, 2, 0),
    ("f09f9880", 131881617, 9, 1772899, 3, 2),  # two UTF-16 units
    ("706f6c7967656e656c7562726963616e7473", 342343466, 2, -2147483648, 0, 2),  # abs() of it overflows in Java
    ("d9a3", 3359931614, 6, 1635, 3, 3),  # an Arabic three: a digit
]


@pytest.mark.parametrize("row", GOLDEN)
def test_as_java(row: tuple[str, int, int, int, int, int]) -> None:
    raw, hashed, of_twelve, text_hash, of_four, of_seven = row
    key = bytes.fromhex(raw)
    assert murmur2(key) == hashed
    assert murmur2_partitioner("t", key, 12) == of_twelve
    assert java_string_hash(key.decode()) == text_hash
    assert integer_key_partitioner("t", key, 4) == of_four
    assert integer_key_partitioner("t", key, 7) == of_seven


def test_every_byte_value() -> None:
    assert murmur2(bytes(range(256))) == 2346620022


def test_records_without_a_key_go_anywhere() -> None:
    assert murmur2_partitioner("t", None, 3) == ANY
    assert integer_key_partitioner("t", None, 3) == ANY
    assert partitioner_for("sticky")("t", b"key", 3) == ANY


def test_round_robin_counts_for_each_topic() -> None:
    turn = partitioner_for("round_robin")
    assert [turn("a", b"same", 3) for _ in range(5)] == [0, 1, 2, 0, 1]
    assert turn("b", None, 3) == 0


def test_a_key_that_is_no_text_still_has_a_partition() -> None:
    assert 0 <= integer_key_partitioner("t", b"\xff\xfe\x00", 5) < 5


def test_numbers_of_thousands_of_digits_are_read_as_by_java() -> None:
    for key, number in (("0" * 5000 + "7", 7), ("-" + "0" * 5000 + "2147483648", 2**31), ("\u0660" * 30 + "\u0663", 3)):
        assert integer_key_partitioner("t", key.encode(), 1000) == number % 1000, key[:10]
    for key in ("1" * 5000, "0" * 5000 + "2147483648", "\u0661" * 5000, "0" * 10 + "12345678901"):
        assert integer_key_partitioner("t", key.encode(), 1000) == abs(java_string_hash(key)) % 1000, key[:10]
    assert integer_key_partitioner("t", b"0" * 5000, 1000) == 0


def test_names_and_callables() -> None:
    assert partitioner_for("murmur2") is murmur2_partitioner
    mine = partitioner_for(lambda topic, key, count: count - 1)
    assert mine("t", b"k", 9) == 8
    with pytest.raises(SettingsError, match="murmur2, sticky, round_robin, integer_key"):
        partitioner_for("random")


def test_long_keys_are_not_kept() -> None:
    """Sixteen thousand of a megabyte would be all the memory there is."""
    tracemalloc.start()
    try:
        for number in range(500):
            murmur2(b"%10d" % number * 1_000)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000
