"""Delete the records of a topic below an offset. Prints what would go, and does it with --yes.

OFFSET is start, end, a number, -N (all but the last N), or @TIME; it holds for all partitions, or those of --partition.
Kafka's --offset-json-file names partitions and offsets one by one instead; an offset of -1 there means the end.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ottla.cli import options as shared
from ottla.cli.faults import NOT_FOUND, OK, CommandFault, UsageFault
from ottla.cli.numbers import partition_number

if TYPE_CHECKING:
    from ottla.cli.offsets import OffsetPoint
    from ottla.client.admin.admin import Admin
    from ottla.model import TopicPartition

_COLUMNS = {"topic": "TOPIC", "partition": "PARTITION", "start": "START", "end": "END", "new_start": "NEW START"}


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.topic(parser)
    parser.add_argument("--before", "--offset", dest="offset", metavar="OFFSET", help="delete what lies below it")
    parser.add_argument(
        "--partition", type=partition_number, metavar="N", action="append", help="only this one; may be given again"
    )
    parser.add_argument(
        "--offset-json-file", metavar="FILE", help="partitions and offsets as kafka-delete-records takes"
    )
    shared.connection(parser)
    shared.confirmation(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_trim(options))


async def _trim(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.offsets import EARLIEST, LATEST, offsets_of, resolved
    from ottla.cli.plan import show_plan

    from_file = _places_of_file(options)
    async with admin(options) as client:
        places = from_file if from_file is not None else await _places(client, options)
        wanted = await resolved(client.cluster, places)
        starts = await offsets_of(client.cluster, dict.fromkeys(wanted, EARLIEST))
        ends = await offsets_of(client.cluster, dict.fromkeys(wanted, LATEST))
        rows: list[dict[str, Any]] = [
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "start": starts[tp],
                "end": ends[tp],
                "new_start": max(starts[tp], offset),
            }
            for tp, offset in wanted.items()
        ]
        _refuse_beyond_the_end(rows)
        nothing = all(row["new_start"] == row["start"] for row in rows)
        title = "nothing lies below these offsets:" if nothing else "records below NEW START are to be deleted:"
        show_plan(options.output, title, rows, _COLUMNS, confirmed=options.yes or nothing)
        if not nothing:
            await client.delete_records(wanted)
    if options.output == "table" and not nothing:
        print("deleted")
    return OK


def _refuse_beyond_the_end(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        if row["new_start"] > row["end"]:
            name = f"{row['topic']}-{row['partition']}"
            raise CommandFault(f"{name} ends at {row['end']}: {row['new_start']} is beyond; `end` deletes everything")


async def _places(client: Admin, options: argparse.Namespace) -> dict[TopicPartition, OffsetPoint]:
    from ottla.cli.counting import counted
    from ottla.cli.offsets import parse_place
    from ottla.model import TopicPartition

    if options.offset is None:
        raise UsageFault("say below which offset: --before OFFSET")
    place = parse_place(options.offset)
    if place.has_end:
        raise UsageFault("--before takes one offset or time: records go from the beginning on")
    topic = await client.describe_topic(shared.topic_of(options))
    known = [each.partition for each in topic.partitions]
    for number in options.partition or ():
        if number not in known:
            raise CommandFault(f"{topic.name} has {counted(len(known), 'partition')}, and no {number}", NOT_FOUND)
    return {TopicPartition(topic.name, number): place for number in dict.fromkeys(options.partition or known)}


def _places_of_file(options: argparse.Namespace) -> dict[TopicPartition, OffsetPoint] | None:
    if options.offset_json_file is None:
        return None
    from ottla.cli.group.partitions import PARTITION_MAX
    from ottla.cli.json_file import read_json
    from ottla.cli.offsets import LATEST, OFFSET_MAX, OffsetPoint
    from ottla.model import TopicPartition

    beside = (options.offset, options.topic, options.topic_option, options.partition)
    if any(one is not None for one in beside):
        raise UsageFault("--offset-json-file says it all: leave out the topic, --partition and --before")
    found: dict[TopicPartition, int] = {}
    try:
        for one in read_json(options.offset_json_file)["partitions"]:
            tp = TopicPartition(_name(one["topic"]), _whole(one["partition"], 0, PARTITION_MAX))
            if tp in found:
                raise UsageFault(f"{options.offset_json_file}: {tp} stands there twice")
            found[tp] = _whole(one["offset"], LATEST, OFFSET_MAX)
    except (ValueError, KeyError, TypeError) as error:
        form = '{"partitions": [{"topic": "t", "partition": 0, "offset": 5}]}'
        raise UsageFault(f"{options.offset_json_file} is not of the form {form}") from error
    return {tp: OffsetPoint(word=LATEST) if offset < 0 else OffsetPoint(offset=offset) for tp, offset in found.items()}


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    shared.check_name(value)
    return value


def _whole(value: Any, least: int, most: int) -> int:
    """Raises ValueError: half a record is nobody's, and another number than what stands there would delete others."""
    if type(value) is not int or not least <= value <= most:
        raise ValueError(value)
    return value
