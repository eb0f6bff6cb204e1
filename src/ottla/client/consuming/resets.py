"""Where reading begins that nobody has sought: `auto.offset.reset`, looked up with ListOffsets."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Final

from ottla.client.consuming.assignment import AssignedPartition
from ottla.client.errors import ClientClosed, KafkaError, SettingsError, SomeFailed
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.listed_offset import EARLIEST, LATEST
from ottla.client.wire.offsets import list_offsets
from ottla.model import TopicPartition
from ottla.ports.clock import Clock

_DURATION: Final = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", re.IGNORECASE)


class Resets:
    def __init__(self, policy: str, cluster: Cluster, clock: Clock, backoff: Backoff, isolation_level: int) -> None:
        self._back_ms = None
        self._fixed: int | None = None
        named = policy.strip().lower()
        if named.startswith("by_duration:"):
            self._back_ms = duration_ms(policy.strip()[len("by_duration:") :])
        elif named in {"earliest", "latest", "none"}:
            self._fixed = {"earliest": EARLIEST, "latest": LATEST}.get(named)
        else:
            from ottla.client.other_names import OFFSET_RESETS

            hint = f": it is called {OFFSET_RESETS[named]} here" if named in OFFSET_RESETS else ""
            raise SettingsError(
                f"auto.offset.reset must be earliest, latest, none or by_duration:PnDTnHnMnS, not {policy!r}{hint}"
            )
        self._cluster = cluster
        self._clock = clock
        self._backoff = backoff
        self._isolation_level = isolation_level
        self._task: asyncio.Task[None] | None = None

    def strategy(self) -> int | None:
        """What ListOffsets is asked where nobody sought; None where that is an error."""
        return self._fixed if self._back_ms is None else max(0, self._clock.wall_ms() - self._back_ms)

    def begin(self, assigned: Mapping[TopicPartition, AssignedPartition], then: Callable[[], None]) -> None:
        """Looks up all positions that are wanted and whose buffers are empty; one look-up at a time."""
        if self._task is not None:
            return
        wanted = [
            one for one in assigned.values() if one.reset is not None and not one.has_records and one.error is None
        ]
        if wanted:
            self._task = asyncio.get_running_loop().create_task(self._look_up(wanted, then))

    async def _look_up(self, wanted: list[AssignedPartition], then: Callable[[], None]) -> None:
        generations = {one.tp: one.generation for one in wanted}
        asked = {one.tp: one.reset for one in wanted if one.reset is not None}
        try:
            found = await list_offsets(self._cluster, asked, isolation_level=self._isolation_level)
            missing = [tp for tp, one in found.items() if one.offset < 0]
            if missing:  # nothing is as young as that: what comes next is
                found |= await list_offsets(
                    self._cluster, dict.fromkeys(missing, LATEST), isolation_level=self._isolation_level
                )
            for one in wanted:
                if one.generation == generations[one.tp] and one.reset is not None:
                    one.failures = 0
                    one.seek(found[one.tp].offset)
        except ClientClosed:
            return
        except KafkaError as error:
            errors = error.errors if isinstance(error, SomeFailed) else {}
            failures = 0
            for one in wanted:
                if one.generation != generations[one.tp]:
                    continue
                own = errors.get(one.tp, error if not errors else None)
                if own is not None and not own.retriable:
                    one.error = own
                one.failures += 1
                failures = max(failures, one.failures)
            await asyncio.sleep(self._backoff.pause_ms(failures) / 1000)
        finally:
            self._task = None
            then()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def duration_ms(text: str) -> int:
    """An ISO 8601 duration of days and below, as Java writes it: PT1H30M."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        raise SettingsError(f"auto.offset.reset: {text!r} is no duration like P1DT2H3M4S")
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
