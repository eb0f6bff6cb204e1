"""Offsets as `group reset --export` writes them and `--from-file` reads them, in Kafka's two formats.

topic,partition,offset             where one group is meant
group,topic,partition,offset       where there are several
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import NamedTuple

from ottla.cli.faults import FAILED, NOT_FOUND, CommandFault, UsageFault
from ottla.model import TopicPartition

#: A group has some thousands of partitions at most; a file with more rows than this is another file.
ROWS_MAX = 1_000_000
_OFFSET_MAX = 2**63 - 1
_PARTITION_MAX = 2**31 - 1


class Row(NamedTuple):
    #: None in the format without groups.
    group: str | None
    partition: TopicPartition
    offset: int


def written(rows: Iterable[Row]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in rows:
        group = [] if row.group is None else [row.group]
        writer.writerow([*group, row.partition.topic, row.partition.partition, row.offset])
    return out.getvalue()


def read(path: str) -> list[Row]:
    """Raises CommandFault where the file is not there, and UsageFault with the number of the line that is wrong."""
    rows: list[Row] = []
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            for number, fields in enumerate(csv.reader(file), 1):
                if len(rows) >= ROWS_MAX:
                    raise UsageFault(f"{path} has more than {ROWS_MAX} rows")
                if fields:
                    rows.append(_row(path, number, [field.strip() for field in fields]))
    except OSError as error:
        code = NOT_FOUND if isinstance(error, FileNotFoundError) else FAILED
        raise CommandFault(f"cannot read {path}: {error.strerror or error}", code) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageFault(f"{path} is not a CSV file: {error}") from error
    if not rows:
        raise UsageFault(f"{path} is empty: it should hold topic,partition,offset or group,topic,partition,offset")
    if len({row.group is None for row in rows}) > 1:
        raise UsageFault(f"{path} mixes rows with a group and rows without one")
    return rows


def _row(path: str, number: int, fields: list[str]) -> Row:
    form = "topic,partition,offset or group,topic,partition,offset"
    if len(fields) not in {3, 4} or not fields[-3]:
        raise UsageFault(f"{path}, line {number}: it should be {form}")
    partition, offset = _whole(fields[-2], _PARTITION_MAX), _whole(fields[-1], _OFFSET_MAX)
    if partition is None or offset is None:
        raise UsageFault(f"{path}, line {number}: partition and offset are whole numbers, at least 0 ({form})")
    return Row(fields[0] if len(fields) == 4 else None, TopicPartition(fields[-3], partition), offset)


def _whole(text: str, most: int) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= most else None
