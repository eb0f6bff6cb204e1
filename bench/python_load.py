"""The load generator of ``native/load.c`` in Python, for machines without a C compiler; the same words and output.

It is several times slower, so a fast server is then measured by what this client can do: the table says so.
"""

from __future__ import annotations

import json
import selectors
import socket
import struct
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.machine import cpu_seconds
from ottla.records.batch import patch_crc

#: In a batch.
_SEQUENCE_AT = 53
_READ = 1 << 20
_HEAD = 256


class Load:
    def __init__(self, option: dict[str, str]) -> None:
        whole = Path(option["frame"]).read_bytes()
        frames = int(option.get("frames", 1))
        self.frames = [whole[at : at + len(whole) // frames] for at in range(0, len(whole), len(whole) // frames)]
        self.sequence = int(option.get("sequence", -1))
        self.depth = int(option.get("depth", 1))
        self.error = int(option.get("error", -1))
        self.offset = int(option.get("offset", -1))
        self.step, self.end = int(option.get("step", 0)), int(option.get("end", 0))
        self.next_offset = 0
        self.poller = selectors.DefaultSelector()
        self.forget()
        self.errors = 0
        for number in range(int(option.get("connections", 1))):
            connection = socket.create_connection(("127.0.0.1", int(option["port"])))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer = Peer(connection, self, self.frames[number % frames])
            self.poller.register(connection, selectors.EVENT_READ, peer)
            for _ in range(self.depth):
                peer.send()

    def forget(self) -> None:
        self.latencies: list[float] = []
        self.bytes = 0

    def request(self, frame: bytes, number: int) -> bytes:
        if self.sequence >= 0:
            return self._numbered(bytearray(frame), number)
        if self.offset < 0:
            return frame
        wire = struct.pack(">q", self.next_offset)
        self.next_offset = (self.next_offset + self.step) if self.next_offset + self.step < self.end else 0
        return frame[: self.offset] + wire + frame[self.offset + 8 :]

    def _numbered(self, frame: bytearray, number: int) -> bytes:
        struct.pack_into(">i", frame, self.sequence, number)
        patch_crc(frame, self.sequence - _SEQUENCE_AT)
        return bytes(frame)

    def run(self, seconds: float, limit: int = 0) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and (not limit or len(self.latencies) < limit):
            for key, _ in self.poller.select(0.05):
                key.data.receive()

    def quantile(self, share: float) -> float:
        ordered = sorted(self.latencies)
        return round(ordered[min(int(len(ordered) * share), len(ordered) - 1)] * 1e6, 1) if ordered else 0.0


class Peer:
    def __init__(self, connection: socket.socket, load: Load, frame: bytes) -> None:
        self.connection, self.load, self.frame = connection, load, frame
        #: Requests that were begun.
        self.begun = 0
        self.began: list[float] = []
        self.head = b""
        self.left = 0

    def send(self) -> None:
        self.began.append(time.perf_counter())
        self.connection.sendall(self.load.request(self.frame, self.begun))
        self.begun += 1

    def receive(self) -> None:
        data = self.connection.recv(_READ)
        if not data:
            raise SystemExit("the server closed a connection")
        self.load.bytes += len(data)
        while data:
            if not self.left:
                self.head += data
                if len(self.head) < 4:
                    return
                data, self.head = self.head, b""
                self.left = 4 + struct.unpack_from(">i", data)[0]
            used, data = data[: self.left], data[self.left :]
            self.left -= len(used)
            self.head = (self.head + used)[:_HEAD]
            if not self.left:
                self.finish()

    def finish(self) -> None:
        load = self.load
        load.latencies.append(time.perf_counter() - self.began.pop(0))
        if load.error >= 0 and self.head[load.error : load.error + 2] != b"\0\0":
            load.errors += 1
        self.head = b""
        self.send()


def main(words: list[str]) -> None:
    option = dict(word.split("=", 1) for word in words)
    load = Load(option)
    load.run(float(option.get("warm", 0)))
    load.forget()
    pids = [int(pid) for pid in option.get("pid", "").split(",") if int(pid or 0) > 0]
    server, client, began = sum(map(cpu_seconds, pids)), time.process_time(), time.monotonic()
    load.run(float(option.get("seconds", 5)), int(option.get("limit", 0)))
    seconds = time.monotonic() - began
    found = {
        "requests": len(load.latencies),
        "seconds": seconds,
        "errors": load.errors,
        "frame_bytes": len(load.frames[0]),
        "answer_bytes": load.bytes,
        "p50": load.quantile(0.5),
        "p99": load.quantile(0.99),
        "p999": load.quantile(0.999),
        "longest": load.quantile(1),
        "server_cpu": sum(map(cpu_seconds, pids)) - server,
        "client_cpu": time.process_time() - client,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
