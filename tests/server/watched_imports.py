"""A broker in a fresh process, and what its loop imports while it serves: a program for `test_loop_and_imports.py`.

    python -m tests.server.watched_imports FOLDER     frames, one a line and in hex, come by standard input

Each frame has a connection of its own and is answered, or its connection is closed, before the next. One line for each
module that the loop's thread looked for meanwhile.
"""

from __future__ import annotations

import struct
import sys
import threading
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from tests.server.conftest import BrokerThread


class Watch(MetaPathFinder):
    """Finds nothing, and notes what one thread looks for."""

    def __init__(self, thread: int) -> None:
        self._thread = thread
        self.names: list[str] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if threading.get_ident() == self._thread:
            self.names.append(fullname)
        return None


def main(folder: str) -> None:
    frames = [bytes.fromhex(line) for line in sys.stdin.read().split()]
    with BrokerThread(folder) as running:
        watch = Watch(running.look(lambda _: threading.get_ident()))
        sys.meta_path.insert(0, watch)
        for frame in frames:
            before = len(watch.names)
            with running.connect() as peer:
                peer.send(frame)
                try:
                    peer.receive()
                    answered = "answered"
                except (EOFError, ConnectionResetError):
                    answered = "closed"
            (key,) = struct.unpack_from(">h", frame, 4)
            print(key, answered, *watch.names[before:])
        sys.meta_path.remove(watch)


if __name__ == "__main__":
    main(sys.argv[1])
