"""The cleaner offers its core to others, and goes on where these keep it for long."""

from __future__ import annotations

import subprocess
import sys

#: In a process of its own, whose SIGALRM nobody else uses: all offers take five times as long as a slice.
BUSY_MACHINE = """
import os, time
from ottla.storage.cleaner.process import in_short_slices

depth = deepest = offers = 0

def others_have_the_core():
    global depth, deepest, offers
    depth, offers = depth + 1, offers + 1
    deepest = max(deepest, depth)
    until = time.monotonic() + 0.002
    while time.monotonic() < until:
        pass
    depth -= 1

os.sched_yield = others_have_the_core
until = time.monotonic() + 0.5
with in_short_slices():
    while time.monotonic() < until or offers < 3:
        pass
offers_until_then = offers
time.sleep(0.05)
print(deepest, offers - offers_until_then)
"""


def test_an_offer_that_takes_long_is_not_made_within_itself() -> None:
    """It ended passes with a RecursionError on a machine that had no core left."""
    ran = subprocess.run([sys.executable, "-c", BUSY_MACHINE], capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    deepest, later = map(int, ran.stdout.split())
    assert deepest <= 2  # the next alarm may come while the last offer returns
    assert later == 0
