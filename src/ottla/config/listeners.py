"""Listeners: what the broker binds, what it advertises to clients, and which security protocol each one speaks."""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.config.errors import ConfigError

PROTOCOLS: Final = frozenset({"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"})
#: What this version serves. A broker must never take a listener for encrypted and then serve it in the clear.
SERVED_PROTOCOLS: Final = frozenset({"PLAINTEXT"})
#: Bounds the work that one line of configuration can ask for.
LISTENERS_MAX: Final = 64


class Listener(NamedTuple):
    """One `NAME://host:port`."""

    name: str
    #: Empty where none was given: bind all interfaces; advertise this host's name.
    host: str
    #: 0 asks the system for a free port.
    port: int
    protocol: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_protocol_map(text: str) -> dict[str, str]:
    """`NAME:PROTOCOL,...` by upper-case name."""
    prop = "listener.security.protocol.map"
    protocols: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, separator, protocol = item.rpartition(":")
        name, protocol = name.strip().upper(), protocol.strip().upper()
        if not separator or not name:
            raise ConfigError(prop, text, f"'{item}' is not NAME:PROTOCOL")
        if protocol not in PROTOCOLS:
            raise ConfigError(prop, text, f"'{protocol}' is not one of {', '.join(sorted(PROTOCOLS))}")
        if name in protocols:
            raise ConfigError(prop, text, f"listener {name} is named twice")
        protocols[name] = protocol
    return protocols


def parse_listeners(prop: str, items: list[str], protocols: dict[str, str]) -> tuple[Listener, ...]:
    """The listeners of `items`, whose names differ and whose protocols are known."""
    text = ",".join(items)
    if len(items) > LISTENERS_MAX:
        raise ConfigError(prop, text, f"more than {LISTENERS_MAX} listeners")
    listeners = tuple(_parse_listener(prop, text, item, protocols) for item in items)
    names = [listener.name for listener in listeners]
    if len(set(names)) < len(names):
        raise ConfigError(prop, text, "each listener must have a different name")
    return listeners


def _parse_listener(prop: str, text: str, item: str, protocols: dict[str, str]) -> Listener:
    name, separator, address = item.partition("://")
    host, colon, port = address.rpartition(":")
    if not separator or not name or not colon:
        raise ConfigError(prop, text, f"'{item}' is not NAME://host:port")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ConfigError(prop, text, f"an IPv6 address stands in brackets, as in NAME://[::1]:9092, not '{item}'")
    if any(character in host for character in "[]/@ \t"):
        raise ConfigError(prop, text, f"'{host}' is not a host name or an address")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535):
        raise ConfigError(prop, text, f"'{port}' is not a port number from 0 to 65535")
    name = name.strip().upper()
    if name not in protocols:
        raise ConfigError(prop, text, f"no security protocol is defined for listener {name}")
    return Listener(name, host, int(port), protocols[name])


def check_bindable(listeners: tuple[Listener, ...]) -> None:
    """Two listeners may share a port only where one binds an IPv4 and the other an IPv6 address (0 is any port)."""
    text = ",".join(map(str, listeners))
    by_port: dict[int, list[Listener]] = {}
    for listener in listeners:
        if listener.port:
            by_port.setdefault(listener.port, []).append(listener)
        if listener.protocol not in SERVED_PROTOCOLS:
            raise ConfigError(
                "listeners", text, f"{listener.name} asks for {listener.protocol}, which is not served yet"
            )
    for sharers in by_port.values():
        families = sorted(_family(listener.host) for listener in sharers)
        if len(sharers) > 1 and families != [4, 6]:
            raise ConfigError("listeners", text, "each listener must have a different port")


def check_advertised(advertised: tuple[Listener, ...], bound: tuple[Listener, ...], prop: str) -> None:
    names = {listener.name for listener in bound}
    text = ",".join(map(str, advertised))
    for listener in advertised:
        if listener.host in {"0.0.0.0", "::"}:  # noqa: S104 - refused, not bound
            raise ConfigError(
                prop,
                text,
                f"advertised.listeners cannot use the nonroutable meta-address {listener.host}: set the address that "
                "clients can reach",
            )
        if listener.name not in names:
            raise ConfigError(prop, text, f"listener {listener.name} is not in 'listeners'")


def _family(host: str) -> int:
    """4 or 6 for an address, 0 for a name, which may be either."""
    if ":" in host:
        return 6
    parts = host.split(".")
    return 4 if len(parts) == 4 and all(part.isdigit() for part in parts) else 0
