"""Show topics: partitions with leaders, replicas and in-sync replicas, and the settings that override the broker's.

Without TOPIC all topics are shown. --unavailable, --under-min-isr, --at-min-isr and --under-replicated leave only
partitions that need attention; several of them, those that any of them names.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ottla.cli import options as shared
from ottla.cli.faults import OK

if TYPE_CHECKING:
    from ottla.client.admin.admin import Admin
    from ottla.client.admin.results import ConfigEntry, PartitionDescription, TopicDescription

_COLUMNS = {"partition": "PARTITION", "leader": "LEADER", "replicas": "REPLICAS", "isr": "ISR"}
_OFFSET_COLUMNS = {"start": "START", "end": "END"}


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.topics(parser, "the topics; all where none is named")
    shared.patterns(parser)
    shared.connection(parser)
    parser.add_argument(
        "--under-replicated-partitions",
        "--under-replicated",
        dest="under_replicated",
        action="store_true",
        help="only partitions that miss in-sync replicas",
    )
    parser.add_argument(
        "--unavailable-partitions",
        "--unavailable",
        dest="unavailable",
        action="store_true",
        help="only partitions that nobody leads",
    )
    parser.add_argument(
        "--under-min-isr-partitions",
        "--under-min-isr",
        dest="under_min_isr",
        action="store_true",
        help="only partitions that take no writes with acks=all: fewer in sync than min.insync.replicas",
    )
    parser.add_argument(
        "--at-min-isr-partitions",
        "--at-min-isr",
        dest="at_min_isr",
        action="store_true",
        help="only partitions that would take none with one replica less",
    )
    parser.add_argument("--offsets", action="store_true", help="first and next offset of each partition, too")
    parser.add_argument(
        "-a", "--print-all", dest="all", action="store_true", help="offsets, and all settings with where they are from"
    )
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_describe(options))


async def _describe(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.gone import still_there
    from ottla.cli.output import show

    async with admin(options) as client:
        names = await shared.chosen_topics(client, options)
        listed = options.regex or not names
        topics = await still_there(client.describe_topics(names or None), listed=listed)
        settings = await _settings(client, list(topics), listed=listed)
        described = [
            await _described(client, topics[name], settings[name], options, listed=listed)
            for name in names or sorted(topics)
            if name in settings
        ]
    if _is_filtered(options):
        described = [topic for topic in described if topic["partitions"]]
    show(options.output, described, "\n".join(_table(topic) for topic in described))
    return OK


async def _settings(client: Admin, names: list[str], *, listed: bool) -> dict[str, dict[str, ConfigEntry]]:
    from ottla.cli.gone import still_there
    from ottla.client.admin.results import ConfigResource

    if not names:
        return {}
    asked = [ConfigResource.topic(name) for name in names]
    found = await still_there(client.describe_configs(asked), listed=listed)
    return {resource.name: dict(entries) for resource, entries in found.items()}


async def _described(
    client: Admin,
    topic: TopicDescription,
    settings: dict[str, ConfigEntry],
    options: argparse.Namespace,
    *,
    listed: bool,
) -> dict[str, Any]:
    from ottla.cli.config.describe import source_word
    from ottla.client.admin.results import ConfigSource
    from ottla.model import topic_id_text

    needed = min_isr(settings)
    partitions = [each for each in topic.partitions if _is_wanted(each, needed, options)]
    rows = [
        {
            "partition": each.partition,
            "leader": each.leader,
            "leader_epoch": each.leader_epoch,
            "replicas": list(each.replicas),
            "isr": list(each.isr),
            "offline_replicas": list(each.offline_replicas),
        }
        for each in partitions
    ]
    if options.offsets or options.all:
        await _add_offsets(client, topic.name, rows, listed=listed)
    described: dict[str, Any] = {
        "topic": topic.name,
        "id": topic_id_text(topic.topic_id),
        "internal": topic.internal,
        "configs": {
            entry.name: entry.value for entry in settings.values() if entry.source == ConfigSource.TOPIC_CONFIG
        },
        "partitions": rows,
    }
    if options.all:
        described["settings"] = [
            {"name": one.name, "value": "(hidden)" if one.sensitive and one.value is None else one.value}
            | {"source": source_word(one.source.name)}
            for one in sorted(settings.values(), key=lambda entry: entry.name)
        ]
    return described


def min_isr(settings: Mapping[str, ConfigEntry]) -> int:
    """As its settings say it; 1 where a broker does not show them."""
    found = settings.get("min.insync.replicas")
    text = (found and found.value) or ""
    return int(text) if text.isdecimal() else 1


def needed_in_sync(partition: PartitionDescription, min_insync_replicas: int) -> int:
    """For a write with acks=all. A partition with fewer copies than that needs all of them, as brokers count."""
    return min(min_insync_replicas, len(partition.replicas))


def _is_filtered(options: argparse.Namespace) -> bool:
    return bool(options.under_replicated or options.unavailable or options.under_min_isr or options.at_min_isr)


def _is_wanted(partition: PartitionDescription, min_insync_replicas: int, options: argparse.Namespace) -> bool:
    in_sync, needed = len(partition.isr), needed_in_sync(partition, min_insync_replicas)
    return (
        not _is_filtered(options)
        or (options.unavailable and partition.leader is None)
        or (options.under_replicated and in_sync < len(partition.replicas))
        or (options.under_min_isr and (partition.leader is None or in_sync < needed))
        or (options.at_min_isr and in_sync == needed)
    )


async def _add_offsets(client: Admin, topic: str, rows: list[dict[str, Any]], *, listed: bool) -> None:
    from ottla.cli.gone import still_there
    from ottla.cli.offsets import EARLIEST, LATEST, offsets_of
    from ottla.model import TopicPartition

    led = [TopicPartition(topic, row["partition"]) for row in rows if row["leader"] is not None]
    starts = await still_there(offsets_of(client.cluster, dict.fromkeys(led, EARLIEST)), listed=listed)
    ends = await still_there(offsets_of(client.cluster, dict.fromkeys(led, LATEST)), listed=listed)
    for row in rows:
        tp = TopicPartition(topic, row["partition"])
        row["start"] = starts.get(tp)
        row["end"] = ends.get(tp)


def _table(topic: dict[str, Any]) -> str:
    from ottla.cli.output import table_of

    rows = topic["partitions"]
    overrides = " ".join(f"{name}={value}" for name, value in topic["configs"].items())
    head = f"{topic['topic']}  id={topic['id']}  {overrides}".rstrip()
    if topic["configs"].get("cleanup.policy") == "":
        head += "  (keeps everything: `ottla topic confirm`)"
    columns = {**_COLUMNS, **_OFFSET_COLUMNS} if any("start" in row for row in rows) else _COLUMNS
    text = f"{head}\n{table_of(rows, columns)}"
    if "settings" in topic:
        shown = {name: name.upper() for name in ("name", "value", "source")}
        text += f"\n{table_of(topic['settings'], shown)}"
    return text
