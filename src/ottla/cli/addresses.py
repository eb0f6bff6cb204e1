"""Addresses of brokers as they are typed: a port that is left out is Kafka's."""

from __future__ import annotations

#: Where `ottla up` listens: on this host alone.
HOST_DEFAULT = "127.0.0.1"
PORT_DEFAULT = 9092
BOOTSTRAP_DEFAULT = f"localhost:{PORT_DEFAULT}"


def with_ports(text: str) -> str:
    """`a,b:9093,[::1]` with the port that is meant where there is none."""
    return ",".join(_with_port(piece.strip()) for piece in text.split(",") if piece.strip())


def _with_port(address: str) -> str:
    host, colon, port = address.rpartition(":")
    if address.startswith("["):
        return address if "]:" in address else f"{address}:{PORT_DEFAULT}"
    if address.count(":") > 1:  # IPv6 without brackets has no place for a port
        return f"[{address}]:{PORT_DEFAULT}"
    if colon and not port:
        return f"{host}:{PORT_DEFAULT}"
    return address if colon else f"{address}:{PORT_DEFAULT}"
