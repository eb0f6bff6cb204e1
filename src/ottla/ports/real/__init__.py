"""The real world: this machine's clock, files, sockets, randomness, threads and processes.

What only Linux has (epoll, sendfile, pwritev, fallocate) has a portable twin, which `OTTLA_PORTABLE=1` or
`portable=True` switches on here, so that what runs on a Mac is tested on every machine.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from ottla.ports import Ports

if TYPE_CHECKING:
    import asyncio


def real_ports(*, portable: bool | None = None) -> Ports:
    """This machine's ports. `portable=None` asks the environment, then the system."""
    # Imported here: a verb that only reads files does not pay for sockets.
    from ottla.ports.real.clock import RealClock
    from ottla.ports.real.disk import RealDisk
    from ottla.ports.real.entropy import RealEntropy
    from ottla.ports.real.network import RealNetwork
    from ottla.ports.real.workers import RealWorkers

    if portable is None:
        portable = wants_portable()
    return Ports(
        clock=RealClock(),
        disk=RealDisk(portable=portable),
        network=RealNetwork(portable=portable),
        entropy=RealEntropy(),
        workers=RealWorkers(),
    )


def new_event_loop() -> asyncio.AbstractEventLoop:
    """A loop for a process of our own: one that serves a network's rounds itself, where the system can."""
    if wants_portable():
        import asyncio

        return asyncio.new_event_loop()
    from ottla.ports.real.round_loop import RoundLoop

    return RoundLoop()


def wants_portable() -> bool:
    """Whether to stay with what every POSIX system has."""
    return os.environ.get("OTTLA_PORTABLE", "") not in {"", "0"} or sys.platform != "linux"
