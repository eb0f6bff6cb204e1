"""Where `group reset` moves to: Kafka's scopes, of which one is given."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

from ottla.cli.faults import UsageFault
from ottla.cli.numbers import offset_number, signed_count

if TYPE_CHECKING:
    from ottla.cli.group.offset_csv import Row


class Scope(NamedTuple):
    """One of these is set."""

    to_earliest: bool = False
    to_latest: bool = False
    #: Where the group is: what was never committed becomes the end.
    to_current: bool = False
    to_offset: int | None = None
    shift_by: int | None = None
    #: A time: of `--to-datetime`, or now less `--by-duration`.
    to_time_ms: int | None = None
    rows: list[Row] | None = None


def arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("where to (one of them)")
    group.add_argument("--to-earliest", action="store_true", help="to the first records that are there")
    group.add_argument("--to-latest", action="store_true", help="behind the last records")
    group.add_argument("--to-current", action="store_true", help="where it is; what was never committed: to the end")
    group.add_argument("--to-offset", type=offset_number, metavar="N", help="to this offset")
    group.add_argument("--shift-by", type=signed_count, metavar="N", help="forward by N, or back where N is negative")
    group.add_argument("--to-datetime", metavar="TIME", help="to the first record of that time (ISO 8601, or ms)")
    group.add_argument("--by-duration", metavar="TIME", help="to a time so long ago: 8d, 1h30m, PT1H30M")
    group.add_argument("--from-file", metavar="FILE", help="as a CSV file has it, which --export has written")


def scope_of(options: argparse.Namespace) -> Scope:
    given = {
        "--to-earliest": options.to_earliest,
        "--to-latest": options.to_latest,
        "--to-current": options.to_current,
        "--to-offset": options.to_offset is not None,
        "--shift-by": options.shift_by is not None,
        "--to-datetime": options.to_datetime is not None,
        "--by-duration": options.by_duration is not None,
        "--from-file": options.from_file is not None,
    }
    named = [name for name, is_given in given.items() if is_given]
    if len(named) != 1:
        problem = f"{' and '.join(named)} exclude each other" if named else "say where to"
        raise UsageFault(f"{problem}: give one of {', '.join(given)}")
    if options.from_file is not None:
        from ottla.cli.group.offset_csv import read

        return Scope(rows=read(options.from_file))
    return Scope(
        to_earliest=options.to_earliest,
        to_latest=options.to_latest,
        to_current=options.to_current,
        to_offset=options.to_offset,
        shift_by=options.shift_by,
        to_time_ms=_time_ms(options),
    )


def _time_ms(options: argparse.Namespace) -> int | None:
    import time

    from ottla.cli.offsets import parse_time
    from ottla.durations import duration_ms

    if options.by_duration is not None:
        try:
            back_ms = duration_ms(options.by_duration)
        except ValueError as error:
            raise UsageFault(f"--by-duration: {error}") from error
        return max(0, time.time_ns() // 1_000_000 - back_ms)
    if options.to_datetime is None:
        return None
    found = parse_time(options.to_datetime)
    if found is None:
        raise UsageFault(
            f"--to-datetime: '{options.to_datetime}' is not a time: give ISO 8601 (2026-11-21T10:00), or ms"
        )
    return max(0, found)
