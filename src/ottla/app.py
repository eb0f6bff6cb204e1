"""The composition root: a broker from a configuration and a world. The real world is put together here only."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import Callable

from ottla.config import Config
from ottla.ports import Ports
from ottla.ports.real import real_ports
from ottla.server.broker import Broker


def assemble(config: Config, ports: Ports) -> Broker:
    return Broker(config, ports, host_name=socket.gethostname())


async def serve(config: Config, started: Callable[[Broker], None]) -> None:
    """Runs a broker on this machine until it is told to stop by SIGINT or SIGTERM."""
    ports = real_ports()
    broker = assemble(config, ports)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        await broker.start()
        started(broker)
        await stop.wait()
    finally:
        await broker.stop()
        ports.network.close()
        ports.workers.close()
