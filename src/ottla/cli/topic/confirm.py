"""Let topics that keep everything lose records again, by the broker's settings or by those given here.

Topics that were taken over without their settings keep everything: their cleanup.policy is empty. Without TOPIC all of
them are shown; nothing is done without --yes. Afterwards a topic has the broker's cleanup.policy and retention (an
internal one is compacted again), unless --config says otherwise: what is older is removed soon.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from ottla.cli import options as shared
from ottla.cli.faults import OK, CommandFault

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ottla.client.admin.results import ConfigChange, ConfigEntry

_POLICY: Final = "cleanup.policy"
_SHOWN: Final = (_POLICY, "retention.ms", "retention.bytes")
_COLUMNS: Final = {"topic": "TOPIC", **{name: name.upper() for name in _SHOWN}}


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.topics(parser, "the topics; all that keep everything where none is named")
    shared.connection(parser)
    parser.add_argument(
        "--config", metavar="NAME=VALUE", action="append", default=[], help="set this as well; may be given again"
    )
    shared.confirmation(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_confirm(options))


async def _confirm(options: argparse.Namespace) -> int:
    from ottla.cli.assignments import assignments
    from ottla.cli.connecting import admin
    from ottla.cli.gone import still_there
    from ottla.cli.plan import show_plan
    from ottla.client.admin.results import ConfigResource

    given = assignments("--config", options.config)
    named = shared.topics_of(options)
    async with admin(options) as client:
        topics = await client.describe_topics(named or None)
        asked = [ConfigResource.topic(name) for name in topics]
        describing = client.describe_configs(asked, names=[*_SHOWN], synonyms=True)
        described = {one.name: entries for one, entries in (await still_there(describing, listed=not named)).items()}
        kept = [name for name in named or sorted(described) if _keeps_everything(described[name])]
        _refuse_others(named, kept)
        changes = {name: _changes(given, internal=topics[name].internal) for name in kept}
        rows = [_row(name, described[name], changes[name]) for name in kept]
        title = "topics that keep everything, and what they would have:" if kept else "no topic keeps everything"
        show_plan(options.output, title, rows, _COLUMNS, confirmed=options.yes or not kept)
        if kept:
            await client.incremental_alter_configs({ConfigResource.topic(name): changes[name] for name in kept})
    if options.output == "table" and kept:
        print(f"confirmed {', '.join(kept)}")
    return OK


def _keeps_everything(entries: Mapping[str, ConfigEntry]) -> bool:
    from ottla.client.admin.results import ConfigSource

    policy = entries[_POLICY]
    return policy.source == ConfigSource.TOPIC_CONFIG and not policy.value


def _refuse_others(named: Sequence[str], kept: Sequence[str]) -> None:
    others = [name for name in named if name not in kept]
    if others:
        raise CommandFault(f"{', '.join(others)}: has a cleanup.policy, and there is nothing to confirm")


def _changes(given: Mapping[str, str], *, internal: bool) -> list[ConfigChange]:
    from ottla.client.admin.results import ConfigChange, ConfigOperation

    changes = [ConfigChange(name, value) for name, value in given.items()]
    if _POLICY not in given:
        # Deleted by age, the internal ones would lose what they are there for.
        changes.append(
            ConfigChange(_POLICY, "compact") if internal else ConfigChange(_POLICY, None, ConfigOperation.DELETE)
        )
    return changes


def _row(topic: str, entries: Mapping[str, ConfigEntry], changes: Sequence[ConfigChange]) -> dict[str, Any]:
    """The settings as they will be."""
    row: dict[str, Any] = {"topic": topic, **{name: entries[name].value for name in _SHOWN}}
    for change in changes:
        if change.name not in row or change.value is not None:
            row[change.name] = change.value
        else:
            row[change.name] = _without_the_topics_own(entries[change.name])
    return row


def _without_the_topics_own(entry: ConfigEntry) -> str | None:
    from ottla.client.admin.results import ConfigSource

    return next((each.value for each in entry.synonyms if each.source != ConfigSource.TOPIC_CONFIG), None)
