"""Show the settings of a topic or of brokers: those that were set, or with --all those that hold by default, too."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ottla.cli import options as shared
from ottla.cli.config import resource
from ottla.cli.faults import NOT_FOUND, OK, CommandFault

if TYPE_CHECKING:
    from ottla.client.admin.results import ConfigEntry, ConfigResource

_COLUMNS = {"name": "NAME", "value": "VALUE", "source": "SOURCE", "read_only": "READ-ONLY"}


def arguments(parser: argparse.ArgumentParser) -> None:
    resource.arguments(parser)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these settings")
    parser.add_argument("--all", action="store_true", help="also what nobody has set")
    parser.add_argument("--documentation", action="store_true", help="what each means, too")
    shared.connection(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_describe(options))


async def _describe(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.output import show_rows

    whose = resource.resource_of(options)
    async with admin(options) as client:
        described = await client.describe_configs(
            [whose], names=options.names or None, synonyms=True, documentation=options.documentation
        )
    entries = sorted(described[whose].values(), key=lambda entry: entry.name)
    missing = sorted(set(options.names) - {entry.name for entry in entries})
    if missing:
        raise CommandFault(f"there is no setting {', '.join(missing)}; --all lists what there is", NOT_FOUND)
    if not options.all and not options.names:
        entries = [entry for entry in entries if _is_set(entry)]
    rows = [_row(entry, options) for entry in entries]
    columns = {**_COLUMNS, "documentation": "MEANING"} if options.documentation else _COLUMNS
    show_rows(options.output, rows, columns)
    return OK


def _is_set(entry: ConfigEntry) -> bool:
    """By a client: what a property file says holds for all topics, and is shown for brokers only with --all.

    `min.insync.replicas` is set for all brokers from a cluster's beginning: it is shown where it was changed.
    """
    from ottla.client.admin.results import ConfigSource

    if entry.source == ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG:
        defaults = {each.value for each in entry.synonyms if each.source == ConfigSource.DEFAULT_CONFIG}
        return entry.value not in defaults
    return entry.source not in {ConfigSource.DEFAULT_CONFIG, ConfigSource.STATIC_BROKER_CONFIG}


def is_set_on(entry: ConfigEntry, whose: ConfigResource) -> bool:
    """By a client, and on this resource itself: what holds for all brokers is set on none of them."""
    from ottla.client.admin.results import ConfigSource, ResourceType

    if whose.type == ResourceType.TOPIC:
        return entry.source == ConfigSource.TOPIC_CONFIG
    if not whose.name:
        return entry.source == ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return entry.source == ConfigSource.DYNAMIC_BROKER_CONFIG


def _row(entry: ConfigEntry, options: argparse.Namespace) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": entry.name,
        "value": "(hidden)" if entry.sensitive and entry.value is None else entry.value,
        "source": source_word(entry.source.name),
        "read_only": entry.read_only,
        "sensitive": entry.sensitive,
        "synonyms": [
            {"name": each.name, "value": each.value, "source": source_word(each.source.name)} for each in entry.synonyms
        ],
    }
    if options.documentation:
        row["documentation"] = entry.documentation
    return row


def source_word(source: str) -> str:
    return source.lower().removesuffix("_config").replace("_", "-")
