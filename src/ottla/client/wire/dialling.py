"""How a connection begins: it is opened, and the two sides agree on versions, within one time-out."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import socket
from typing import Final, cast

from ottla.client.errors import ConnectFailed, ConnectionLost, KafkaError
from ottla.client.settings import ANSWER_BYTES_MAX
from ottla.client.wire.connection import BrokerConnection
from ottla.client.wire.world import ClientPorts

_ERRNO: Final = re.compile(r"\[Errno (\d+)\]")


async def connect(
    world: ClientPorts,
    host: str,
    port: int,
    *,
    client_id: str,
    setup_timeout_ms: int,
    answer_bytes_max: int = ANSWER_BYTES_MAX,
) -> BrokerConnection:
    """Opens a connection and negotiates versions, all within the time-out; raises ConnectFailed or what ended it."""
    peer = f"{host}:{port}"
    made: list[BrokerConnection] = []

    def protocol() -> asyncio.Protocol:
        made.append(BrokerConnection(peer, client_id, answer_bytes_max))
        # The port's word for "what asyncio feeds": its transports feed buffered protocols as well.
        return cast("asyncio.Protocol", made[-1])

    try:
        async with asyncio.timeout(setup_timeout_ms / 1000):
            await world.network.connect(protocol, host, port)
            await made[-1].negotiate(setup_timeout_ms)
    except BaseException as error:
        for connection in made:
            connection.abandon(ConnectionLost(f"{peer}: the connection was given up while it was set up"))
        if isinstance(error, TimeoutError) and not isinstance(error, KafkaError):
            raise ConnectFailed(f"{peer} did not answer within {setup_timeout_ms} ms") from None
        if isinstance(error, OSError) and not isinstance(error, KafkaError):
            failed = ConnectFailed(f"{peer}: {cause_of(error)}")
            failed.refused = _numbers(error) == [errno.ECONNREFUSED]
            raise failed from error
        raise
    return made[-1]


def _numbers(error: OSError) -> list[int]:
    """Each kind of fault once. A host may have several addresses, and asyncio puts theirs into one text."""
    found = [int(number) for number in _ERRNO.findall(str(error))] if error.errno is None else [error.errno]
    return list(dict.fromkeys(found))


def cause_of(error: OSError) -> str:
    """The system's own words ("Connection refused"), where asyncio says "Connect call failed ('127.0.0.1', 9092)"."""
    if isinstance(error, socket.gaierror):
        return f"the host's name is not known ({error.strerror or error})"
    return ", ".join(os.strerror(number) for number in _numbers(error)) or error.strerror or str(error)
