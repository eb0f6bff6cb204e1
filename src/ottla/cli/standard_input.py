"""Standard input, line by line, without holding up the loop: a pipe, a file or a person's terminal.

A thread reads, one piece ahead at most. It is a daemon, since nothing can wake a read of a terminal: Ctrl-C must not
wait for one more line.
"""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import threading
from collections.abc import AsyncIterator

from ottla.cli.faults import CommandFault, UsageFault
from ottla.cli.streams import is_input_closed

PIECE_BYTES = 64 << 10
#: A line beyond this is no line: somebody has piped something else in.
LINE_BYTES_MAX = 64 << 20


def size_if_known() -> int | None:
    """The bytes to come, where the input is a file."""
    if is_input_closed():
        return None
    try:
        found = os.fstat(sys.stdin.fileno())
    except (OSError, ValueError):
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None


def check_ends_with_holder(option: str) -> None:
    """Raises UsageFault unless the input is one whose end can be waited for: a file's is there at once."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        mode = 0
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(0)):
        raise UsageFault(f"{option} goes with a pipe or a terminal, and standard input is neither")


async def pieces(delimiter: bytes) -> AsyncIterator[list[bytes]]:
    """All lines, in lists of those that came together, without what ends them."""
    held, looked_at = bytearray(), 0
    async for data in _read():
        held += data
        # Of a line of many pieces its beginning is not looked at again with each of them.
        if held.find(delimiter, max(0, looked_at - len(delimiter) + 1)) >= 0:
            *lines, rest = bytes(held).split(delimiter)
            yield lines
            held = bytearray(rest)
        looked_at = len(held)
        if looked_at > LINE_BYTES_MAX:
            raise CommandFault(f"a line has more than {LINE_BYTES_MAX} bytes; --delimiter says what ends one")
    if held:
        yield [bytes(held)]


async def chunks() -> AsyncIterator[bytes]:
    """What comes, as it comes."""
    async for data in _read():
        yield data


async def _read() -> AsyncIterator[bytes]:
    if is_input_closed():
        raise CommandFault("standard input cannot be read: it is closed")
    loop = asyncio.get_running_loop()
    wanted = threading.Semaphore(0)
    arrived: asyncio.Queue[bytes | OSError] = asyncio.Queue(maxsize=1)

    def read() -> None:
        descriptor = sys.stdin.fileno()
        data: bytes | OSError = b"-"
        while data and not isinstance(data, OSError):
            wanted.acquire()
            try:
                data = os.read(descriptor, PIECE_BYTES)
            except OSError as error:
                data = error
            try:
                loop.call_soon_threadsafe(arrived.put_nowait, data)
            except RuntimeError:
                return  # the loop has ended meanwhile

    threading.Thread(target=read, name="standard input", daemon=True).start()
    while True:
        wanted.release()
        data = await arrived.get()
        if isinstance(data, OSError):
            raise CommandFault(f"standard input cannot be read: {data.strerror}")
        if not data:
            return
        yield data
