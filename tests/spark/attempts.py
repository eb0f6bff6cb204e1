"""What Spark's event logs say of work that was done more than once, and rounds of kills that go on until some was.

A driver that is killed has written out what was said up to its last job's begin, or its last stage's end.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

#: Rounds in which kills may find nobody at work, after those that were wanted.
_MORE_ROUNDS_MAX: Final = 10
_BATCH: Final = "streaming.sql.batchId"
_QUERY: Final = "sql.streaming.queryId"


class Attempts(NamedTuple):
    #: Copies of tasks that were slower than others.
    speculative: int
    #: Tasks that were begun again since an attempt had failed.
    tasks: int
    #: Micro-batches that a driver had begun when it died, and the next one began again.
    batches: int

    @property
    def hits(self) -> int:
        """Kills that found something at work, each of which had it done again."""
        return self.tasks + self.batches


def attempts(events: Path) -> Attempts:
    """Of all drivers with these events, each of which has a folder."""
    speculative = tasks = 0
    drivers: defaultdict[tuple[str, str], set[Path]] = defaultdict(set)
    for driver in events.iterdir():
        for event in _of_one_driver(driver):
            match event["Event"]:
                case "SparkListenerTaskStart":
                    task = event["Task Info"]
                    speculative += task["Speculative"]
                    tasks += not task["Speculative"] and (task["Attempt"] > 0 or event["Stage Attempt ID"] > 0)
                case "SparkListenerJobStart" if _BATCH in event.get("Properties", {}):
                    drivers[event["Properties"][_QUERY], event["Properties"][_BATCH]].add(driver)
    return Attempts(speculative, tasks, sum(len(those) - 1 for those in drivers.values()))


def kill_rounds(wanted: int, events: Path) -> Iterator[int]:
    """Numbers of rounds: so many, and more where nothing of what was killed had been at work.

    What the last kill has hit is known when the next round has gone on behind it.
    """
    for number in range(wanted + _MORE_ROUNDS_MAX):
        if number >= wanted and attempts(events).hits:
            return
        yield number


def check_attempts(events: Path, kills: int) -> None:
    """Says how many kills have hit anything. Some have, and some task had a copy."""
    found = attempts(events)
    print(f"{kills} kills: {found.batches} micro-batches and {found.tasks} tasks were begun again, ", end="")
    print(f"{max(0, kills - found.hits)} kills hit nothing at work; {found.speculative} tasks had a copy")
    assert found.hits, "no kill has hit anything at work"
    assert found.speculative, "no task had a copy"


def _of_one_driver(driver: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(one for one in driver.rglob("*") if one.is_file()):
        for line in file.read_text(errors="replace").splitlines():
            # A driver that dies may leave half a line.
            if line.startswith("{") and line.endswith("}"):
                event = json.loads(line)
                if "Event" in event:
                    yield event
