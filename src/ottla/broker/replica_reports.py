"""What becomes of this broker's replicas, reported to the controller: in order, and until it has heard.

Where a report were lost, clients would be sent for ever to a leader whose directory has failed, or replicas that there
is room for would stay offline until a restart.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Sequence
from typing import Final

from ottla import logs
from ottla.controller.interface import Controller
from ottla.model import BrokerId, ErrorCode, TopicPartition
from ottla.steps import is_stray

log_event = logs.logger("server")

#: Between two tries, twice as long each time.
_AGAIN_S: Final = 1.0
_AGAIN_S_MAX: Final = 60.0

#: Partitions, and whether they were made; else they have failed.
_Report = tuple[dict[TopicPartition, None], bool]


class ReplicaReports:
    """Implements `ReplicaOwner`."""

    def __init__(self, controller: Controller, broker_id: BrokerId, give_up: Callable[[str], None]) -> None:
        self._controller = controller
        self._broker_id = broker_id
        self._give_up = give_up
        #: In their order; neighbours of one kind are one report, so that there is one more for each directory at most.
        self._reports: list[_Report] = []
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    def replicas_failed(self, partitions: Sequence[TopicPartition]) -> None:
        self._report(partitions, made=False)

    def replicas_made(self, partitions: Sequence[TopicPartition]) -> None:
        self._report(partitions, made=True)

    def no_directory_left(self, reason: str) -> None:
        self._give_up(reason)

    def close(self) -> None:
        self._closed = True
        if self._task is not None:
            self._task.cancel()

    def _report(self, partitions: Sequence[TopicPartition], *, made: bool) -> None:
        if self._closed:
            return
        if not self._reports or self._reports[-1][1] != made:
            self._reports.append(({}, made))
        self._reports[-1][0].update(dict.fromkeys(partitions))
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        failures = 0
        try:
            while self._reports:
                partitions, made = self._reports.pop(0)
                why = await self._try(list(partitions), made=made)
                if why is None:
                    failures = 0
                    continue
                self._put_back(partitions, made=made)
                pause_s = min(_AGAIN_S * 2 ** min(failures, 16), _AGAIN_S_MAX)
                failures += 1
                log_event.error(
                    "the controller did not hear of replicas, and hears of them again",
                    made=made,
                    count=len(partitions),
                    reason=why,
                    again_s=pause_s,
                )
                await asyncio.sleep(pause_s)
        finally:
            self._task = None

    def _put_back(self, partitions: dict[TopicPartition, None], *, made: bool) -> None:
        if self._reports and self._reports[0][1] == made:
            partitions.update(self._reports.pop(0)[0])
        self._reports.insert(0, (partitions, made))

    async def _try(self, partitions: list[TopicPartition], *, made: bool) -> str | None:
        """Why the controller does not know of it; None where it does."""
        controller = self._controller
        report = controller.replicas_recovered if made else controller.replicas_failed
        try:
            error = await report(self._broker_id, partitions)
        except asyncio.CancelledError as fault:
            if not is_stray(fault):
                raise
            return repr(fault)
        except Exception as fault:
            return "".join(traceback.format_exception(fault))
        return None if error == ErrorCode.NONE else error.name
