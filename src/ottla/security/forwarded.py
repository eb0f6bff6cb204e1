"""The principal of a client whose request a broker forwards, as Kafka's brokers write it into an Envelope (KIP-590).

Two bytes of a version, and DefaultPrincipalData in that version.
"""

from __future__ import annotations

from typing import Final

from ottla.protocol.errors import DecodeError
from ottla.protocol.fields import INT16
from ottla.protocol.generated.default_principal_data import DefaultPrincipalData
from ottla.security.principal import Principal

_VERSION: Final = 0


def decode_principal(raw: bytes) -> Principal:
    """Raises DecodeError."""
    if len(raw) < INT16.size:
        raise DecodeError("a principal without a version")
    (version,) = INT16.unpack_from(raw)
    if version != _VERSION:
        raise DecodeError(f"a principal of version {version}")
    data, end = DefaultPrincipalData.decode(raw, version, INT16.size)
    if end != len(raw):
        raise DecodeError(f"{len(raw) - end} bytes behind a principal")
    return Principal(data.type, data.name)
