"""A proxy that writes down what clients and a broker say to each other, for the failure of a test to show it.

    client -- 127.0.0.1:LISTEN -- this process -- 127.0.0.1:TO -- the broker, which advertises LISTEN

Whose fault is it that a member never gets a partition? Its wire shows it. Bytes are written down as they pass, with the
time, and are only read when somebody wants to see them: `conversation` cuts them into frames, finds the request of each
answer, and says what is in those of groups.

    python -m tools.recording_proxy --listen 9093 --to 9092 --file talk    # until Ctrl-C
    python -m tools.recording_proxy --show talk
"""

from __future__ import annotations

import argparse
import asyncio
import os
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from ottla.protocol.apis import APIS, api
from ottla.protocol.errors import DecodeError
from ottla.protocol.generated.catalogue import ApiKey
from ottla.protocol.header import decode_request_header, decode_response_header
from tools.server_process import HOST, ServerProcess

#: When, on which connection, which way, and how many bytes follow.
_PIECE: Final = struct.Struct(">dIcI")
_TO_BROKER, _TO_CLIENT, _END = b">", b"<", b"x"
#: What is written down: tests say less, and a disk is not to be filled.
FILE_BYTES_MAX: Final = 256 * 1024 * 1024
PIECE_BYTES_MAX: Final = 64 * 1024
#: Shown by their names only: records would bury everything else.
_BRIEF: Final = frozenset({ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.API_VERSIONS})
_SHOWN_CHARACTERS: Final = 700


class Recorder:
    """Serves connections, and writes down what passes."""

    def __init__(self, to: int, file: Path) -> None:
        self._to = to
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        self._written = 0
        self._connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        number = self._connections
        try:
            to_reader, to_writer = await asyncio.open_connection(HOST, self._to)
        except OSError:
            writer.close()
            return
        await asyncio.gather(
            self._carry(number, _TO_BROKER, reader, to_writer), self._carry(number, _TO_CLIENT, to_reader, writer)
        )
        self._note(number, _END, b"")
        for each in (writer, to_writer):
            each.close()

    async def _carry(self, number: int, way: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(PIECE_BYTES_MAX):
                self._note(number, way, data)
                writer.write(data)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()

    def _note(self, number: int, way: bytes, data: bytes) -> None:
        if self._written < FILE_BYTES_MAX:
            self._written += os.write(self._file, _PIECE.pack(time.time(), number, way, len(data)) + data)


class RecordingProxy(ServerProcess):
    """The proxy as a child process; `log_tail` says what went through it."""

    def __init__(self, listen: int, to: int, file: Path) -> None:
        self.file = file
        command = [sys.executable, "-m", "tools.recording_proxy", "--listen", str(listen), "--to", str(to)]
        repository = Path(__file__).resolve().parent.parent
        environment = {"PYTHONPATH": os.pathsep.join([str(repository / "src"), str(repository)])}
        super().__init__(
            [*command, "--file", str(file)], port=listen, log=file.with_suffix(".out"), environment=environment
        )

    def log_tail(self, size: int = 100_000) -> str:
        if not self.file.exists():
            return ""
        lines = [str(said) for said in conversation(self.file.read_bytes())]
        return "\n".join(lines)[-size:]


class Said(NamedTuple):
    seconds: float
    connection: int
    to_broker: bool
    text: str

    def __str__(self) -> str:
        clock = time.strftime("%H:%M:%S", time.gmtime(self.seconds)) + f"{self.seconds % 1:.3f}"[1:]
        return f"{clock} #{self.connection} {'->' if self.to_broker else '<-'} {self.text}"


class _Stream:
    """One connection: bytes of frames that are not whole, and the requests whose answers are still to come."""

    def __init__(self) -> None:
        self.left = {_TO_BROKER: b"", _TO_CLIENT: b""}
        self.asked: dict[int, tuple[int, int]] = {}

    def frames(self, way: bytes, data: bytes) -> Iterator[bytes]:
        left = self.left[way] + data
        while len(left) >= 4 and len(left) >= (end := 4 + int.from_bytes(left[:4], "big")):
            yield left[4:end]
            left = left[end:]
        self.left[way] = left


def conversation(recorded: bytes) -> Iterator[Said]:
    streams: dict[int, _Stream] = {}
    at = 0
    while at + _PIECE.size <= len(recorded):
        seconds, number, way, size = _PIECE.unpack_from(recorded, at)
        data = recorded[at + _PIECE.size : at + _PIECE.size + size]
        at += _PIECE.size + size
        if way == _END:
            yield Said(seconds, number, False, "the connection ends")
            continue
        stream = streams.setdefault(number, _Stream())
        for frame in stream.frames(way, data):
            try:
                text = _request(stream, frame) if way == _TO_BROKER else _answer(stream, frame)
            except (DecodeError, struct.error, KeyError) as fault:
                text = f"{len(frame)} bytes that cannot be read: {fault!r}"
            yield Said(seconds, number, way == _TO_BROKER, text)


def _request(stream: _Stream, frame: bytes) -> str:
    key, version, correlation = struct.unpack_from(">hhi", frame)
    stream.asked[correlation] = key, version
    name = f"{APIS[key].name} {version} ({correlation})"
    if key in _BRIEF:
        return name
    header, at = decode_request_header(frame)
    request, _ = api(key).request_type().decode(frame, version, at)
    return f"{name} by {header.client_id}: {request}"[:_SHOWN_CHARACTERS]


def _answer(stream: _Stream, frame: bytes) -> str:
    (correlation,) = struct.unpack_from(">i", frame)
    key, version = stream.asked.pop(correlation)
    name = f"{APIS[key].name} {version} ({correlation})"
    if key in _BRIEF:
        return name
    _, _, at = decode_response_header(frame, key, version)
    response, _ = api(key).response_type().decode(frame, version, at)
    return f"{name}: {response}"[:_SHOWN_CHARACTERS]


async def _run(listen: int, to: int, file: Path) -> None:
    server = await asyncio.start_server(Recorder(to, file).serve, HOST, listen)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--listen", type=int, metavar="PORT")
    parser.add_argument("--to", type=int, metavar="PORT")
    parser.add_argument("--file", type=Path)
    parser.add_argument("--show", type=Path, metavar="FILE", help="what was said")
    options = parser.parse_args()
    if options.show is not None:
        for said in conversation(options.show.read_bytes()):
            print(said)
        return
    with suppress(KeyboardInterrupt):
        asyncio.run(_run(options.listen, options.to, options.file))


if __name__ == "__main__":
    main()
