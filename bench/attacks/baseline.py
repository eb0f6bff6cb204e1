"""Nobody attacks: what the probe's figures are on this machine, now, whatever else runs on it."""

from __future__ import annotations

import threading
import time

from bench.attacks.attack import Attack, Bound, Outcome, Victim
from bench.frames import batch, produce
from bench.wire import create_topic

SECONDS = 5.0
PRODUCERS = 8


class Idle(Attack):
    name = "idle"
    sends = "nothing for five seconds"
    bound = Bound(stall_ms=None, memory_mb=None)

    def run(self, victim: Victim) -> Outcome:
        time.sleep(SECONDS)
        return Outcome()


class Honest(Attack):
    name = "honest"
    sends = f"{PRODUCERS} producers, 1 kB at a time, for five seconds"
    bound = Bound(stall_ms=None, memory_mb=None)

    def prepare(self, victim: Victim) -> None:
        create_topic(victim.port, "honest")

    def run(self, victim: Victim) -> Outcome:
        frame = produce(batch(8), topic="honest").request
        counts = [0] * PRODUCERS
        ends = time.monotonic() + SECONDS

        def work(number: int) -> None:
            with victim.connect() as client:
                while time.monotonic() < ends:
                    client.ask(frame)
                    counts[number] += 1

        threads = [threading.Thread(target=work, args=(number,)) for number in range(PRODUCERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return Outcome(said=f"{sum(counts) / SECONDS:,.0f} produces a second", sent=sum(counts) * len(frame))


def attacks() -> list[Attack]:
    return [Idle(), Honest()]
