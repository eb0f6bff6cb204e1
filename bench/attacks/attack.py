"""What an attack is: what it sends, what that may cost the others at most, and what came of it."""

from __future__ import annotations

import socket
import struct
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench import machine
from bench.wire import HOST, create_topic
from ottla.model import ErrorCode
from ottla.protocol.apis import api
from ottla.protocol.header import decode_response_header
from ottla.protocol.message import Structure

MB = 1_000_000
#: Of one answer, that its codes can be counted. Longer ones are received and thrown away.
KEPT_BYTES_MAX = 32 * MB
_RECEIVE_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Bound:
    """What an attack may cost at most; None where nothing is promised."""

    #: The longest wait of the probe.
    stall_ms: float | None = 50
    #: Memory of the broker, over what it had before and what was sent to it.
    memory_mb: float | None = 64
    #: Until all of the attack's requests were answered.
    seconds: float | None = None
    #: The longest wait of honest clients that do more than the probe, where an attack has such beside it.
    honest_seconds: float | None = None

    def text(self) -> str:
        named = [
            (self.stall_ms, "ms"),
            (self.memory_mb, "MB"),
            (self.seconds, "s until answered"),
            (self.honest_seconds, "s for honest clients"),
        ]
        return ", ".join(f"{value:g} {unit}" for value, unit in named if value is not None)


@dataclass(kw_only=True)
class Outcome:
    """What an attack has seen of the broker, beside what the probe has."""

    #: Bytes that were sent; the broker may have to hold them.
    sent: int = 0
    #: In words; what `answers` says is added.
    said: str = ""
    answers: list[Answer] = field(default_factory=list)
    honest_seconds: float | None = None
    #: What must not be: an honest request that was refused, files that were made.
    faults: list[str] = field(default_factory=list)
    #: Where not the whole attack is meant: until its requests were answered.
    seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What came back for one request; `raw` is empty where it was too long to keep."""

    key: int
    version: int
    size: int
    raw: bytes = b""

    def codes(self) -> Counter[str]:
        """How often each error code stands in it."""
        if not self.raw:
            return Counter()
        _, _, start = decode_response_header(self.raw, self.key, self.version)
        message = api(self.key).response_type().decode(self.raw, self.version, start)[0]
        # What stands at the top says little where the elements below it have codes of their own.
        codes = list(error_codes(message))
        whole = getattr(message, "error_code", None)
        if whole == ErrorCode.NONE and len(codes) > 1:
            codes.remove(whole)
        return Counter(map(_name, codes))


@dataclass(frozen=True, kw_only=True)
class Victim:
    """The broker that is attacked."""

    kind: str
    port: int
    pid: int
    #: Where it keeps its logs.
    data: Path
    #: Beyond this a connection gives up waiting.
    seconds_max: float

    def connect(self) -> Attacker:
        return Attacker(self.port, self.seconds_max)

    def open_files(self) -> int:
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))

    def resident(self) -> int:
        return machine.memory(self.pid).resident


class Attacker:
    """A context manager: a connection that sends what it is given, and reads when it is asked to."""

    def __init__(self, port: int, seconds_max: float) -> None:
        self.socket = socket.create_connection((HOST, port), timeout=seconds_max)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Attacker:  # noqa: PYI034 - never subclassed
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ask(self, frame: bytes) -> Answer:
        """Sends a whole request and receives its answer."""
        self.send(frame)
        return self.answer_to(frame)

    def send(self, frame: bytes) -> None:
        self.socket.sendall(frame)

    def answer_to(self, frame: bytes) -> Answer:
        """The next answer, which is that to `frame`."""
        key, version = struct.unpack_from(">hh", frame, 4)
        (size,) = struct.unpack(">i", self._exactly(4))
        if size > KEPT_BYTES_MAX:
            self._drop(size)
            return Answer(key=key, version=version, size=size)
        return Answer(key=key, version=version, size=size, raw=self._exactly(size))

    def _exactly(self, size: int) -> bytes:
        whole = bytearray(size)
        view = memoryview(whole)
        while view:
            got = self.socket.recv_into(view)
            if not got:
                raise ConnectionResetError("the broker closed the connection")
            view = view[got:]
        return bytes(whole)

    def _drop(self, size: int) -> None:
        scratch = memoryview(bytearray(_RECEIVE_BYTES))
        while size:
            got = self.socket.recv_into(scratch[: min(size, _RECEIVE_BYTES)])
            if not got:
                raise ConnectionResetError("the broker closed the connection")
            size -= got


class Attack(ABC):
    """One scenario. It is bounded in time and size by itself."""

    name: str
    #: One line: what it sends.
    sends: str
    bound: Bound = Bound()
    #: Of the broker.
    properties: Mapping[str, str] = {}
    #: The soft and the hard limit of the broker's open files; None for those of the process that starts it.
    open_files: tuple[int, int] | None = None
    #: After which it is ended, and the broker with it.
    seconds_max: float = 120.0

    def prepare(self, victim: Victim) -> None:  # noqa: B027 - most need nothing
        """What has to be there before: topics, frames. Nobody measures meanwhile."""

    @abstractmethod
    def run(self, victim: Victim) -> Outcome:
        """The attack. A broker that ends a connection raises OSError here, and that is what it answered."""


@dataclass
class Frames(Attack):
    """Requests, one after the other on one connection."""

    name: str
    sends: str
    #: Called before the attack: what is long takes long to make.
    make: Callable[[], Sequence[bytes]]
    bound: Bound = Bound()
    #: Topics that are there: name -> partitions.
    topics: Mapping[str, int] = field(default_factory=dict)
    #: Given the broker's port: what else is to be there.
    before: Callable[[int], object] | None = None

    def prepare(self, victim: Victim) -> None:
        if self.before is not None:
            self.before(victim.port)
        for name, partitions in self.topics.items():
            create_topic(victim.port, name, partitions)
        self._made = self.make()

    def run(self, victim: Victim) -> Outcome:
        outcome = Outcome()
        with victim.connect() as attacker:
            for frame in self._made:
                outcome.sent += len(frame)
                outcome.answers.append(attacker.ask(frame))
        return outcome


def error_codes(message: Structure) -> Iterator[int]:
    """Every error code in a message, at whatever depth."""
    for slot in type(message).__slots__:
        value = getattr(message, slot)
        if slot == "error_code":
            yield value
        elif isinstance(value, Structure):
            yield from error_codes(value)
        elif isinstance(value, list) and value and isinstance(value[0], Structure):
            for one in value:
                yield from error_codes(one)


def in_words(outcome: Outcome) -> str:
    """What the broker answered, for the table."""
    counted: Counter[str] = Counter()
    left = KEPT_BYTES_MAX
    for answer in outcome.answers:
        left -= answer.size
        if left >= 0:
            counted += answer.codes()
    parts = [outcome.said] if outcome.said else []
    if outcome.answers:
        parts.append(size_in_words(sum(answer.size for answer in outcome.answers)))
    # What is most frequent says what happened; there are some hundred codes.
    parts += [f"{count:,} x {name}" for name, count in counted.most_common(2)]
    return ", ".join(parts)


def size_in_words(size: int) -> str:
    return f"{size / MB:,.1f} MB" if size >= MB / 10 else f"{size:,} bytes"


def _name(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
