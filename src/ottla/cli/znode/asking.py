"""A session with a tree, for as long as one question takes."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ottla.cli.faults import UNREACHABLE, CommandFault, UsageFault
from ottla.config import Config, ConfigError
from ottla.coordination.errors import CoordinationError
from ottla.coordination.interface import Coordination
from ottla.coordination.providers import Opening, open_tree

DEFAULT = "127.0.0.1:2181"
#: A person waits.
_CONNECT_MS_MAX = "5000"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", nargs="?", default="/", help="the znode (default /)")
    parser.add_argument(
        "--zookeeper",
        metavar="HOST:PORT[/PATH]",
        default=DEFAULT,
        help=f"where the tree is, as zookeeper.connect says it (default {DEFAULT})",
    )


@asynccontextmanager
async def tree(options: argparse.Namespace) -> AsyncIterator[Coordination]:
    from ottla import logs
    from ottla.ports.real import real_ports

    logs.configure(level="OFF")
    properties = {"zookeeper.connect": options.zookeeper, "zookeeper.connection.timeout.ms": _CONNECT_MS_MAX}
    try:
        config = Config.parse(properties).coordination
    except ConfigError as error:
        raise UsageFault(f"--zookeeper {options.zookeeper}: {error}") from error
    ports = real_ports()
    try:
        session = await open_tree(Opening(config, ports, ""))
        try:
            yield session
        finally:
            await session.close()
    except CoordinationError as error:
        raise CommandFault(f"{options.zookeeper}: {error}", UNREACHABLE) from error
    finally:
        ports.network.close()
        ports.workers.close()
