"""What clients and a broker have said, as it goes with the failure of a test."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from tests.conftest import WatchServer
from tests.interop.clients import eventually
from tests.server.conftest import Peer
from tools.recording_proxy import RecordingProxy, conversation
from tools.server_process import free_port

from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.generated.metadata import MetadataRequest, MetadataResponse


def piece(way: bytes, data: bytes, connection: int = 1, seconds: float = 0.5) -> bytes:
    return struct.pack(">dIcI", seconds, connection, way, len(data)) + data


def test_requests_and_answers_are_said_in_their_order(
    tmp_path: Path, ottla_process: str, watch_server: WatchServer
) -> None:
    proxy = RecordingProxy(free_port(), int(ottla_process.rpartition(":")[2]), tmp_path / "conversation")
    with watch_server(proxy), proxy:
        with Peer(proxy.port) as peer, Peer(proxy.port) as other:
            peer.ask(MetadataRequest(topics=[]), 12, MetadataResponse)
            asked = other.frame(FindCoordinatorRequest(coordinator_keys=["my-group"]), 4)
            other.send(asked[:7])
            peer.ask(MetadataRequest(topics=[]), 12, MetadataResponse)
            other.send(asked[7:])
            other.answer(FindCoordinatorResponse, 4)
        eventually(lambda: proxy.log_tail().count("the connection ends") >= 2)
        said = proxy.log_tail().splitlines()
    ours = [line for line in said if "by test" in line or ": FindCoordinatorResponse" in line]
    assert [line.split(" ")[2:5] for line in ours] == [
        ["->", "Metadata", "12"],
        ["->", "Metadata", "12"],
        ["->", "FindCoordinator", "4"],
        ["<-", "FindCoordinator", "4"],
    ]
    assert "my-group" in ours[2]
    assert "my-group" in ours[3]
    numbers = [line.split(" ")[1] for line in ours]
    assert numbers[0] == numbers[1] != numbers[2] == numbers[3]


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        (b"", []),
        (piece(b">", b"\0\0")[:-1] + b"", []),
        (piece(b">", struct.pack(">ihhi", 8, 9999, 0, 1)), ["cannot be read"]),
        (piece(b"<", struct.pack(">ii", 4, 77)), ["cannot be read"]),  # nobody has asked that
        (piece(b">", b"GET / HTTP/1.1\r\n\r\n"), []),
        (piece(b"x", b""), ["the connection ends"]),
    ],
)
def test_whatever_was_recorded_is_said(recorded: bytes, expected: list[str]) -> None:
    said = [str(each) for each in conversation(recorded)]
    assert len(said) == len(expected)
    for line, words in zip(said, expected, strict=True):
        assert line.startswith("00:00:00.500 #1 ")
        assert words in line
