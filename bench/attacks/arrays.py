"""Every API with each of its arrays as long as a frame of ten megabytes can carry, one after the other."""

from __future__ import annotations

import struct

from bench.attacks.attack import MB, Attack, Bound, Outcome, Victim
from bench.attacks.groups import prepare_group
from bench.attacks.long_frames import (
    KNOWN_PARTITIONS,
    KNOWN_TEXTS,
    Filling,
    LongArray,
    frame_that_is_taken,
    long_arrays,
)
from bench.wire import create_topic
from ottla.handlers.routes import advertised
from ottla.protocol.apis import api

FRAME_BYTES = 10 * MB
#: Those that can be made in a moment, and are the longest.
FILLINGS = (Filling.EMPTY, Filling.KNOWN)
#: Stands behind each request: a Produce with acks 0 has no answer of its own. ApiVersions 0, with this correlation id.
BEHIND_ID = 2
BEHIND = struct.pack(">ihhih", 10, 18, 0, BEHIND_ID, -1)


class LongArrays(Attack):
    """One API's."""

    properties = {"auto.create.topics.enable": "false"}
    bound = Bound()

    def __init__(self, arrays: list[LongArray]) -> None:
        self._arrays = arrays
        self.name = f"long-{api(arrays[0].key).name}"
        self.sends = f"{len(arrays) * len(FILLINGS)} requests of {FRAME_BYTES / MB:g} MB, each of one long array"

    def prepare(self, victim: Victim) -> None:
        create_topic(victim.port, KNOWN_TEXTS[0], KNOWN_PARTITIONS)
        prepare_group(victim.port)
        self._frames = self._made()

    def _made(self) -> list[bytes]:
        return [array.frame(filling, bytes_max=FRAME_BYTES) for array in self._arrays for filling in FILLINGS]

    def run(self, victim: Victim) -> Outcome:
        outcome = Outcome()
        refused = unanswered = 0
        for frame in self._frames:
            with victim.connect() as attacker:
                # One at a time is in memory, and the connection of one that is refused is closed.
                outcome.sent = len(frame)
                try:
                    attacker.send(frame + BEHIND)
                    answer = attacker.answer_to(frame)
                except ConnectionError:
                    refused += 1
                    continue
                if answer.raw[:4] == BEHIND_ID.to_bytes(4, "big"):
                    unanswered += 1
                else:
                    outcome.answers.append(answer)
        said = [f"{count} {what}" for count, what in ((refused, "refused"), (unanswered, "without an answer")) if count]
        outcome.said = ", ".join(said)
        self._frames = []
        return outcome


class TakenArrays(LongArrays):
    """The same, as long as a decoder takes them: those of ten megabytes are refused before anything is made of them."""

    #: 64 MB decoded, as much again twice for what a handler and the controller make of it, and the answer.
    bound = Bound(memory_mb=224)

    def __init__(self, arrays: list[LongArray]) -> None:
        super().__init__(arrays)
        self.name = f"taken-{api(arrays[0].key).name}"
        self.sends = f"{len(arrays) * len(FILLINGS)} requests, each of one array that is as long as is taken"

    def _made(self) -> list[bytes]:
        return [
            frame_that_is_taken(array, filling, bytes_max=FRAME_BYTES) for array in self._arrays for filling in FILLINGS
        ]


def attacks() -> list[Attack]:
    found = [arrays for key, _, highest in advertised() if (arrays := long_arrays(key, highest))]
    return [*map(LongArrays, found), *map(TakenArrays, found)]
