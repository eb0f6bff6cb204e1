"""Every API with each of its arrays as long as a frame of ten megabytes can carry, one after the other."""

from __future__ import annotations

from bench.attacks.attack import MB, Attack, Bound, Outcome, Victim
from bench.attacks.groups import prepare_group
from bench.attacks.long_frames import KNOWN_PARTITIONS, KNOWN_TEXTS, Filling, LongArray, long_arrays
from bench.wire import create_topic
from ottla.handlers.routes import advertised
from ottla.protocol.apis import api

FRAME_BYTES = 10 * MB
#: Those that can be made in a moment, and are the longest.
FILLINGS = (Filling.EMPTY, Filling.KNOWN)


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
        self._frames = [array.frame(filling, bytes_max=FRAME_BYTES) for array in self._arrays for filling in FILLINGS]

    def run(self, victim: Victim) -> Outcome:
        outcome = Outcome()
        refused = 0
        for frame in self._frames:
            with victim.connect() as attacker:
                # One at a time is in memory, and the connection of one that is refused is closed.
                outcome.sent = len(frame)
                try:
                    outcome.answers.append(attacker.ask(frame))
                except ConnectionError:
                    refused += 1
        outcome.said = f"{refused} refused" if refused else ""
        self._frames = []
        return outcome


def attacks() -> list[Attack]:
    found = (long_arrays(key, highest) for key, _, highest in advertised())
    return [LongArrays(arrays) for arrays in found if arrays]
