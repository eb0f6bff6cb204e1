"""From `--bootstrap-server` and `--command-config` to a client, and from its errors to one line and an exit code."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.cli.faults import EXISTS, FAILED, NOT_FOUND, UNREACHABLE, USAGE, CommandFault
from ottla.cli.options import bootstrap_of
from ottla.client.errors import ConnectionLost, KafkaError, NoBrokerReached, RequestTimedOut, SettingsError, SomeFailed
from ottla.model import ErrorCode

if TYPE_CHECKING:
    from ottla.client.admin.admin import Admin
    from ottla.client.wire.cluster import Cluster

T = TypeVar("T")

#: A person at a terminal does not wait a minute to learn that nothing listens there.
REACH_MS_MAX = 3_000

_EXIT_CODES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_ID: NOT_FOUND,
    ErrorCode.BROKER_NOT_AVAILABLE: NOT_FOUND,
    ErrorCode.TOPIC_ALREADY_EXISTS: EXISTS,
    ErrorCode.GROUP_ID_NOT_FOUND: NOT_FOUND,
}
_ADVICE = {
    ErrorCode.INVALID_TOPIC_EXCEPTION: "names are ASCII letters, digits, '.', '_' and '-', 249 of them at most",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "`ottla topic list` names the topics",
    ErrorCode.BROKER_NOT_AVAILABLE: "`ottla cluster describe` lists the brokers",
    ErrorCode.TOPIC_ALREADY_EXISTS: "--if-not-exists makes this no error",
    ErrorCode.GROUP_ID_NOT_FOUND: "`ottla group list` names the groups",
    ErrorCode.NON_EMPTY_GROUP: "stop its members first; `ottla group describe GROUP --members` names them",
    ErrorCode.UNKNOWN_MEMBER_ID: "stop them first; `ottla group describe GROUP --members` names them",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "stop them first",
}
#: Instead of what a broker says.
_PLAIN = {
    ErrorCode.INVALID_TOPIC_EXCEPTION: "no topic can have this name",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
    ErrorCode.NON_EMPTY_GROUP: "the group has members",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has members",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "members subscribe to the topic",
}
#: Of several faults at once.
_FAULTS_NAMED_MAX = 5


def settings_of(options: argparse.Namespace, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The client's settings: the file's, over them the command line's."""
    settings: dict[str, Any] = {"client.id": "ottla-cli"}
    if options.command_config is not None:
        from ottla.cli.property_file import read_properties

        settings.update(read_properties(options.command_config))
    if options.bootstrap_server is not None or "bootstrap.servers" not in settings:
        settings["bootstrap.servers"] = bootstrap_of(options)
    return {**settings, **(more or {})}


@asynccontextmanager
async def admin(options: argparse.Namespace) -> AsyncIterator[Admin]:
    """An admin client; what goes wrong inside of the block ends the verb."""
    from ottla.client.admin.admin import Admin

    with explained(options):
        async with Admin(settings_of(options)) as client:
            await reach(client.cluster)
            yield client


async def reach(cluster: Cluster) -> None:
    """Finds out early that nobody is there: clients themselves are patient, and rightly so."""
    cluster.connections.on_unreached = lambda _: None  # verbs say it themselves
    await cluster.retrying(cluster.any_connection, timeout_ms=REACH_MS_MAX)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a verb's work on a loop of its own. Ctrl-C ends it, with its clients closed."""
    return asyncio.run(work)


@contextmanager
def explained(options: argparse.Namespace) -> Iterator[None]:
    """Turns a client's error into what a person can do about it."""
    try:
        yield
    except NoBrokerReached as error:
        where = bootstrap_of(options)
        advice = f"start one with `ottla up`, or name another with --bootstrap-server (asked: {where})"
        raise CommandFault(f"{error}; {advice}", UNREACHABLE) from error
    except (ConnectionLost, RequestTimedOut) as error:
        raise CommandFault(f"{error}; the broker may be stopping: try again", UNREACHABLE) from error
    except SettingsError as error:
        raise CommandFault(str(error), USAGE) from error
    except KafkaError as error:
        raise CommandFault(advised(error), exit_code(error)) from error


def advised(error: KafkaError) -> str:
    """What is wrong, and where there is an answer to it, what to do."""
    text = _sentence(error)
    if isinstance(error, SomeFailed):
        listed = [_sentence(each) for each in list(error.errors.values())[:_FAULTS_NAMED_MAX]]
        text = f"{len(error.errors)} of {len(error.errors) + len(error.results)} failed: {'; '.join(listed)}"
    advice = _ADVICE.get(error.code)
    return f"{text}; {advice}" if advice else text


def _sentence(error: KafkaError) -> str:
    text = str(error).rstrip(".")
    plain = _PLAIN.get(error.code)
    if plain is not None:
        # Brokers say this in several ways, and none of them for people.
        subject, colon, _ = text.partition(": ")
        text = f"{subject}: {plain}" if colon else text
    return text


def exit_code(error: KafkaError) -> int:
    return _EXIT_CODES.get(error.code, FAILED)
