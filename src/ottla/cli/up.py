"""`ottla up`: a broker on this host, without a configuration file."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys

from ottla.app import serve
from ottla.config import Config, ConfigError
from ottla.config.cluster_defaults import up_defaults
from ottla.coordination.errors import CoordinationError
from ottla.server.broker import Broker, StartFault, listening_on
from ottla.storage.directory_errors import DirectoryError


def run(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="ottla up", description=__doc__)
    parser.add_argument("--port", type=int, default=9092)
    parser.add_argument("--data", default=None)
    parser.add_argument("--config", default=None)
    options = parser.parse_args(arguments)
    properties = {
        "listeners": f"PLAINTEXT://127.0.0.1:{options.port}",
        **up_defaults(1),
    }
    if options.data:
        properties["log.dirs"] = os.path.join(options.data, "logs")
    try:
        config = Config.parse(properties, env=os.environ)
        asyncio.run(serve(config, _started))
    except (ConfigError, StartFault, DirectoryError, CoordinationError, OSError) as fault:
        print(f"ottla: {fault}", file=sys.stderr)
        return 1
    return 0


def _started(broker: Broker) -> None:
    print(f"Ottla is listening on {listening_on(broker.endpoints)}", flush=True)
