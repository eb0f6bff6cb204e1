"""Produce the records of a log directory's files into a topic: of Ottla's, and of any Kafka's since 0.7.

A folder is a partition's (orders-0), or has those of one topic in it. Its segments may hold batches, messages of
magic 0 and 1, or the entries of Kafka 0.7 (.kafka files). Keys, timestamps and headers are kept, where the format has
them, and the order in each partition; offsets are new ones. Aborted transactions and control records stay behind.
All files are checked first: damage is named, and with it nothing is sent, unless --skip-damaged says to send the rest.
ottla log import /old/data/orders-0 --topic orders
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ottla.cli import options as shared
from ottla.cli.faults import FAILED, NOT_FOUND, OK, CommandFault, UsageFault
from ottla.cli.numbers import partition_number

if TYPE_CHECKING:
    from ottla.cli.reachability import BrokerWatch
    from ottla.client.errors import KafkaError
    from ottla.client.producing.batches import Delivery
    from ottla.client.producing.producer import Producer
    from ottla.ports.disk import Disk
    from ottla.storage.dump.importable import ImportableLog, PartitionFiles

#: Folders that a message names.
_NAMED_MAX = 5


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folders", nargs="+", metavar="DIR", help="partitions' folders, or a folder with such folders")
    parser.add_argument("-t", "--topic", metavar="TOPIC", required=True, help="the topic that gets the records")
    parser.add_argument(
        "-p", "--partition", type=partition_number, metavar="N", help="send all there; else as the folders' names say"
    )
    parser.add_argument("--skip-damaged", action="store_true", help="send what can be read of damaged files")
    parser.add_argument("--dry-run", action="store_true", help="check and count, and send nothing")
    parser.add_argument(
        "-z", "--compression", choices=("none", "gzip", "snappy", "lz4", "zstd"), help="how to send (default: none)"
    )
    shared.connection(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop
    from ottla.ports.real import wants_portable
    from ottla.ports.real.disk import RealDisk

    shared.check_name(options.topic)
    disk = RealDisk(portable=wants_portable())
    partitions = _partitions(disk, options)
    logs = _checked(disk, partitions, options)
    return _count(logs, options.output) if options.dry_run else run_on_loop(_import(logs, options))


def _partitions(disk: Disk, options: argparse.Namespace) -> list[PartitionFiles]:
    from ottla.storage.dump.importable import partitions_below

    found: list[PartitionFiles] = []
    for folder in options.folders:
        if not disk.is_directory(folder):
            raise CommandFault(f"there is no folder {folder}", NOT_FOUND)
        try:
            found += partitions_below(disk, os.path.abspath(folder))
        except OSError as error:
            raise CommandFault(f"cannot read {error.filename or folder}: {error.strerror or error}") from error
    if not found:
        raise CommandFault(f"no segment (.log, .kafka) is in {', '.join(options.folders)}", NOT_FOUND)
    topics = sorted({one.topic for one in found if one.topic is not None})
    if len(topics) > 1:
        named = ", ".join(topics[:_NAMED_MAX]) + (", ..." if len(topics) > _NAMED_MAX else "")
        raise UsageFault(f"there are partitions of several topics ({named}): name the folders of one")
    return found


def _checked(disk: Disk, partitions: list[PartitionFiles], options: argparse.Namespace) -> list[ImportableLog]:
    """Raises CommandFault where something is damaged, unless that is to be passed over."""
    from ottla.cli.counting import counted
    from ottla.cli.progress import Progress
    from ottla.storage.dump.importable import ImportableLog

    logs, damage = [ImportableLog(disk, one) for one in partitions], 0
    sizes = {file: os.path.getsize(file) for one in partitions for file in one.files}
    with Progress("checking", sum(sizes.values()), "B") as progress:
        for log in logs:
            for finding in log.check(lambda file: progress.add(sizes[file])):
                if finding.is_unread:
                    raise CommandFault(f"cannot read {finding.path}: {finding.message}")
                damage += finding.is_damage
                progress.note(f"{'damage' if finding.is_damage else 'note'}: {finding}")
    if damage and not options.skip_damaged:
        faults = counted(damage, "fault")
        raise CommandFault(f"nothing is sent, since there is damage ({faults}): --skip-damaged sends what can be read")
    return logs


def _count(logs: list[ImportableLog], form: str) -> int:
    from ottla.cli.counting import counted

    rows = []
    for log in logs:
        count = sum(1 for _ in log.data())
        rows.append(_row(log, count, None, None))
        if form == "table":
            print(f"{log.files.path}: {counted(count, 'record')} in {counted(len(log.files.files), 'segment')}")
    _show(form, rows)
    return OK


def _row(log: ImportableLog, count: int, topic: str | None, partition: int | None) -> dict[str, Any]:
    return {
        "folder": log.files.path,
        "segments": len(log.files.files),
        "records": count,
        "topic": topic,
        "partition": partition,
    }


def _show(form: str, rows: list[dict[str, Any]]) -> None:
    """As a table each folder has had its line already."""
    from ottla.cli.output import show_rows

    if form != "table":
        show_rows(form, rows, {})


async def _import(logs: list[ImportableLog], options: argparse.Namespace) -> int:
    from ottla.cli.connecting import explained, reach, settings_of
    from ottla.cli.counting import counted, were
    from ottla.cli.reachability import BrokerWatch
    from ottla.client.producing.producer import Producer

    settings: dict[str, Any] = {}
    if options.compression is not None:
        settings["compression.type"] = options.compression
    with explained():
        async with Producer(settings_of(options, settings)) as producer:
            await reach(producer.cluster)
            watch = BrokerWatch(producer.cluster)
            watch.begin()
            count = await producer.partitions_for(options.topic)
            rows: list[dict[str, Any]] = []
            try:
                for log, target in list(_targets(logs, options, count)):
                    sent = await _send(log, producer, watch, options.topic, target)
                    rows.append(_row(log, sent, options.topic, target))
                    if options.output == "table":
                        where = options.topic if target is None else f"{options.topic}-{target}"
                        print(f"{log.files.path}: {counted(sent, 'record')} {were(sent)} sent to {where}", flush=True)
            except BaseException:
                if rows:  # what was done before is said all the same: nobody should send it again
                    _show(options.output, rows)
                raise
    _show(options.output, rows)
    return OK


def _targets(
    logs: list[ImportableLog], options: argparse.Namespace, count: int
) -> Iterator[tuple[ImportableLog, int | None]]:
    """Raises CommandFault where the topic lacks a partition that is needed: before anything is sent."""
    from ottla.cli.counting import counted

    for log in logs:
        target = log.files.partition if options.partition is None else options.partition
        if target is not None and target >= count:
            raise CommandFault(
                f"{options.topic} has {counted(count, 'partition')}, and {log.files.path} goes to number {target}: "
                "add partitions, or give --partition",
                NOT_FOUND,
            )
        yield log, target


async def _send(log: ImportableLog, producer: Producer, watch: BrokerWatch, topic: str, partition: int | None) -> int:
    """How many records were sent, all of which are acknowledged."""
    from ottla.cli.connecting import advised, exit_code
    from ottla.cli.counting import counted, were
    from ottla.cli.progress import Progress
    from ottla.client.errors import BufferExhausted, KafkaError

    path, sending = log.files.path, _Sending()
    with Progress(f"importing {os.path.basename(path)}", None, "records") as progress:
        watch.say = progress.note
        try:
            try:
                for record in log.data():
                    await producer.send(
                        topic,
                        record.value,
                        record.key,
                        partition=partition,
                        timestamp=record.timestamp if record.timestamp >= 0 else None,
                        headers=record.headers,
                        on_delivery=sending.delivered,
                    )
                    sending.sent += 1
                    progress.add(1)
                    if sending.failed:
                        break
            except BufferExhausted as error:  # those before it are still on their way, perhaps to nobody
                sending.fail(error)
            except (KafkaError, OSError) as error:  # one that the client does not take, or a file that is not read
                sending.broken_by = error
            await producer.flush()
        except asyncio.CancelledError:  # a Ctrl-C, while records are read or while the last ones are on their way
            progress.note(f"ottla: {path}: stopped; {sending.done_of(topic, 'at least ')}")
            raise
    broken = sending.broken_by
    if broken is not None:
        what, code = (advised(broken), exit_code(broken)) if isinstance(broken, KafkaError) else (str(broken), FAILED)
        raise CommandFault(f"{path}: record {sending.sent + 1}: {what}; {sending.done_of(topic)}", code) from broken
    first = sending.first_failure
    if first is not None:
        failed = f"{counted(sending.failed, 'record')} {were(sending.failed)} not acknowledged"
        message = f"{path}: {failed} of {sending.sent} that were sent: {first}; {sending.done_of(topic)}"
        raise CommandFault(message, watch.code_of(first)) from first
    return sending.sent


class _Sending:
    """Of one partition."""

    def __init__(self) -> None:
        self.sent = 0
        self.acknowledged = 0
        self.failed = 0
        self.first_failure: BaseException | None = None
        #: What ended it before the records did.
        self.broken_by: KafkaError | OSError | None = None

    def delivered(self, delivery: Delivery) -> None:
        error = delivery.exception()
        if error is None:
            self.acknowledged += 1
        else:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        self.failed += 1
        self.first_failure = self.first_failure or error

    def done_of(self, topic: str, bound: str = "") -> str:
        """Offsets are new ones, so nobody could tell later which of the records are there."""
        from ottla.cli.counting import are, counted

        if not self.acknowledged:
            return f"no record of this folder is known to be in {topic}"
        there = counted(self.acknowledged, "record")
        return f"{bound}{there} of this folder {are(self.acknowledged)} in {topic}: another import doubles them"
