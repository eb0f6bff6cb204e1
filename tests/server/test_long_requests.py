"""Every API, asked with arrays and byte strings as long as a frame can carry: others are served, and memory is bounded.

The APIs come from `routes.py`, their arrays and byte strings from the schemas, so that one which is added later is
asked too. What counts is the CPU time that the broker's loop spends while one question of another connection waits:
unlike the wait itself it does not grow with what else this machine has to do. A search for what is too long:
`python -m bench.attack`.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from bench.attacks.long_frames import (
    KNOWN_PARTITIONS,
    KNOWN_TEXTS,
    Filling,
    LongArray,
    LongBytes,
    frame_that_is_taken,
    long_arrays,
    long_bytes,
)
from bench.attacks.probe import PAUSE_SECONDS, QUESTION, computed_ms
from bench.groups import TOPIC as COMMITTED_TOPIC
from bench.groups import wait_for_coordinator
from bench.wire import Wire, create_topic
from tests.conftest import WatchServer
from tools.ottla_server import ottla_broker
from tools.server_process import ServerProcess

from bench import machine
from ottla.handlers.routes import HOT, ROUTES, advertised
from ottla.model import ErrorCode
from ottla.protocol.apis import api
from ottla.protocol.fields import LENGTH_BYTES
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic

METADATA = 3
TOPIC, GROUP = KNOWN_TEXTS[0], KNOWN_TEXTS[3]
PROPERTIES = {
    # What names that are not there cost is asked here, and not what it costs to make a folder for each of them.
    "auto.create.topics.enable": "false",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}

#: Ten times what a request may hold the loop: this test is to find what has no bound, and never to fail by chance.
COMPUTED_MS_MAX = 50
#: Beyond this no second try would say otherwise, and nobody waits for the end.
HOPELESS_MS = 10 * COMPUTED_MS_MAX
TRIES = 6
#: Over what the frame takes: as it arrived, in a buffer whose size is a power of two, and a copy.
MEMORY_BYTES_MAX = 64 << 20
FRAME_COPIES = 3
#: Of the broker: the machine is to survive a fault that this test finds.
ADDRESS_SPACE_KIB = 6 << 20

#: Some ten thousand elements at least: what is done with all of them at once takes more than is allowed.
FRAME_BYTES = 400_000
#: What `socket.request.max.bytes` lets through, and some room for the header.
LONGEST_FRAME_BYTES = 100_000_000
#: Elements that differ are encoded one by one, which takes a while.
LONGEST_NUMBERED_BYTES = 10_000_000
#: The loop has nothing to do for so long: the request waits for something, and is not at work.
QUIET_SECONDS = 0.5
QUIET_MS_MAX = 2
LOOK_SECONDS = 0.02


def every_array() -> list[LongArray]:
    return [array for key, _, highest in advertised() for array in long_arrays(key, highest)]


def every_byte_string() -> list[LongBytes]:
    return [one for key, _, highest in advertised() for one in long_bytes(key, highest)]


def test_no_api_is_left_out() -> None:
    asked = {array.key for array in every_array()}
    assert asked <= {*ROUTES, *HOT}
    for key in {*ROUTES, *HOT} - asked:
        highest = next(version for served, _, version in advertised() if served == key)
        empty = api(key).request_type()()
        slots: tuple[str, ...] = type(empty).__slots__
        lists = [name for name in slots if isinstance(getattr(empty, name), list)]
        assert not lists, f"{api(key).name} {highest} has {lists}"


class Probe(threading.Thread):
    """Asks ApiVersions over and over on a connection of its own."""

    def __init__(self, server: ServerProcess) -> None:
        super().__init__(daemon=True)
        self._pid = server.pid
        self._socket = socket.create_connection(("127.0.0.1", server.port), timeout=60)
        self._ended = threading.Event()
        #: The loop's CPU time when the question was asked that is open now.
        self._since_ms = computed_ms(self._pid)
        self._longest_ms = 0.0
        self.start()

    def run(self) -> None:
        with suppress(OSError):
            while not self._ended.wait(PAUSE_SECONDS):
                self._since_ms = computed_ms(self._pid)
                self._socket.sendall(QUESTION)
                size = int.from_bytes(self._exactly(4), "big")
                self._exactly(size)
                self._longest_ms = max(self._longest_ms, computed_ms(self._pid) - self._since_ms)

    def _exactly(self, size: int) -> bytes:
        piece = self._socket.recv(size, socket.MSG_WAITALL)
        if len(piece) < size:
            raise ConnectionResetError
        return piece

    def computed_ms(self) -> float:
        """The most within one wait, that of the question that is open included."""
        with suppress(OSError):
            return max(self._longest_ms, computed_ms(self._pid) - self._since_ms)
        return self._longest_ms

    def end(self) -> float:
        self._ended.set()
        self.join(30)
        self._socket.close()
        return self._longest_ms


class Attacked:
    """A broker in a process of its own, which is started anew where an attack has ended it."""

    def __init__(self, folder: Path, watch: WatchServer) -> None:
        self._folder = folder
        self._watch = watch
        self._lives = 0
        self.server: ServerProcess | None = None

    def up(self) -> ServerProcess:
        """The broker, with the topic and the group that requests speak of."""
        if self.server is None or not self.server.running:
            self._lives += 1
            self.server = ottla_broker(self._folder / f"data-{self._lives}", properties=PROPERTIES)
            limited = f'ulimit -v {ADDRESS_SPACE_KIB} && exec "$@"'
            self.server.command = ["sh", "-c", limited, "sh", *self.server.command]
            self.server.start()
            create_topic(self.server.port, COMMITTED_TOPIC)
            wait_for_coordinator(self.server.port, GROUP)
        return self.server

    def topic_id(self) -> bytes:
        port = self.up().port
        with Wire(port) as wire:
            while True:
                asked = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
                found = wire.call(METADATA, 12, asked).topics[0]
                if found.error_code == ErrorCode.NONE:
                    topic_id: bytes = found.topic_id
                    return topic_id
                create_topic(port, TOPIC, KNOWN_PARTITIONS)

    def asked(self, frame: bytes) -> tuple[float, int]:
        """How long the loop computed while somebody else waited, and the memory that the broker took."""
        server = self.up()
        base = machine.memory(server.pid).resident
        Path(f"/proc/{server.pid}/clear_refs").write_text("5")  # the peak begins anew
        probe = Probe(server)
        try:
            with socket.create_connection(("127.0.0.1", server.port), timeout=LOOK_SECONDS) as client:
                _send_and_receive(client, frame, server, probe)
            assert server.running, f"the broker has ended: {server.log_tail(1000)}"
            if probe.computed_ms() > HOPELESS_MS:
                return probe.computed_ms(), 0
            return probe.end(), machine.peak_memory(server.pid) - base
        finally:
            if probe.is_alive():
                server.kill()

    def close(self) -> None:
        if self.server is not None:
            self.server.kill()


def _send_and_receive(client: socket.socket, frame: bytes, server: ServerProcess, probe: Probe) -> None:
    """Until the request is answered or refused, or waits for something, or it is plain that others wait too long."""
    left = memoryview(frame)
    head = bytearray()
    wanted, got = 4, 0
    quiet_since, computed = time.monotonic(), 0.0
    while got < wanted and probe.computed_ms() <= HOPELESS_MS:
        try:
            if left:
                left = left[client.send(left) :]
                continue
            piece = client.recv(1 << 20)
        except TimeoutError:
            before, computed = computed, computed_ms(server.pid)
            if left or computed - before > QUIET_MS_MAX:
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since > QUIET_SECONDS:
                return
            continue
        except ConnectionError:
            return
        if not piece:
            return
        got += len(piece)
        head += piece[: 4 - len(head)]
        if len(head) == 4:
            wanted = 4 + int.from_bytes(head, "big")


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory, watch_server: WatchServer) -> Iterator[Attacked]:
    found = Attacked(tmp_path_factory.mktemp("attacked"), watch_server)
    yield found
    found.close()


def check(attacked: Attacked, array: LongArray | LongBytes, filling: Filling, bytes_max: int) -> None:
    computed, grown = float("inf"), 1 << 62
    for _ in range(TRIES):
        frame = array.frame(filling, bytes_max=bytes_max, topic_id=attacked.topic_id())
        took_ms, took_bytes = attacked.asked(frame)
        computed, grown = min(computed, took_ms), min(grown, took_bytes - FRAME_COPIES * len(frame))
        if computed > HOPELESS_MS or (computed <= COMPUTED_MS_MAX and grown <= MEMORY_BYTES_MAX):
            break
    faults = []
    if computed > COMPUTED_MS_MAX:
        more = "more than " if computed > HOPELESS_MS else ""
        faults.append(f"the loop computed for {more}{min(computed, HOPELESS_MS):.0f} ms while another client waited")
    if grown > MEMORY_BYTES_MAX:
        faults.append(f"{grown >> 20} MiB more than the frame takes")
    assert not faults, "; ".join(faults)


def every_filling() -> Iterator[Any]:
    """Each array with one filling, in turns; `./test --slow` has the others."""
    for number, array in enumerate(every_array()):
        for turn, filling in enumerate(Filling):
            marks = () if turn == number % len(Filling) else (pytest.mark.slow,)
            yield pytest.param(array, filling, id=f"{array.id}-{filling.value}", marks=marks)


@pytest.mark.parametrize(("array", "filling"), every_filling())
def test_a_long_array_holds_nobody_up(attacked: Attacked, array: LongArray, filling: Filling) -> None:
    check(attacked, array, filling, FRAME_BYTES)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("filling", Filling, ids=lambda filling: filling.value)
@pytest.mark.parametrize("array", every_array(), ids=lambda array: array.id)
def test_the_longest_array_holds_nobody_up(attacked: Attacked, array: LongArray, filling: Filling) -> None:
    longest = LONGEST_NUMBERED_BYTES if filling is Filling.NUMBERED else LONGEST_FRAME_BYTES
    check(attacked, array, filling, longest)


#: What took the most of those that are as long as a decoder takes them.
SHARPEST = {
    "AddPartitionsToTxn.5.transactions.topics.partitions-numbered",
    "WriteTxnMarkers.2.markers-empty",
    "OffsetFetch.10.groups.topics-known",
    "Produce.13.topic_data-empty",
    "CreateTopics.7.topics.configs-known",
    "UpdateMetadata.8.live_brokers.endpoints-known",
}


def every_taken() -> Iterator[Any]:
    for array in every_array():
        for filling in Filling:
            name = f"{array.id}-{filling.value}"
            marks = () if name in SHARPEST else (pytest.mark.slow,)
            yield pytest.param(array, filling, id=name, marks=marks)


@pytest.mark.parametrize(("array", "filling"), every_taken())
def test_an_array_that_is_as_long_as_is_taken_holds_nobody_up(
    attacked: Attacked, array: LongArray, filling: Filling
) -> None:
    """Short ones hide what they cost, and longer ones are refused before anything is made of them."""
    frame = frame_that_is_taken(array, filling, bytes_max=LONGEST_NUMBERED_BYTES, topic_id=attacked.topic_id())
    check(attacked, array, filling, len(frame) - LENGTH_BYTES)


@pytest.mark.parametrize("one", every_byte_string(), ids=lambda one: one.id)
def test_a_long_byte_string_holds_nobody_up(attacked: Attacked, one: LongBytes) -> None:
    check(attacked, one, Filling.KNOWN, FRAME_BYTES)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("one", every_byte_string(), ids=lambda one: one.id)
def test_the_longest_byte_string_holds_nobody_up(attacked: Attacked, one: LongBytes) -> None:
    check(attacked, one, Filling.KNOWN, LONGEST_FRAME_BYTES)
