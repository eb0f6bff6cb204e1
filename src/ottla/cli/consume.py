"""Print records of topics, from all of their partitions or some of them.

By default it begins at the end and goes on for ever; --offset and --from-beginning say where it begins, and
--max-messages and --exit-at-end where it ends; with --exit-at-end alone it prints all that is there. OFFSET is start,
end, a number, -N (the last N of each partition), +N, :end, N:M, @TIME, @-1h or @FROM:TO, where a time is ISO 8601 (UTC
where it names no zone) or milliseconds since 1970.

A FORMAT is text with %t topic, %p partition, %o offset, %d or %T timestamp, %k key, %v or %s value, %K and %V their
lengths, %h headers, %e leader epoch, %i how many; braces say how: %v{hex} %k{base64} %o{big64} %d{strftime[%F %T]}
%h{%k=%v;}; and %% %{ %} \\n \\t \\r \\0 \\xHH themselves.
ottla consume orders -f '%o %k: %v\\n'

With --group it shares the topics with the group's other members, goes on where the group is (a new group: at the end,
or with --from-beginning at the beginning), and commits what it has printed.

An EXPRESSION filters on key, value, headers, timestamp, partition and offset; dots look inside of JSON.
ottla consume orders --from-beginning -e --where "key == 'alice' and value.amount > 10"
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.cli import options as shared
from ottla.cli.faults import NOT_FOUND, OK, CommandFault, UsageFault
from ottla.cli.numbers import GIVE_UP_MS, count, milliseconds, partition_numbers
from ottla.cli.parser import completed_by

if TYPE_CHECKING:
    from ottla.cli.group_reading import GroupReading
    from ottla.cli.offsets import OffsetPoint
    from ottla.cli.reachability import BrokerWatch
    from ottla.cli.reading import PartitionReading, ReadingLimits
    from ottla.cli.record_format import Format
    from ottla.cli.where import Where
    from ottla.client.consuming.consumer import Consumer
    from ottla.model import TopicPartition


def arguments(parser: argparse.ArgumentParser) -> None:
    from ottla.cli.completing import group_names

    shared.topics(parser, "the topics")
    shared.patterns(parser)
    parser.add_argument("--include", metavar="REGEX", help="the same as --regex --topic REGEX, as Kafka has it")
    shared.connection(parser)
    group = parser.add_argument("-g", "--group", metavar="GROUP", help="read as a member of this group, and commit")
    completed_by(group, group_names)
    where = parser.add_argument_group("where to begin and end")
    where.add_argument(
        "-p",
        "--partition",
        type=partition_numbers,
        metavar="N[,N...]",
        action="extend",
        help="only these; may be given again",
    )
    where.add_argument("-o", "--offset", metavar="OFFSET", help="where to begin (default: end; with -e start)")
    where.add_argument("--from-beginning", action="store_true", help="the same as --offset start")
    where.add_argument("-c", "-n", "--max-messages", type=count, metavar="N", help="end after this many records")
    where.add_argument("-e", "--exit-at-end", action="store_true", help="end at what is the end now")
    where.add_argument(
        "--timeout-ms", type=milliseconds, metavar="MS", help="end when nothing comes for so long, and nothing is there"
    )
    where.add_argument(
        "--give-up-ms",
        type=milliseconds,
        metavar="MS",
        default=GIVE_UP_MS,
        help="with an end: how long to wait for a broker that is away (30000)",
    )
    where.add_argument("--where", metavar="EXPRESSION", help="only records for which it holds; the rest does not count")
    where.add_argument("--isolation-level", choices=("read_uncommitted", "read_committed"))
    where.add_argument(
        "--read-committed", action="store_true", help="the same as --isolation-level read_committed: no aborted records"
    )
    how = parser.add_argument_group("how to print")
    how.add_argument("-f", "--format", metavar="FORMAT", help="what to print for each record; ends no line by itself")
    how.add_argument("-J", "--json", action="store_true", help="a JSON envelope a line, which `produce -J` reads")
    how.add_argument("--null", metavar="TEXT", help="what stands for no key or value in FORMAT (default: null)")
    how.add_argument(
        "--property",
        "--formatter-property",
        dest="properties",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="of Kafka's console formatter: print.key=true, key.separator, ...",
    )
    how.add_argument(
        "--consumer-property", metavar="NAME=VALUE", action="append", default=[], help="a setting of the client"
    )


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_consume(options))


def _format(options: argparse.Namespace) -> Format:
    from ottla.cli.assignments import assignments
    from ottla.cli.format_tokens import escaped
    from ottla.cli.record_format import console_format, json_format, parse_format

    properties = assignments("--property", options.properties)
    if sum((options.format is not None, options.json, bool(properties))) > 1:
        raise UsageFault("give one of --format, --json and --property")
    if options.json:
        return json_format
    null = "null" if options.null is None else options.null
    if options.format is not None:
        return parse_format(options.format, escaped(null))
    return console_format({"null.literal": null, **properties})


def _place(options: argparse.Namespace) -> OffsetPoint:
    from ottla.cli.offsets import parse_place

    if options.from_beginning and options.offset is not None:
        raise UsageFault("give --from-beginning or --offset")
    # Between the end and the end there is nothing.
    from_start = options.from_beginning or options.exit_at_end
    return parse_place(("start" if from_start else "end") if options.offset is None else options.offset)


def _where(options: argparse.Namespace) -> Where | None:
    if options.where is None:
        return None
    from ottla.cli.where import parse_where

    return parse_where(options.where)


class _Topics(NamedTuple):
    names: list[str]
    #: Instead of names: what whole names have to match.
    patterns: shared.TopicPatterns | None


def _topics(options: argparse.Namespace) -> _Topics:
    named = shared.topics_of(options)
    if options.include is not None:
        if named:
            raise UsageFault("give TOPIC or --include REGEX")
        return _Topics([], shared.TopicPatterns([options.include]))
    if not named:
        raise UsageFault("a topic is missing: give TOPIC or --topic TOPIC")
    if options.regex:
        return _Topics([], shared.TopicPatterns(named))
    for name in named:
        shared.check_name(name)
    return _Topics(named, None)


async def _consume(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import explained, reach, settings_of
    from ottla.cli.reachability import BrokerWatch
    from ottla.cli.reading import PartitionReading, ReadingLimits
    from ottla.client.consuming.consumer import Consumer

    topics, formatted, place = _topics(options), _format(options), _place(options)
    limits = ReadingLimits(options.max_messages, options.timeout_ms, options.exit_at_end, _where(options))
    more = _settings(options, limits)
    with explained():
        async with Consumer(settings_of(options, more)) as consumer:
            watch = BrokerWatch(consumer.cluster, options.give_up_ms)
            await reach(consumer.cluster)
            watch.begin()
            if "group.id" in more:
                await _check_there(consumer, topics)
                await _share(consumer, topics, limits, formatted, watch)
                return OK
            partitions = await _partitions(consumer, topics, options.partition)
            reading = PartitionReading(consumer, limits, place, watch)
            await reading.begin(partitions)
            await _print_all(reading, formatted, watch)
    return OK


def _settings(options: argparse.Namespace, limits: ReadingLimits) -> dict[str, Any]:
    from ottla.cli.assignments import assignments

    more: dict[str, Any] = {**assignments("--consumer-property", options.consumer_property)}
    more["allow.auto.create.topics"] = False
    # What is committed is what was printed, which only this command knows.
    more["enable.auto.commit"] = False
    if limits.has_end:
        more.setdefault("default.api.timeout.ms", options.give_up_ms)
    if options.group is not None:
        more["group.id"] = options.group
    if "group.id" not in more:
        # A record that retention takes while it is being read up to is no reason to end.
        more.setdefault("auto.offset.reset", "earliest")
    elif options.offset is not None or options.partition:
        raise UsageFault("a group knows where it goes on, and who reads what: `ottla group reset` moves it")
    elif options.from_beginning:
        more["auto.offset.reset"] = "earliest"
    if options.read_committed:
        if options.isolation_level == "read_uncommitted":
            raise UsageFault("give --read-committed or --isolation-level read_uncommitted")
        more["isolation.level"] = "read_committed"
    elif options.isolation_level:
        more["isolation.level"] = options.isolation_level
    return more


async def _share(
    consumer: Consumer, topics: _Topics, limits: ReadingLimits, formatted: Format, watch: BrokerWatch
) -> None:
    """As a member of a group, and commits what was printed: also after Ctrl-C."""
    from ottla.cli.group_reading import GroupReading

    reading = GroupReading(consumer, limits, watch)
    reading.begin(topics.names, None if topics.patterns is None else topics.patterns.joined())
    try:
        await _print_all(reading, formatted, watch)
    except BaseException:
        await reading.abandon()
        raise
    await reading.end()


async def _check_there(consumer: Consumer, topics: _Topics) -> None:
    """A group would wait for topics that are not there."""
    from ottla.client.admin.topics import describe

    if topics.names:
        await describe(consumer.cluster, topics.names)


async def _partitions(consumer: Consumer, topics: _Topics, wanted: list[int] | None) -> list[TopicPartition]:
    from ottla.cli.counting import counted
    from ottla.client.admin.topics import describe
    from ottla.model import TopicPartition

    described = await describe(consumer.cluster, topics.names or None)
    names = topics.names
    if topics.patterns is not None:
        match = topics.patterns.match
        names = sorted(topic.name for topic in described.values() if not topic.internal and match(topic.name))
        if not names:
            raise CommandFault(f"no topic matches {topics.patterns}; `ottla topic list` names the topics", NOT_FOUND)
    found: list[TopicPartition] = []
    for name in names:
        known = [each.partition for each in described[name].partitions]
        for number in wanted or ():
            if number not in known:
                raise CommandFault(f"{name} has {counted(len(known), 'partition')}, and no {number}", NOT_FOUND)
        found += [TopicPartition(name, number) for number in dict.fromkeys(wanted or known)]
    return found


async def _print_all(reading: PartitionReading | GroupReading, formatted: Format, watch: BrokerWatch) -> None:
    from ottla.cli.progress import Progress

    write, flush = sys.stdout.buffer.write, sys.stdout.buffer.flush
    # A bar between printed records helps nobody.
    watched = reading.expected is not None and not sys.stdout.isatty()
    with Progress("consuming", reading.expected, "records", wanted=watched) as progress:
        watch.say = progress.note
        while (records := await reading.more()) is not None:
            if records:
                write(b"".join(map(formatted, records)))
                flush()
                progress.add(len(records))
