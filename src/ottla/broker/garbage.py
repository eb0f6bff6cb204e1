"""When the collector of garbage looks through everything: while nobody asks for anything.

What is used no more goes at once, by its count of references; the collector finds circles only. It looks through new
objects often, which takes little. To look through all takes 0.3 s where there are twenty thousand partitions, and
stops all work for so long. So it does that in a moment of rest, and what it leaves is kept from it from then on. A
broker that never rests does without: what a request makes stands in no circle (`tests/broker/test_garbage.py`).
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Final

#: New objects before the new ones are looked through. A round of fifty requests makes more than Python's default lets
#: live, and all of them go at its end: to look through them each time costs every request a twentieth of its time.
YOUNG_MAX: Final = 10_000
#: Looks through the new ones before those that outlived one are looked through, and of these before all are: never.
_LOOKS: Final = 20
_NEVER: Final = 1 << 30
#: How often to see whether nobody asks for anything, and what counts as rest.
LOOK_S: Final = 30.0
REST_MS: Final = 1_000


def settle_in() -> None:
    """The broker has started: what is here now stays to the end."""
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, _LOOKS, _NEVER)


async def collect_at_rest(resting_ms: Callable[[], int]) -> None:
    while True:
        await asyncio.sleep(LOOK_S)
        if resting_ms() >= REST_MS:
            gc.collect()
            gc.freeze()
