"""What the collector of garbage looks through, and when.

What is used no more goes at once, by its count of references; the collector finds circles only. It looks through new
objects often, which takes little, and through those that outlived that once more: 60 ns each, some milliseconds. To
look through all takes 0.3 s where there are twenty thousand partitions, and stops all work for so long. So in a moment
of rest, while nobody asks for anything, what is still new is looked through, and all that is alive is kept from the
collector from then on. What long work has kept from it (`steps.keep_from_collector`) stays so too.

Circles that broke up among what is kept are garbage that nobody finds. What a request makes stands in no circle
(`tests/broker/test_garbage.py`), so there are few; where much more is alive than there was, all is looked through at
rest after all. A broker that never rests does without.
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable
from typing import Final

from ottla.steps import NEVER

#: New objects before the new ones are looked through. A round of fifty requests makes more than Python's default lets
#: live, and all of them go at its end: to look through them each time costs every request a twentieth of its time.
YOUNG_MAX: Final = 10_000
#: Looks through the new objects before those that outlived one such look are looked through too, 30,000 at the most:
#: of 100,000 transactions that are opened one after the other, 3 ms at once. With four looks it was 7 ms, and not less
#: in all, as each object is looked through twice whatever this is. What outlives that as well is for a moment of rest:
#: no number of looks (`NEVER`) has the collector go through all.
_LOOKS: Final = 1
#: Looked through at rest: what is new, and what has outlived one look.
_YOUNG: Final = 1
#: How often to see whether nobody asks for anything, and what counts as rest.
LOOK_S: Final = 30.0
REST_MS: Final = 1_000
#: Blocks of memory more than there were when all was looked through: a half, and this at the least.
GROWTH_MIN: Final = 200_000


def settle_in() -> None:
    """The broker has started: what is here now stays to the end."""
    gc.freeze()
    gc.set_threshold(YOUNG_MAX, _LOOKS, NEVER)


async def collect_at_rest(resting_ms: Callable[[], int]) -> None:
    # Objects that are kept could be counted only one by one.
    known = sys.getallocatedblocks()
    while True:
        await asyncio.sleep(LOOK_S)
        if resting_ms() < REST_MS:
            continue
        if sys.getallocatedblocks() > known + max(known // 2, GROWTH_MIN):
            gc.unfreeze()
            gc.collect()
            known = sys.getallocatedblocks()
        else:
            gc.collect(_YOUNG)
        gc.freeze()
