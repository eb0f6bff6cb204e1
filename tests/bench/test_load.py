"""The load generator against the null server, each in C and in Python: they speak alike, and errors are seen."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bench.frames import (
    FETCH_VERSION,
    PRODUCE,
    PRODUCE_VERSION,
    batch,
    entry,
    fetch,
    null_answers,
    produce,
    produce_answer,
)
from bench.transactional_frames import Transaction, joined
from bench.wire import create_topic
from tests.conftest import WatchServer
from tools.ottla_server import ottla_broker
from tools.server_process import ServerProcess, free_port

from bench import native

FETCH_BYTES = 100_000
ANSWERS = 200


def program(kind: str, name: str, cache: Path) -> list[str]:
    if kind == "python":
        return [sys.executable, str(Path(native.__file__).with_name(f"python_{name}.py"))]
    found = native.command(name, cache)
    if not native.is_native(found):
        pytest.skip("no C compiler on PATH")
    return found


@pytest.fixture(params=["native", "python"])
def null_server(request: pytest.FixtureRequest, tmp_path: Path, watch_server: WatchServer) -> Iterator[ServerProcess]:
    port = free_port()
    answers = tmp_path / "answers"
    answers.write_bytes(null_answers(port, FETCH_BYTES))
    command = [*program(request.param, "null", tmp_path), str(port), str(answers)]
    with watch_server(ServerProcess(command, port=port, log=tmp_path / "null.out")) as server, server:
        yield server


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, watch_server: WatchServer) -> Iterator[ServerProcess]:
    own = {"transaction.state.log.replication.factor": "1", "transaction.state.log.min.isr": "1"}
    with watch_server(ottla_broker(tmp_path_factory.mktemp("broker") / "data", properties=own)) as server, server:
        yield server


def load(kind: str, cache: Path, frame: bytes, **words: int) -> dict[str, float]:
    (cache / "frame").write_bytes(frame)
    said = {"frame": cache / "frame", "seconds": 20, "limit": ANSWERS, "connections": 3, "depth": 2, **words}
    command = [*program(kind, "load", cache), *(f"{name}={value}" for name, value in said.items())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("kind", ["native", "python"])
def test_produce_requests_are_answered_and_counted(null_server: ServerProcess, tmp_path: Path, kind: str) -> None:
    frame = produce(batch(150))
    found = load(kind, tmp_path, frame.request, port=null_server.port, pid=null_server.pid, error=frame.error_position)
    assert found["requests"] >= ANSWERS
    assert found["errors"] == 0
    assert found["frame_bytes"] == len(frame.request)
    assert 0 < found["p50"] <= found["p99"] <= found["longest"] * 1.02


@pytest.mark.parametrize("kind", ["native", "python"])
def test_fetched_bytes_are_counted(null_server: ServerProcess, tmp_path: Path, kind: str) -> None:
    frame = fetch(FETCH_BYTES)
    moving = {"offset": frame.offset_position, "step": 10, "end": 95}
    found = load(kind, tmp_path, frame.request, port=null_server.port, error=frame.error_position, **moving)
    assert found["errors"] == 0
    assert found["answer_bytes"] >= found["requests"] * FETCH_BYTES


@pytest.mark.parametrize("kind", ["native", "python"])
def test_an_error_code_in_an_answer_is_seen(tmp_path: Path, watch_server: WatchServer, kind: str) -> None:
    port = free_port()
    answers = tmp_path / "answers"
    refused = entry(PRODUCE, PRODUCE_VERSION, produce_answer("bench", 3, PRODUCE_VERSION))
    answers.write_bytes(null_answers(port, 0) + refused)  # the later entry counts
    command = [*program(kind, "null", tmp_path), str(port), str(answers)]
    frame = produce(batch(1))
    with watch_server(ServerProcess(command, port=port, log=tmp_path / "null.out")) as server, server:
        found = load(kind, tmp_path, frame.request, port=port, error=frame.error_position)
    assert found["errors"] == found["requests"] > 0


def test_a_request_without_an_answer_ends_the_load(null_server: ServerProcess, tmp_path: Path) -> None:
    unknown = bytearray(fetch(10).request)
    unknown[6:8] = (FETCH_VERSION + 1).to_bytes(2, "big")
    with pytest.raises(subprocess.CalledProcessError):
        load(
            "native" if native.is_native(native.command("load", tmp_path)) else "python",
            tmp_path,
            bytes(unknown),
            port=null_server.port,
        )


@pytest.mark.parametrize("in_transaction", [False, True])
@pytest.mark.parametrize("kind", ["native", "python"])
def test_batches_of_producers_are_numbered(
    broker: ServerProcess, tmp_path: Path, kind: str, in_transaction: bool
) -> None:
    """The broker refuses a sequence that is not the next one, and a wrong checksum."""
    topic = f"{kind}-{in_transaction}"
    create_topic(broker.port, topic)
    producers = [Transaction(broker.port, f"{topic}-{n}" if in_transaction else None) for n in range(3)]
    if in_transaction:
        for each in producers:
            each.begin(topic)
    frames, positions = zip(*(each.frame(topic) for each in producers), strict=True)
    whole = joined(frames)
    words = {"port": broker.port, "error": whole.error_position, "frames": 3, "sequence": positions[0], "depth": 1}
    found = load(kind, tmp_path, whole.request, **words)
    assert found["requests"] >= ANSWERS
    assert found["errors"] == 0
    assert found["frame_bytes"] == len(frames[0].request)
    if in_transaction:
        for each in producers:
            each.commit()
