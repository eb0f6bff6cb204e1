"""Options that many verbs share, under Kafka's long names."""

from __future__ import annotations

import argparse
import os

from ottla.cli.parser import completed_by

BOOTSTRAP_DEFAULT = "localhost:9092"


def connection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT",
        help="any brokers of the cluster, separated by commas "
        f"(default: $OTTLA_BOOTSTRAP_SERVER, or {BOOTSTRAP_DEFAULT})",
    )
    parser.add_argument("--command-config", metavar="FILE", help="a property file with the client's settings")


def bootstrap_of(options: argparse.Namespace) -> str:
    named: str | None = options.bootstrap_server
    return named or os.environ.get("OTTLA_BOOTSTRAP_SERVER") or BOOTSTRAP_DEFAULT


def output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", choices=("table", "json", "yaml"), default="table", help="how to print it (default: table)"
    )


def confirmation(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--yes", action="store_true", help="do it; without this the plan is printed and nothing done")


def topic(parser: argparse.ArgumentParser) -> None:
    """One topic, as an argument or, as in Kafka's scripts, as an option; `topic_of` reads it."""
    parser.add_argument("topic", nargs="?", metavar="TOPIC", help="the topic")
    parser.add_argument("--topic", dest="topic_option", metavar="TOPIC", help="the same, as Kafka's scripts have it")
    _complete_topics(parser)


def topics(parser: argparse.ArgumentParser, what: str) -> None:
    """Any number of topics; `topics_of` reads them."""
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=what)
    parser.add_argument(
        "--topic",
        dest="topic_option",
        metavar="TOPIC",
        action="append",
        default=[],
        help="the same, as Kafka's scripts have it; may be given again, or name several, separated by commas",
    )
    _complete_topics(parser)


def _complete_topics(parser: argparse.ArgumentParser) -> None:
    from ottla.cli.completing import topic_names

    for action in parser._actions:  # noqa: SLF001 - argparse has no other way to go through them
        if action.metavar == "TOPIC":
            completed_by(action, topic_names)


def topic_of(options: argparse.Namespace) -> str:
    from ottla.cli.faults import UsageFault
    from ottla.model import topic_name_fault

    named: str | None = options.topic
    if named is not None and options.topic_option is not None:
        raise UsageFault("the topic is named twice: give TOPIC or --topic TOPIC")
    name = named if named is not None else options.topic_option
    if not name:
        raise UsageFault("a topic is missing: give TOPIC or --topic TOPIC")
    fault = topic_name_fault(name)
    if fault:
        raise UsageFault(f"no topic can have this name: {fault}")
    return str(name)


def topics_of(options: argparse.Namespace) -> list[str]:
    """Without repetitions, in their order; empty where none is named."""
    named = [*options.topics, *(name for text in options.topic_option for name in text.split(","))]
    return list(dict.fromkeys(name.strip() for name in named if name.strip()))
