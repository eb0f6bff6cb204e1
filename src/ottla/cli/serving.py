"""Starts a broker in this process for `up` and `broker`, and says in one line why it could not start."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ottla.app import BrokerLost, run
from ottla.cli.faults import OK, CommandFault
from ottla.config import Config, ConfigError
from ottla.config.environment import property_name
from ottla.coordination.errors import CoordinationError, DirectoryInUse
from ottla.server.broker import Broker, StartFault, listening_on
from ottla.storage.directory_errors import DirectoryError


def configured(
    properties: Mapping[str, str], explicit: Mapping[str, str], defaults: Mapping[str, str] | None = None
) -> Config:
    """The file's properties, over them the environment's, over these what the command line says itself."""
    environment = {name: value for name, value in os.environ.items() if property_name(name) not in explicit}
    try:
        return Config.parse({**properties, **explicit}, env=environment, defaults=defaults)
    except ConfigError as error:
        raise CommandFault(str(error)) from error


def run_broker(config: Config, port_hint: str) -> int:
    """Serves until SIGINT or SIGTERM. `port_hint` says how the caller's user chooses another port."""
    try:
        run(config, _started)
    except StartFault as fault:
        raise CommandFault(f"{fault}; {port_hint}") from fault
    except DirectoryInUse as fault:
        raise CommandFault(f"{fault}: stop it, or give this broker a directory of its own") from fault
    except (ConfigError, DirectoryError, CoordinationError, BrokerLost) as fault:
        raise CommandFault(str(fault)) from fault
    except OSError as fault:
        where = fault.filename or "its files"
        raise CommandFault(
            f"the broker cannot use {where}: {fault.strerror or fault}; give it a folder that it can write to"
        ) from fault
    return OK


def _started(broker: Broker) -> None:
    # Scripts wait for this line, so it stands alone on standard output: logs go to standard error.
    print(f"Ottla is listening on {listening_on(broker.endpoints)}", flush=True)
