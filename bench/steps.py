"""``python -m bench.steps [NAME...]``: the longest steps that requests with long arrays take in the broker's loop.

A broker in this process is asked each API with each of its arrays as long as a frame of ``--bytes`` can carry. A step
is what nothing interrupts: from one ``yield`` of a handler to the next. Its time is that of the thread, so that a busy
machine changes little of it. A step that grows with the array is what to look for: with twice the bytes it takes twice
as long. NAME is a part of what a line has in front: ``CreateTopics.7.topics``.
"""

from __future__ import annotations

import argparse
import socket
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from bench.attacks.long_frames import KNOWN_PARTITIONS, KNOWN_TEXTS, Filling, LongArray, long_arrays
from bench.attacks.probe import QUESTION
from bench.groups import TOPIC as COMMITTED_TOPIC
from bench.groups import wait_for_coordinator
from bench.wire import create_topic
from ottla import testing
from ottla.handlers.calls.loading import load_all
from ottla.handlers.calls.turns import Turns
from ottla.handlers.routes import advertised

#: Names that are not there are looked for, and no topics are made of them.
PROPERTIES = {"auto.create.topics.enable": "false"}
#: Of each request: what was in its way by chance is not there twice.
TIMES = 2
#: Places in the code, from the innermost outwards.
FRAMES_SHOWN = 4
ANSWER_SECONDS = 60


class Step(NamedTuple):
    ms: float
    began: str
    ended: str


class Watch:
    """Notes the steps that take more than `ms_min`."""

    def __init__(self, ms_min: float) -> None:
        self._ms_min = ms_min
        self.found: list[Step] = []

    @contextmanager
    def at_work(self) -> Iterator[None]:
        plain: Callable[..., Any] = Turns.slice

        def watched(turns: Turns, steps: Any, ends_ms: int | None = None) -> Any:
            return plain(turns, self._each(steps), ends_ms)

        Turns.slice = watched  # type: ignore[assignment, method-assign]
        try:
            yield
        finally:
            Turns.slice = plain  # type: ignore[method-assign]

    def _each(self, steps: Any) -> Generator[Any, None, Any]:
        while True:
            began, since = _place(steps), time.thread_time()
            try:
                pause = next(steps)
            except StopIteration as end:
                self._note(since, began, "its end")
                return end.value
            self._note(since, began, steps)
            yield pause

    def _note(self, since: float, began: str, ended: Any) -> None:
        took_ms = (time.thread_time() - since) * 1000
        if took_ms > self._ms_min:
            self.found.append(Step(took_ms, began, ended if isinstance(ended, str) else _place(ended)))


def _place(steps: Any) -> str:
    """Where a generator stands, and those that it waits for."""
    places = []
    while (frame := getattr(steps, "gi_frame", None)) is not None:
        places.append(f"{steps.gi_code.co_qualname}:{frame.f_lineno}")
        # The dispatcher drives a handler by hand while there is room for its answer.
        steps = steps.gi_yieldfrom or frame.f_locals.get("steps")
    return " < ".join(reversed(places[-FRAMES_SHOWN:]))


def longest_steps(port: int, watch: Watch, array: LongArray, filling: Filling, size: int) -> list[Step]:
    frame = array.frame(filling, bytes_max=size)
    for _ in range(TIMES):
        watch.found.clear()
        # Its connection may be closed, or it has no answer of its own.
        with socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS) as client, suppress(OSError):
            client.sendall(frame + QUESTION)
            length = int.from_bytes(client.recv(4, socket.MSG_WAITALL), "big")
            client.recv(length, socket.MSG_WAITALL)
        time.sleep(0.02)  # for what is freed behind the answer
        if not watch.found:
            break
    return sorted(watch.found, reverse=True)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.steps", description=(__doc__ or "").partition("\n\n")[2])
    parser.add_argument("names", nargs="*", metavar="NAME", help="all where none is given")
    parser.add_argument("--bytes", type=int, default=600_000, help="of each frame (default: 600000)")
    parser.add_argument("--ms", type=float, default=2.0, help="what a step may take unseen (default: 2)")
    options = parser.parse_args(arguments)
    load_all()
    watch = Watch(options.ms)
    with watch.at_work(), testing.broker(properties=PROPERTIES) as broker:
        port = int(broker.bootstrap.rpartition(":")[2])
        create_topic(port, KNOWN_TEXTS[0], KNOWN_PARTITIONS)
        create_topic(port, COMMITTED_TOPIC)
        wait_for_coordinator(port, KNOWN_TEXTS[3])
        for array in (array for key, _, highest in advertised() for array in long_arrays(key, highest)):
            if options.names and not any(name in array.id for name in options.names):
                continue
            for filling in Filling:
                for step in longest_steps(port, watch, array, filling, options.bytes)[:2]:
                    where = f"from {step.began or 'its beginning'} to {step.ended}"
                    print(f"{array.id} {filling.value}: {step.ms:.1f} ms {where}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
