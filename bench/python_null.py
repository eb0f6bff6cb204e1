"""The null server of ``native/null.c`` in Python, for machines without a C compiler."""

from __future__ import annotations

import selectors
import socket
import struct
import sys
from pathlib import Path

_PREFIX = struct.Struct(">ihh")
_READ = 1 << 20


def load_answers(path: str) -> dict[tuple[int, int], bytes]:
    data, at, found = Path(path).read_bytes(), 0, {}
    while at < len(data):
        key, version, size = struct.unpack_from(">HHI", data, at)
        found[key, version] = data[at + 8 : at + 8 + size]
        at += 8 + size
    return found


class Client:
    """Collects a connection's bytes; a frame's body is counted off and never kept."""

    def __init__(self, connection: socket.socket, answers: dict[tuple[int, int], bytes]) -> None:
        self._connection = connection
        self._answers = answers
        self._prefix = b""
        self._left = 0

    def consume(self, data: memoryview) -> bool:
        """Answers what became whole; false when the connection is to be closed."""
        at = 0
        while at < len(data):
            if len(self._prefix) < 12:
                part = bytes(data[at : at + 12 - len(self._prefix)])
                self._prefix += part
                at += len(part)
                if len(self._prefix) < 12:
                    return True
                self._left = _PREFIX.unpack_from(self._prefix)[0] - 8
            part_size = min(self._left, len(data) - at)
            at += part_size
            self._left -= part_size
            if self._left:
                return True
            _, key, version = _PREFIX.unpack_from(self._prefix)
            answer = self._answers.get((key, version))
            if answer is None:
                print(f"no answer for API {key} version {version}", file=sys.stderr)
                return False
            self._connection.setblocking(True)
            self._connection.sendall(answer[:4] + self._prefix[8:12] + answer[8:])
            self._connection.setblocking(False)
            self._prefix = b""
        return True


def serve(port: int, answers: dict[tuple[int, int], bytes]) -> None:
    poller = selectors.DefaultSelector()
    listener = socket.create_server(("127.0.0.1", port), backlog=1024)
    listener.setblocking(False)
    poller.register(listener, selectors.EVENT_READ, None)
    room = memoryview(bytearray(_READ))
    while True:
        for key, _ in poller.select():
            if key.data is None:
                accepted, _ = listener.accept()
                accepted.setblocking(False)
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                poller.register(accepted, selectors.EVENT_READ, Client(accepted, answers))
                continue
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            try:
                got = connection.recv_into(room)
                alive = got > 0 and key.data.consume(room[:got])
            except BlockingIOError:
                continue
            except OSError:
                alive = False
            if not alive:
                poller.unregister(connection)
                connection.close()


if __name__ == "__main__":
    serve(int(sys.argv[1]), load_answers(sys.argv[2]))
