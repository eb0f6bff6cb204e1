"""From `--bootstrap-server` and `--command-config` to a client, and from its errors to one line and an exit code."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.cli.addresses import BOOTSTRAP_DEFAULT, with_ports
from ottla.cli.faults import EXISTS, FAILED, NOT_FOUND, UNREACHABLE, USAGE, CommandFault, StopSignal, UsageFault
from ottla.client.errors import (
    ConnectFailed,
    ConnectionLost,
    KafkaError,
    NoBrokerReached,
    RequestTimedOut,
    SettingsError,
    SomeFailed,
)
from ottla.client.errors.own import sentence
from ottla.model import ErrorCode

if TYPE_CHECKING:
    from ottla.cli.profiles import Profile
    from ottla.client.admin.admin import Admin
    from ottla.client.wire.cluster import Cluster

T = TypeVar("T")

#: A person at a terminal does not wait a minute to learn that nothing listens there.
REACH_MS_MAX = 3_000
#: One of several that takes connections and says nothing (a paused process) leaves time to ask the others.
SETUP_MS_OF_SEVERAL = 1_000

_EXIT_CODES = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: NOT_FOUND,
    ErrorCode.UNKNOWN_TOPIC_ID: NOT_FOUND,
    ErrorCode.BROKER_NOT_AVAILABLE: NOT_FOUND,
    ErrorCode.TOPIC_ALREADY_EXISTS: EXISTS,
    ErrorCode.GROUP_ID_NOT_FOUND: NOT_FOUND,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: NOT_FOUND,
    ErrorCode.LEADER_NOT_AVAILABLE: UNREACHABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: UNREACHABLE,
    ErrorCode.REQUEST_TIMED_OUT: UNREACHABLE,
}
_ADVICE = {
    ErrorCode.LEADER_NOT_AVAILABLE: "`ottla cluster health` says why",
    ErrorCode.NOT_LEADER_OR_FOLLOWER: "`ottla cluster health` says why",
    ErrorCode.INVALID_TOPIC_EXCEPTION: "names are ASCII letters, digits, '.', '_' and '-', 249 characters at most",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "`ottla topic list` names the topics",
    ErrorCode.BROKER_NOT_AVAILABLE: "`ottla cluster describe` lists the brokers",
    ErrorCode.TOPIC_ALREADY_EXISTS: "--if-not-exists makes this no error",
    ErrorCode.GROUP_ID_NOT_FOUND: "`ottla group list` names the groups",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "`ottla txn list` names those that there are",
    ErrorCode.NON_EMPTY_GROUP: "stop its members first; `ottla group describe GROUP --members` names them",
    ErrorCode.UNKNOWN_MEMBER_ID: "stop them first; `ottla group describe GROUP --members` names them",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "stop them first",
}
#: Instead of what a broker says.
_PLAIN = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "there is no such topic or partition",
    ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "there is no such transactional id",
    ErrorCode.NON_EMPTY_GROUP: "the group has members",
    ErrorCode.UNKNOWN_MEMBER_ID: "the group has members",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "members subscribe to the topic",
}
#: Where a broker gives its code and no words.
_WORDLESS = {ErrorCode.INVALID_TOPIC_EXCEPTION: "no topic can have this name"}
_NOBODY_THERE = "start one with `ottla up`, or name another with --bootstrap-server"
#: What a broker says of names that are well by themselves.
_COLLIDES = "choose a name that differs in more than '.' and '_': metrics write both as '_'"
#: Of several faults at once.
_FAULTS_NAMED_MAX = 5


def settings_of(options: argparse.Namespace, more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The client's settings: the profile's, over them the file's, over these the command line's."""
    settings: dict[str, Any] = {"client.id": "ottla-cli"}
    where, profile = _where(options)
    if profile is not None:
        settings.update(profile.settings)
    if options.command_config is not None:
        from ottla.cli.property_file import read_properties

        settings.update(read_properties(options.command_config))
    named = settings.get("bootstrap.servers")
    if options.bootstrap_server is not None or named is None:
        named = where
    if "," in named:
        settings.setdefault("socket.connection.setup.timeout.ms", SETUP_MS_OF_SEVERAL)
    return {**settings, "bootstrap.servers": with_ports(named), **(more or {})}


def _where(options: argparse.Namespace) -> tuple[str, Profile | None]:
    """The addresses by all but a property file, and the profile if one is meant.

    What is named on the command line comes first, then what stands in the environment, then the current profile.
    """
    from ottla.cli.profiles import chosen_profile

    if options.bootstrap_server is not None and options.profile is not None:
        raise UsageFault("give --bootstrap-server or --profile")
    by_environment = os.environ.get("OTTLA_BOOTSTRAP_SERVER")
    if options.bootstrap_server is not None:
        return options.bootstrap_server, None
    if by_environment and options.profile is None:
        return by_environment, None
    profile = chosen_profile(options.profile)
    if profile is None:
        return BOOTSTRAP_DEFAULT, None
    return ",".join(profile.brokers) or BOOTSTRAP_DEFAULT, profile


@asynccontextmanager
async def admin(options: argparse.Namespace) -> AsyncIterator[Admin]:
    """An admin client; what goes wrong inside of the block ends the verb."""
    from ottla.client.admin.admin import Admin

    with explained():
        async with Admin(settings_of(options)) as client:
            await reach(client.cluster)
            yield client


async def reach(cluster: Cluster) -> None:
    """Finds out early that nobody is there: clients themselves are patient, and rightly so."""
    cluster.connections.on_unreached = lambda _: None  # verbs say it themselves

    async def attempt() -> None:
        try:
            await cluster.any_connection()
        except NoBrokerReached as error:
            if error.faults and all(isinstance(one, ConnectFailed) and one.refused for one in error.faults):
                raise _NobodyListens(str(error)) from error
            raise

    try:
        await cluster.retrying(attempt, timeout_ms=REACH_MS_MAX)
    except RequestTimedOut as error:
        asked = ", ".join(f"{host}:{port}" for host, port in cluster.settings.bootstrap_servers)
        raise CommandFault(
            f"{asked} did not answer within {REACH_MS_MAX} ms: a broker there hangs or is stopping; look at its log, "
            "or name another with --bootstrap-server",
            UNREACHABLE,
        ) from error


class _NobodyListens(NoBrokerReached):
    """All addresses refuse: waiting a little would not help, and a person wants to hear it at once."""

    @property
    def retriable(self) -> bool:
        return False


def run(work: Coroutine[Any, Any, T]) -> T:
    """Runs a verb's work on a loop of its own. Ctrl-C, SIGTERM and SIGHUP end it, with its clients closed."""
    return asyncio.run(_stoppable(work))


async def _stoppable(work: Coroutine[Any, Any, T]) -> T:
    import signal

    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    came: list[int] = []

    def stop(number: int) -> None:
        came.append(number)
        task.cancel()

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` sets it
            loop.add_signal_handler(number, stop, number)
    try:
        return await work
    except asyncio.CancelledError:
        if came:
            raise StopSignal(came[0]) from None
        raise


@contextmanager
def explained() -> Iterator[None]:
    """Turns a client's error into what a person can do about it."""
    try:
        yield
    except NoBrokerReached as error:
        raise CommandFault(f"{error}; {_NOBODY_THERE}", UNREACHABLE) from error
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
    advice = _COLLIDES if "collide" in text else _ADVICE.get(error.code)
    return f"{text}; {advice}" if advice else text


def _sentence(error: KafkaError) -> str:
    text = str(error).rstrip(".")
    plain = _PLAIN.get(error.code)
    if plain is None and text.endswith(sentence(error.code)):
        plain = _WORDLESS.get(error.code)
    if plain is not None:
        # Brokers say this in several ways, and none of them for people.
        subject, colon, _ = text.partition(": ")
        text = f"{subject}: {plain}" if colon else text
    return text


def exit_code(error: KafkaError) -> int:
    return _EXIT_CODES.get(error.code, FAILED)
