"""The real world: this machine's clock, files, sockets, randomness, threads and processes.

What only Linux has (epoll, sendfile, pwritev, fallocate) has a portable twin, which `OTTLA_PORTABLE=1` or
`portable=True` switches on here, so that what runs on a Mac is tested on every machine.
"""

from __future__ import annotations

import os
import sys

from ottla.ports import Ports


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


def wants_portable() -> bool:
    """Whether to stay with what every POSIX system has."""
    return os.environ.get("OTTLA_PORTABLE", "") not in {"", "0"} or sys.platform != "linux"
