"""Sessions of our client for tests, with real servers or in a simulated network."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from ottla.config import Config
from ottla.coordination.interface import Coordination
from ottla.coordination.zookeeper.client import RemoteTree, open_remote
from ottla.coordination.zookeeper.codes import OpCode
from ottla.coordination.zookeeper.connection import ServerConnection
from ottla.coordination.zookeeper.frames import encode_request
from ottla.coordination.zookeeper.messages import ConnectRequest
from ottla.ports import Ports


class RemoteProvider:
    """The contract's provider: sessions of our client with the servers of `connect`."""

    def __init__(self, ports: Ports, connect: str, timeout_ms: int = 6000) -> None:
        self.ports = ports
        self.connect = connect
        self.timeout_ms = timeout_ms
        self.opened: list[RemoteTree] = []

    async def session(self, **properties: str) -> RemoteTree:
        given = {"zookeeper.connect": self.connect, "zookeeper.session.timeout.ms": str(self.timeout_ms)}
        config = Config.parse(given | {"zookeeper.connection.timeout.ms": "20000"} | properties).coordination
        tree = await open_remote(config, self.ports)
        self.opened.append(tree)
        # What earlier sessions wrote with other servers is seen.
        await tree.sync("/")
        return tree

    async def expire(self, session: Coordination) -> None:
        """Ends it on the server, over a connection that its client knows nothing of."""
        assert isinstance(session, RemoteTree)
        info = session.session
        host, _, port = self.connect.partition("/")[0].split(",")[0].rpartition(":")
        clock = self.ports.clock
        while True:
            _, made = await self.ports.network.connect(
                lambda: ServerConnection("thief", clock.monotonic_ms), host, int(port)
            )
            assert isinstance(made, ServerConnection)
            request = ConnectRequest(0, session.durable_zxid, info.timeout_ms, info.id, info.password)
            # A server may close before its answer has left: it is asked again.
            with suppress(ConnectionResetError):
                if (await made.shake_hands(request)).session_id != info.id:
                    return
                # Its client may take it back before this is read.
                made._write(encode_request(1, OpCode.CLOSE_SESSION))
            await asyncio.sleep(0.02)

    async def close(self) -> None:
        for tree in self.opened:
            await tree.close()
