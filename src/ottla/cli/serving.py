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
        raise _refused(str(error), json=wanted.strip().lower() == "true") from error


def run_broker(config: Config, port_hint: str) -> int:
    """Serves until SIGINT or SIGTERM. `port_hint` says how the caller's user chooses another port."""
    try:
        run(config, _started)
    except BrokerLost as fault:
        if not config.observe.log_json:  # there it has been an event already
            raise CommandFault(str(fault)) from fault
        return FAILED
    except (StartFault, ConfigError, DirectoryError, CoordinationError, OSError) as fault:
        raise _refused(_reason(fault, port_hint), json=config.observe.log_json) from fault
    return OK


def _reason(fault: Exception, port_hint: str) -> str:
    if isinstance(fault, PortTaken):
        return f"{fault}; {port_hint}"
    if isinstance(fault, DirectoryInUse):
        return f"{fault}: stop it, or give this broker a directory of its own"
    if isinstance(fault, OSError):
        where = fault.filename or "its files"
        return f"the broker cannot use {where}: {fault.strerror or fault}; give it a folder that it can write to"
    return str(fault)


def _refused(reason: str, *, json: bool) -> CommandFault:
    """One line for a person; or for whatever reads a log of JSON lines, one event in it."""
    if not json:
        return CommandFault(reason)
    logs.configure(json=True)
    logs.logger("server").error("the broker could not start", reason=reason)
    return SaidFault(reason)


def _started(broker: Broker) -> None:
    # Scripts wait for this line, so it stands alone on standard output: logs go to standard error.
    try:
        print(f"Ottla is listening on {','.join(broker.listening_on)}", flush=True)
    except OSError as error:  # clients do not read it
        streams.forget_output()
        logs.logger("server").warning("the address could not be written to standard output", reason=error.strerror)
