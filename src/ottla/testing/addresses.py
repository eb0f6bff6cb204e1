"""Where a broker of a test listens, and what it says to clients: one address for the test, and one for containers.

A client asks one address and is answered another, which it connects to from then on. What a container can reach
(`host.docker.internal`) the test's own process often cannot, and the other way round: so each has a listener.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ottla.client.arguments import a_kind_of, checked_items, checked_text
from ottla.client.errors import BadArgument
from ottla.local_cluster.free_ports import free_port

HOST: Final = "127.0.0.1"
#: A container's packets come in by an interface whose address nobody knows beforehand.
ALL_INTERFACES: Final = "0.0.0.0"  # noqa: S104 - only where a container's host is named

_OWN: Final = "PLAINTEXT"
_CONTAINERS: Final = "CONTAINERS"
#: Hosts of listeners that take what comes to `HOST`: it, and those of all addresses.
_TAKES_HOST: Final = frozenset({HOST, "localhost", "", ALL_INTERFACES, "[::]"})
#: A name or an IPv4 address.
_HOST_NAME: Final = re.compile(r"(?!0\.0\.0\.0$)[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


class Addresses:
    """Before the first start it says what to ask for; from then on the same ports again."""

    def __init__(
        self,
        properties: Mapping[str, str],
        *,
        port: int = 0,
        container_host: str | None = None,
        container_bind: str = ALL_INTERFACES,
        container_port: int = 0,
    ) -> None:
        self._given = _checked(properties)
        self._container_host = container_host
        self._own = [f"{_OWN}://{HOST}:{port}"]
        if container_host is None:
            if container_port:
                raise ValueError("container_port has a meaning only with container_host")
        else:
            if not _HOST_NAME.fullmatch(container_host):
                raise ValueError(f"container_host must be a host's name or address, not {container_host!r}")
            for name in ("listeners", "advertised.listeners", "listener.security.protocol.map"):
                if name in self._given:
                    raise ValueError(f"container_host makes the listeners: leave {name} out of the properties")
            self._own.append(f"{_CONTAINERS}://{container_bind}:{container_port}")
        #: 0 until the first start where a free port is taken; the same from then on.
        self.port = port
        #: HOST:PORT of each listener, in their order.
        self.listening_on: list[str] = []
        self._ports: dict[str, int] = {}

    def properties(self, data: str) -> dict[str, str]:
        """What the broker is started with."""
        found = {"listeners": ",".join(self._own), "log.dirs": os.path.join(data, "data"), **self._given}
        if self._container_host is not None:
            found["advertised.listeners"] = f"{_OWN}://{HOST}:0,{_CONTAINERS}://{self._container_host}:0"
            found["listener.security.protocol.map"] = f"{_OWN}:PLAINTEXT,{_CONTAINERS}:PLAINTEXT"
            found["inter.broker.listener.name"] = _OWN
        found["listeners"] = ",".join(self._with_port(item) for item in found["listeners"].split(","))
        return found

    def _with_port(self, listener: str) -> str:
        """A free port is taken once: a restart takes the same again, and nobody is given it meanwhile."""
        without = listener.rstrip().removesuffix(":0")
        if without == listener.rstrip():
            return listener
        name, _, host = without.strip().partition("://")
        port = self._ports.get(name.upper(), 0)
        if not port and host in (HOST, ALL_INTERFACES):
            port = free_port(host)
        return f"{without}:{port}"

    def learn(self, names: Sequence[str], listening_on: Sequence[str]) -> None:
        """What the broker has got, which runs now."""
        ports = [int(address.rpartition(":")[2]) for address in listening_on]
        self._ports = dict(zip(names, ports, strict=True))
        self.port = ports[0]
        self.listening_on = list(listening_on)

    @property
    def are_chosen_anew(self) -> bool:
        """Whether another start would ask for other ports: those of a broker that has run stay the same."""
        given = self._given.get("listeners", ",".join(self._own))
        return not self._ports and any(listener.rstrip().endswith(":0") for listener in given.split(","))

    @property
    def bootstrap(self) -> str:
        assert self.listening_on, "the broker was not started yet"
        listener = self._given.get("listeners", self._own[0]).split(",")[0]
        host = listener.strip().partition("://")[2].rpartition(":")[0]
        return f"{HOST if host in _TAKES_HOST else host}:{self.port}"

    @property
    def container_bootstrap(self) -> str:
        if self._container_host is None:
            raise ValueError("containers do not reach this broker: give container_host, what it is called for them")
        assert self.listening_on, "the broker was not started yet"
        return f"{self._container_host}:{self._ports[_CONTAINERS]}"


def _checked(properties: Any) -> dict[str, str]:
    for name, value in checked_items(properties, "properties must be a mapping of names to values"):
        checked_text(name, "properties: a name")
        if not isinstance(value, str):
            said = f"must be a str, as in Kafka's files, not {a_kind_of(value)}"
            raise BadArgument(f"properties: the value of {name} {said}")
    return dict(properties)
