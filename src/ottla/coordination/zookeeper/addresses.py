"""`zookeeper.connect`: the servers of an ensemble, and the node in whose place the root stands.

`host:port,host:port/path`, as ZooKeeper's own clients read it: a port that is not given is 2181, an IPv6 address stands
in brackets, and the path behind the last address (the chroot) is put before every path of the session.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.coordination.errors import CoordinationError, InvalidPath
from ottla.coordination.paths import check_path

DEFAULT_PORT: Final = 2181
_PORTS: Final = range(1, 65_536)


class BadConnectString(CoordinationError):
    """`zookeeper.connect` cannot be read."""


class ServerAddress(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Chroot(NamedTuple):
    """Of paths: what stands before them on the server. Empty: nothing."""

    prefix: str = ""

    def on_server(self, path: str) -> str:
        if not self.prefix:
            return path
        return self.prefix if path == "/" else self.prefix + path

    def of_client(self, path: str) -> str:
        return path[len(self.prefix) :] or "/"


class ConnectString(NamedTuple):
    #: At least one.
    servers: tuple[ServerAddress, ...]
    chroot: Chroot


def parse_connect_string(text: str) -> ConnectString:
    """Raises BadConnectString."""
    slash = text.find("/")
    hosts, prefix = (text, "") if slash < 0 else (text[:slash], text[slash:].strip())
    if prefix not in {"", "/"}:
        try:
            check_path(prefix)
        except InvalidPath as error:
            raise BadConnectString(f"zookeeper.connect {text!r}: {error}") from None
    servers = tuple(_address(text, host.strip()) for host in hosts.split(",") if host.strip())
    if not servers:
        raise BadConnectString(f"zookeeper.connect {text!r} names no server")
    return ConnectString(servers, Chroot("" if prefix == "/" else prefix))


def _address(text: str, host: str) -> ServerAddress:
    name, port = host, ""
    if host.startswith("["):
        name, closed, rest = host[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise BadConnectString(f"zookeeper.connect {text!r}: {host!r} is no address")
        port = rest[1:]
    elif host.count(":") == 1:
        name, _, port = host.partition(":")
    if not name or (host.endswith(":") and not port):
        raise BadConnectString(f"zookeeper.connect {text!r}: {host!r} is no address")
    if not port:
        return ServerAddress(name, DEFAULT_PORT)
    if not (port.isascii() and port.isdigit()) or int(port) not in _PORTS:
        raise BadConnectString(f"zookeeper.connect {text!r}: {port!r} is no port")
    return ServerAddress(name, int(port))
