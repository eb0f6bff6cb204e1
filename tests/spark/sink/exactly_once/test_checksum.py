"""A task's checksum: the same for the same rows, however they are ordered and cut; another one for others."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from ottla.arrow.schema import HEADERS_TYPE
from ottla.spark.sink.exactly_once.checksum import SummedColumns


class AsTheyAre:
    def taken_from(self, rows: Any, first_row: int) -> Any:
        return rows


def of(*batches: Any) -> int:
    summed = SummedColumns(AsTheyAre())
    for batch in batches:
        summed.taken_from(batch, 0)
    return summed.checksum


HEADERS = [[{"key": "h", "value": b"1"}], [], None, [{"key": "g", "value": None}, {"key": "h", "value": b""}]]


def rows(**changed: Any) -> Any:
    columns = {
        "key": pa.array(["a", None, "", "d"]),
        "value": pa.array([b"1", b"22", None, b""]),
        "partition": pa.array([0, None, 1, 1], pa.int32()),
        "topic": pa.array(["t", "t", "u", "t"]),
        "headers": pa.array(HEADERS, HEADERS_TYPE),
        **changed,
    }
    return pa.record_batch(columns)


def test_order_and_batches_do_not_count() -> None:
    whole = rows()
    turned = whole.take(pa.array([3, 1, 0, 2]))
    assert of(whole) == of(turned) == of(whole.slice(0, 1), whole.slice(1)) == of(turned.slice(0, 3), turned.slice(3))
    assert 0 < of(whole) < 2**63
    assert of() == of(whole.slice(0, 0)) == 0


def test_text_is_its_bytes() -> None:
    for kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        assert of(rows(key=pa.array([b"a", None, b"", b"d"]).cast(kind))) == of(rows())


@pytest.mark.parametrize(
    "changed",
    [
        {"value": pa.array([b"1", b"23", None, b""])},
        {"value": pa.array([b"1", b"22", b"", b""])},
        {"value": pa.array([b"1", b"22", b"", None])},
        {"key": pa.array(["a1", None, "", "d"]), "value": pa.array([b"", b"22", None, b""])},
        {"key": pa.array(["d", None, "", "a"])},
        {"partition": pa.array([0, 0, 1, 1], pa.int32())},
        {"topic": pa.array(["t", "t", "t", "t"])},
        {"headers": pa.array([HEADERS[3], [], None, HEADERS[3]], HEADERS_TYPE)},
        {"headers": pa.array([HEADERS[0], [], None, None], HEADERS_TYPE)},
    ],
)
def test_other_rows_have_another_one(changed: dict[str, Any]) -> None:
    assert of(rows(**changed)) != of(rows())


def test_what_stands_in_which_column_counts_in_each_row() -> None:
    """A byte goes into the next column in one row, and back in another: added up, all lengths stay."""
    one, other = (
        pa.record_batch({"key": keys, "value": values})
        for keys, values in (([b"ab", b"d"], [b"c", b"ef"]), ([b"a", b"de"], [b"bc", b"f"]))
    )
    assert of(one) != of(other)


def test_whose_headers_they_are_counts() -> None:
    """In all rows together there are the same ones."""
    one, two = [{"key": "h", "value": b"1"}], [{"key": "h", "value": b"2"}]
    several = [
        [one, two, [*one, *two], []],
        [two, one, [*one, *two], []],
        [one, two, [*two, *one], []],
        [one, two, one, two],
        [one, two, [*one, *two], None],
    ]
    assert len({of(rows(headers=pa.array(headers, HEADERS_TYPE))) for headers in several}) == len(several)


def test_rows_that_are_there_twice_count_twice() -> None:
    assert of(rows(), rows()) not in {of(rows()), 0}
