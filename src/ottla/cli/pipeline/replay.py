"""Send dead letters again, to the topic that they came from; each once. Without --yes it only says how many there are.

A pipeline that runs reads them like all other records. They carry the header ottla.replayed; all
other readers of the topic get them a second time.

ottla pipeline replay orders.py --topic orders --yes
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.cli import options as shared
from ottla.cli.counting import counted
from ottla.cli.faults import NOT_CONFIRMED, OK
from ottla.cli.pipeline import explained, file_and_folder, needs_spark, places_of

if TYPE_CHECKING:
    from ottla.pipeline.replay import Replay


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.connection(parser)
    file_and_folder(parser)
    parser.add_argument(
        "-t", "--topic", metavar="TOPIC", help="only of this topic (default: all that have dead letters)"
    )
    shared.confirmation(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    needs_spark()
    from ottla.cli.connecting import explained as explained_client
    from ottla.cli.connecting import settings_of
    from ottla.pipeline.places import Places
    from ottla.pipeline.replay import replay, topics_with_letters

    places: Places = places_of(options)
    name = os.path.splitext(os.path.basename(options.file))[0]
    found: list[Replay] = []
    try:
        with explained(), explained_client():
            settings = settings_of(options)
            topics = [options.topic] if options.topic else topics_with_letters(settings)
            with places.replaying():
                found.extend(replay(each, settings, places, pipeline=name, dry_run=not options.yes) for each in topics)
    except BaseException:
        if found:  # those of the topics before it were sent, and are not sent again
            _show(found, options)
        raise
    _show(found, options)
    return OK if options.yes or not any(one.found for one in found) else NOT_CONFIRMED


def _show(found: Sequence[Replay], options: argparse.Namespace) -> None:
    from ottla.cli.output import show

    data = [{"topic": one.topic, "found": one.found, "sent": one.sent, "rules": one.rules} for one in found]
    lines = [
        f"{one.topic}: {counted(one.found, 'dead letter')} {'sent' if options.yes else 'to send'}{_rules(one.rules)}\n"
        for one in found
    ]
    show(options.output, data, "".join(lines) or "there are no dead letters\n")


def _rules(rules: dict[str, int]) -> str:
    return f" ({'; '.join(f'{name}: {count}' for name, count in sorted(rules.items()))})" if rules else ""
