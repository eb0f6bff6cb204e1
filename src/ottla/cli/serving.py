"""Starts a broker in this process for `up` and `broker`, and says in one line why it could not start."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from ottla import logs
from ottla.app import BrokerLost, run
from ottla.broker.broker import Broker, PortTaken, StartFault
from ottla.cli import streams
from ottla.cli.faults import FAILED, OK, CommandFault, SaidFault
from ottla.config import Config, ConfigError
from ottla.config.environment import properties_from, property_name
from ottla.coordination.errors import CoordinationError, DirectoryInUse
from ottla.storage.directories.errors import DirectoryError

#: Addresses that stand for all of this host's, and where to find it then.
_ANY: Final = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]", "::": "[::1]"}  # noqa: S104 - nothing is bound here
_JSON: Final = "ottla.log.json"


def configured(
    properties: Mapping[str, str], explicit: Mapping[str, str], defaults: Mapping[str, str] | None = None
) -> Config:
    """The file's properties, over them the environment's, over these what the command line says itself."""
    environment = {name: value for name, value in os.environ.items() if property_name(name) not in explicit}
    try:
        return Config.parse({**properties, **explicit}, env=environment, defaults=defaults)
    except ConfigError as error:
        wanted = {**properties, **properties_from(environment), **explicit}.get(_JSON, "")
        raise refused(str(error), json=wanted.strip().lower() == "true") from error


def run_broker(
    config: Config, port_hint: str, topics: Mapping[str, int | None] | None = None, *, end_with_input: bool = False
) -> int:
    """Serves until a signal comes. `port_hint` says how the caller's user chooses another port.

    `topics`, with their numbers of partitions, are there when the address is printed.
    """

    async def prepare(broker: Broker) -> None:
        if topics:
            await _make_topics(broker, topics)

    try:
        run(config, _started, prepare, end_with_input=end_with_input)
    except BrokerLost as fault:
        if not config.observe.log_json:  # there it has been an event already
            raise CommandFault(str(fault)) from fault
        return FAILED
    except (StartFault, ConfigError, DirectoryError, CoordinationError, OSError) as fault:
        raise refused(_reason(fault, port_hint), json=config.observe.log_json) from fault
    return OK


async def _make_topics(broker: Broker, topics: Mapping[str, int | None]) -> None:
    """As a client would that asks this broker and no other, whatever address it advertises."""
    host, _, port = broker.listening_on[0].rpartition(":")
    if not broker.config.server.listeners[0].host or host in _ANY:
        host = _ANY.get(host, "127.0.0.1")
    await make_topics(f"{host}:{port}", topics)


async def make_topics(bootstrap: str, topics: Mapping[str, int | None]) -> None:
    """Has these topics there, with their numbers of partitions. Raises StartFault."""
    from ottla.cli.connecting import advised
    from ottla.client.admin.admin import Admin
    from ottla.client.errors import KafkaError, error_of
    from ottla.protocol.generated.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

    try:
        async with Admin(bootstrap_servers=bootstrap, client_id="ottla-up") as admin:
            there = await admin.describe_topics()
            new = [
                CreatableTopic(name=name, num_partitions=count or -1, replication_factor=-1)
                for name, count in topics.items()
                if name not in there
            ]
            request = CreateTopicsRequest(topics=new, timeout_ms=admin.settings.request_timeout_ms)
            connection = await admin.cluster.any_connection()
            answer = await connection.ask(request, CreateTopicsResponse, timeout_ms=request.timeout_ms)
            for one in answer.topics:
                if one.error_code:
                    raise error_of(one.error_code, one.error_message, about=one.name)
    except KafkaError as error:
        raise StartFault(f"--topic: {advised(error)}") from error
    for name, count in topics.items():
        has = len(there[name].partitions) if name in there else count
        if count is not None and has != count:
            logs.logger("server").warning(
                "a topic of --topic was there with another number of partitions", topic=name, wanted=count, has=has
            )


def _reason(fault: Exception, port_hint: str) -> str:
    if isinstance(fault, PortTaken):
        return f"{fault}; {port_hint}"
    if isinstance(fault, DirectoryInUse):
        return f"{fault}: stop it, or give this broker a directory of its own"
    if isinstance(fault, OSError):
        where = fault.filename or "its files"
        return f"the broker cannot use {where}: {fault.strerror or fault}; give it a folder that it can write to"
    return str(fault)


def refused(reason: str, *, json: bool) -> CommandFault:
    """One line for a person; or for whatever reads a log of JSON lines, one event in it."""
    if not json:
        return CommandFault(reason)
    logs.configure(json=True)
    logs.logger("server").error("the broker could not start", reason=reason)
    return SaidFault(reason)


def _started(broker: Broker) -> None:
    streams.print_address(f"Ottla is listening on {','.join(broker.listening_on)}", "server")
