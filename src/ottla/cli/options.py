"""Options that many verbs share, under Kafka's long names."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ottla.cli.addresses import BOOTSTRAP_DEFAULT
from ottla.cli.parser import completed_by

if TYPE_CHECKING:
    import re

    from ottla.client.admin.admin import Admin


def connection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-b",
        "--bootstrap-server",
        "--brokers",
        dest="bootstrap_server",
        metavar="HOST[:PORT]",
        help="any brokers of the cluster, separated by commas; the port is 9092 where none is given "
        f"(default: $OTTLA_BOOTSTRAP_SERVER, the profile's, or {BOOTSTRAP_DEFAULT})",
    )
    parser.add_argument("--command-config", metavar="FILE", help="a property file with the client's settings")
    completed_by(
        parser.add_argument("--profile", metavar="NAME", help="a cluster that `ottla profile add` has named"),
        profile_names,
    )


def profile_names(prefix: str, **_: object) -> list[str]:
    from ottla.cli.faults import CommandFault
    from ottla.cli.profiles import read_profiles

    try:
        return [name for name in read_profiles().names() if name.startswith(prefix)]
    except CommandFault:
        return []


def output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", choices=("table", "json", "yaml"), default="table", help="how to print it (default: table)"
    )


def confirmation(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--yes", action="store_true", help="do it; without this the plan is printed and nothing done")


def topic(parser: argparse.ArgumentParser) -> None:
    """One topic, as an argument or, as in Kafka's scripts, as an option; `topic_of` reads it."""
    parser.add_argument("topic", nargs="?", metavar="TOPIC", help="the topic")
    parser.add_argument(
        "-t", "--topic", dest="topic_option", metavar="TOPIC", help="the same, as Kafka's scripts have it"
    )
    _complete_topics(parser)


def topics(parser: argparse.ArgumentParser, what: str) -> None:
    """Any number of topics; `topics_of` reads them."""
    parser.add_argument("topics", nargs="*", metavar="TOPIC", help=what)
    parser.add_argument(
        "-t",
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

    named: str | None = options.topic
    if named is not None and options.topic_option is not None:
        raise UsageFault("the topic is named twice: give TOPIC or --topic TOPIC")
    name = named if named is not None else options.topic_option
    if not name:
        raise UsageFault("a topic is missing: give TOPIC or --topic TOPIC")
    check_name(str(name))
    return str(name)


def check_name(name: str) -> None:
    """Raises UsageFault on what no topic is called."""
    from ottla.cli.faults import UsageFault
    from ottla.model import topic_name_fault

    fault = topic_name_fault(name)
    if fault:
        raise UsageFault(f"no topic can have this name: {fault}")


def patterns(parser: argparse.ArgumentParser) -> None:
    """Beside `topics`: `chosen_topics` then reads both."""
    parser.add_argument(
        "-r",
        "--regex",
        action="store_true",
        help="TOPIC is a regular expression, for whole names of topics that are not internal",
    )


def topics_of(options: argparse.Namespace) -> list[str]:
    """Without repetitions, in their order; empty where none is named."""
    if getattr(options, "regex", False):  # commas belong to expressions
        named = [*options.topics, *options.topic_option]
    else:
        named = [*options.topics, *(name for text in options.topic_option for name in text.split(","))]
    return list(dict.fromkeys(name.strip() for name in named if name.strip()))


class TopicPatterns:
    """Regular expressions of which a name has to match one as a whole, each by itself: joined into one they would share
    the numbers of their groups, and a flag of one would be the others'."""

    def __init__(self, expressions: list[str]) -> None:
        import re

        from ottla.cli.faults import UsageFault

        self.expressions = expressions
        self._compiled: list[re.Pattern[str]] = []
        for expression in expressions:
            try:
                self._compiled.append(re.compile(expression))
            except (re.error, OverflowError, RecursionError) as error:
                raise UsageFault(f"'{expression}' is not a regular expression: {error}") from error

    def match(self, name: str) -> bool:
        return any(one.fullmatch(name) for one in self._compiled)

    def joined(self) -> re.Pattern[str]:
        """As a group subscribes to them. Raises UsageFault where one that stands for all would mean something else."""
        import re

        from ottla.cli.faults import UsageFault

        if len(self._compiled) == 1:
            return self._compiled[0]
        if any(one.groups or one.flags != re.UNICODE for one in self._compiled):
            raise UsageFault(
                "a group subscribes to one regular expression: write these, with their flags or groups, as one"
            )
        return re.compile("|".join(f"(?:{expression})" for expression in self.expressions))

    def __str__(self) -> str:
        return " or ".join(self.expressions)


async def chosen_topics(client: Admin, options: argparse.Namespace) -> list[str]:
    """The topics that are named, or with --regex those whose names match; raises where none does."""
    from ottla.cli.faults import NOT_FOUND, CommandFault

    named = topics_of(options)
    if not options.regex or not named:
        return named
    patterns = TopicPatterns(named)
    found = [name for name in await client.list_topics() if patterns.match(name)]
    if not found and not getattr(options, "if_exists", False):
        raise CommandFault(f"no topic matches {patterns}; `ottla topic list` names the topics", NOT_FOUND)
    return found
