"""Measure how fast the records of a topic are read, from its beginning or from its end on."""

from __future__ import annotations

import argparse
import asyncio

from ottla.cli import options as shared
from ottla.cli.faults import FAILED, OK, CommandFault
from ottla.cli.numbers import count, milliseconds


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.topic(parser)
    shared.connection(parser)
    parser.add_argument(
        "--messages", "--num-records", type=count, metavar="N", required=True, help="how many records to read"
    )
    parser.add_argument("--from-latest", action="store_true", help="begin at the end instead of at the beginning")
    parser.add_argument(
        "--timeout", type=milliseconds, metavar="MS", default=10_000, help="how long to wait for a record (10000)"
    )
    parser.add_argument(
        "--consumer-property", metavar="NAME=VALUE", action="append", default=[], help="a setting of the client"
    )
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_consume(options))


async def _consume(options: argparse.Namespace) -> int:
    from ottla.cli.assignments import assignments
    from ottla.cli.connecting import explained, reach, settings_of
    from ottla.cli.counting import counted
    from ottla.cli.output import show
    from ottla.cli.progress import Progress
    from ottla.cli.reachability import BrokerWatch
    from ottla.client.admin.topics import describe
    from ottla.client.consuming.consumer import Consumer
    from ottla.model import TopicPartition

    topic = shared.topic_of(options)
    more = assignments("--consumer-property", options.consumer_property)
    more["auto.offset.reset"] = "latest" if options.from_latest else "earliest"
    records = size = 0
    with explained():
        async with Consumer(settings_of(options, more)) as consumer:
            await reach(consumer.cluster)
            watch = BrokerWatch(consumer.cluster)
            watch.begin()
            described = (await describe(consumer.cluster, [topic]))[topic]
            watch.reads([topic])
            consumer.assign([TopicPartition(topic, each.partition) for each in described.partitions])
            clock = asyncio.get_running_loop().time
            started = last = clock()
            with Progress("consuming", options.messages, "records") as progress:
                watch.say = progress.note
                while records < options.messages:
                    polled = await consumer.poll(timeout_ms=options.timeout)
                    if not polled:
                        if watch.lacks_something():
                            raise watch.given_up()
                        if await watch.is_silent(consumer, consumer.assignment(), options.timeout):
                            break
                        continue
                    watch.heard()
                    last = clock()
                    records += len(polled)
                    size += sum(len(record.value or b"") + len(record.key or b"") for record in polled)
                    progress.add(len(polled))
    seconds = max(last - started, 1e-9)
    data = {
        "records": records,
        "seconds": round(seconds, 3),
        "records_per_second": round(records / seconds, 1),
        "megabytes_per_second": round(size / seconds / 1e6, 2),
    }
    show(options.output, data, "".join(f"{name:<21} {value}\n" for name, value in data.items()))
    if records < options.messages:
        wanted = counted(options.messages, "record")
        raise CommandFault(f"only {records} of {wanted} came, and then none for {options.timeout} ms", FAILED)
    return OK
