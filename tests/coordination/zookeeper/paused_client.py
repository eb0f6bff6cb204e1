"""A process of its own with a session of our client, for a test that pauses it: it says what happens to the session.

After an expiry it opens another session and registers again, as a broker does.
"""

from __future__ import annotations

import asyncio
import sys

from tests.coordination.zookeeper.sessions import RemoteProvider

from ottla.coordination.interface import SessionEvent
from ottla.ports.real import real_ports


async def main(connect: str, path: str) -> None:
    provider = RemoteProvider(real_ports(), connect, timeout_ms=5000)
    while True:
        over = asyncio.Event()
        tree = await provider.session()

        def listen(event: SessionEvent, over: asyncio.Event = over) -> None:
            print(event.value, flush=True)
            if event is SessionEvent.EXPIRED:
                over.set()

        tree.listen(listen)
        await tree.create(path, b"", ephemeral=True)
        print("registered", flush=True)
        await over.wait()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
