"""Whose settings: `--topic T`, `--broker ID`, `--all-brokers`, or Kafka's `--entity-type` and `--entity-name`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ottla.cli.faults import UsageFault
from ottla.cli.parser import completed_by

if TYPE_CHECKING:
    from ottla.client.admin.results import ConfigResource


def arguments(parser: argparse.ArgumentParser) -> None:
    from ottla.cli.completing import topic_names

    whose = parser.add_argument_group("whose settings")
    completed_by(whose.add_argument("--topic", metavar="TOPIC", help="a topic's"), topic_names)
    whose.add_argument("--broker", metavar="ID", help="one broker's")
    whose.add_argument("--all-brokers", action="store_true", help="those that all brokers have in common")
    whose.add_argument("--entity-type", choices=("topics", "brokers"), help="as in Kafka's scripts")
    whose.add_argument("--entity-name", metavar="NAME", help="the topic, or the broker's id")
    whose.add_argument("--entity-default", action="store_true", help="all brokers")


def resource_of(options: argparse.Namespace) -> ConfigResource:
    from ottla.client.admin.results import ConfigResource

    named = [
        *([ConfigResource.topic(options.topic)] if options.topic is not None else []),
        *([ConfigResource.broker(_broker_id(options.broker))] if options.broker is not None else []),
        *([ConfigResource.broker("")] if options.all_brokers else []),
        *_entity(options),
    ]
    if len(named) != 1:
        problem = "say whose settings" if not named else "name one only"
        raise UsageFault(f"{problem}: --topic TOPIC, --broker ID or --all-brokers")
    return named[0]


def _entity(options: argparse.Namespace) -> list[ConfigResource]:
    from ottla.client.admin.results import ConfigResource

    if options.entity_type is None:
        if options.entity_name is not None or options.entity_default:
            raise UsageFault("--entity-type is missing: topics or brokers")
        return []
    if options.entity_type == "topics":
        if options.entity_name is None:
            raise UsageFault("--entity-name is missing: the topic")
        return [ConfigResource.topic(options.entity_name)]
    if (options.entity_name is None) != options.entity_default:
        raise UsageFault("give either --entity-name ID or --entity-default")
    return [ConfigResource.broker("" if options.entity_default else _broker_id(options.entity_name))]


def _broker_id(text: str) -> str:
    if not (text.isascii() and text.isdigit()):
        raise UsageFault(f"'{text}' is not a broker's id: ids are numbers (`ottla cluster describe` lists them)")
    return text
