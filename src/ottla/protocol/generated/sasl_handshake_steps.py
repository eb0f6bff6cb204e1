"""Agrees on a SASL mechanism.

In steps; made from schemas/sasl_handshake.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.sasl_handshake import (
    SaslHandshakeResponse,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    put_count,
    put_string,
)
from ottla.protocol.stepping import (
    Pace,
    write_strings,
)
from ottla.steps import Steps

_pack_h = Struct(">h").pack


def _write_sasl_handshake_response_steps(out: bytearray, m: SaslHandshakeResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_h(m.error_code)
    put_count(out, len(m.mechanisms))
    yield from write_strings(out, m.mechanisms, put_string, pace)
    if m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    SaslHandshakeResponse: _write_sasl_handshake_response_steps,
}
