"""Ports on which nobody listens, and which stay free while who listens on them is away for a moment.

The kernel gives a range of ports to outgoing connections, and to every program that asks for any port. A broker that
was killed may find a port of that range taken when it is started again; one below it is taken by nobody who did not
choose it.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Collection
from typing import Final

from ottla.ports.host_names import mistyped_as_unknown

#: The lowest that are looked at: below are those of well-known services.
_FIRST: Final = 10_000
#: The kernel's range begins here where nobody says otherwise.
_KERNELS_FIRST: Final = 32_768
_KERNELS_RANGE: Final = "/proc/sys/net/ipv4/ip_local_port_range"
#: Where so many are in use, any will do.
_TRIES: Final = 100
#: Programs seed the other one, and processes that do so alike would choose the same ports at the same time.
_chance: Final = random.SystemRandom()


def free_port(host: str, taken: Collection[int] = ()) -> int:
    """Raises OSError where nobody can listen on the host."""
    any_port = listened_on(host, 0)
    below = range(_FIRST, kernels_first())
    for port in _chance.sample(below, min(_TRIES, len(below))):
        if port not in taken and _is_unused(host, port):
            return port
    while any_port in taken:
        any_port = listened_on(host, 0)
    return any_port


def kernels_first() -> int:
    """The lowest port that the kernel gives away."""
    try:
        with open(_KERNELS_RANGE, encoding="ascii") as file:
            return int(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        return _KERNELS_FIRST


def _is_unused(host: str, port: int) -> bool:
    """Not even by connections that have ended a moment ago."""
    try:
        _bind(host, port, reuse=False)
    except OSError:
        return False
    return True


def bound(host: str, port: int) -> int:
    """As `listened_on`, but 0 where nobody can listen there."""
    try:
        return listened_on(host, port)
    except OSError:
        return 0


def listened_on(host: str, port: int) -> int:
    """A port that was free just now: this one, or any for 0. Raises OSError."""
    return _bind(host, port, reuse=True)


def _bind(host: str, port: int, *, reuse: bool) -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        if reuse:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with mistyped_as_unknown():
            probe.bind((host.strip("[]"), port))
        found: int = probe.getsockname()[1]
        return found
