"""The leaders' questions about their in-sync sets, on their way to the controller and back.

One request is under way at a time, with whatever has been asked since the last one. Each partition has its own answer.
A request whose end nobody knows is sent again after a pause, with the same questions: a change that was made already is
answered as done.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from ottla import logs
from ottla.controller.interface import Controller, IsrChange, IsrResult
from ottla.metadata import MetadataCache, MetadataUpdate
from ottla.model import BrokerId, Epoch, ErrorCode, TopicId
from ottla.ports import Clock
from ottla.replication.isr_changes import REFUSED_PAUSE_MS, IsrAsk, IsrChanges
from ottla.replication.replicas import Replicas
from ottla.steps import Steps, in_turns, is_stray

log_event = logs.logger("server")

#: What one request carries: the controller writes a state of each into the tree.
CHANGES_A_REQUEST_MAX: Final = 1_000
#: Between two requests of which the first came to nothing, twice as long each time, as Kafka's first pause is.
_AGAIN_MS: Final = 50
_AGAIN_MS_MAX: Final = 1_000


class IsrRequests:
    def __init__(
        self, broker_id: BrokerId, replicas: Replicas, controller: Controller, metadata: MetadataCache, clock: Clock
    ) -> None:
        self._broker_id = broker_id
        self._replicas = replicas
        self._changes: IsrChanges = replicas.isr_changes
        self._controller = controller
        self._metadata = metadata
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        #: Set where those who were refused are looked at again.
        self._look_later: asyncio.TimerHandle | None = None
        self._closed = False
        self._changes.on_ask = self._soon
        self._changes.is_eligible = self._is_eligible
        metadata.listen(self._heard)

    def close(self) -> None:
        self._closed = True
        if self._looking is not None:
            self._looking.cancel()
        if self._look_later is not None:
            self._look_later.cancel()
        if self._task is not None:
            self._task.cancel()

    def _is_eligible(self, replica: int, broker_epoch: int) -> bool:
        """Whether the controller would take it: it lives, under the registration that it fetches by (KIP-903).

        UpdateMetadata does not say registrations: there the controller decides, as in Kafka's ZooKeeper mode.
        """
        broker = self._metadata.brokers.get(BrokerId(replica))
        return broker is not None and (-1 in {broker_epoch, broker.epoch} or broker_epoch == broker.epoch)

    # A follower that has all that there is does not name its partition again until there is more: where it could not
    # join at that fetch, nobody would ask for it before the next look at all followers, half of their time later.

    def _heard(self, update: MetadataUpdate) -> None:
        if update.brokers is not None:
            self._look()

    def _look(self) -> None:
        self._look_later = None
        if self._closed:
            return
        if self._looking is not None:
            self._look_later = asyncio.get_running_loop().call_later(_AGAIN_MS / 1000, self._look)
            return
        steps = in_turns(self._changes.looking_again(self._clock.monotonic_ms), self._clock.monotonic_ms)
        self._looking = asyncio.get_running_loop().create_task(steps, name="a look at who may join in-sync sets")
        self._looking.add_done_callback(self._looked)

    def _looked(self, task: asyncio.Task[None]) -> None:
        self._looking = None
        if not task.cancelled() and task.exception() is not None:
            error = "".join(traceback.format_exception(task.exception()))
            log_event.error("followers that may join in-sync sets could not be looked at", error=error)

    def _soon(self, pause_ms: int = 0) -> None:
        if self._task is None and not self._closed:
            self._task = asyncio.get_running_loop().create_task(self._run(pause_ms), name="changes of in-sync replicas")
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if self._closed or (task.cancelled() and task.cancelling()):
            return
        if not task.cancelled() and task.exception() is not None:
            error = "".join(traceback.format_exception(task.exception()))
            log_event.error("changes of in-sync replicas failed, and are asked again", error=error)
            self._soon(_AGAIN_MS_MAX)  # a fault that comes with every answer would leave no time for anything else
        elif self._changes.has_asks:
            self._soon()

    async def _run(self, pause_ms: int) -> None:
        """Until nothing is left to ask."""
        if pause_ms:
            await asyncio.sleep(pause_ms / 1000)
        pause_ms = _AGAIN_MS
        while asks := self._changes.take(CHANGES_A_REQUEST_MAX):
            if await self._ask(asks):
                pause_ms = _AGAIN_MS
                continue
            await asyncio.sleep(pause_ms / 1000)
            pause_ms = min(2 * pause_ms, _AGAIN_MS_MAX)

    async def _ask(self, asks: Sequence[IsrAsk]) -> bool:
        """Whether every partition was answered."""
        results: dict[object, IsrResult] = {}
        try:
            changes = [self._change(ask) for ask in asks]
            results = {each.tp: each for each in await self._controller.alter_isr(self._broker_id, changes)}
        except (Exception, asyncio.CancelledError) as fault:
            if isinstance(fault, asyncio.CancelledError) and not is_stray(fault):
                raise
            log_event.warning_limited("the controller could not be asked for in-sync replicas", reason=repr(fault))
        await in_turns(self._settled(asks, results), self._clock.monotonic_ms)
        # No request may come whose round would do it.
        self._replicas.waiters.settle_outside(self._clock.monotonic_ms())
        return not any(self._changes.is_waiting(ask) for ask in asks)

    def _settled(self, asks: Sequence[IsrAsk], results: Mapping[object, IsrResult]) -> Steps[None]:
        left = deque(asks)
        try:
            while left:
                ask = left.popleft()
                result = results.get(ask.tp)
                if result is None:
                    self._changes.unknown(ask)
                else:
                    self._changes.answered(ask, result.error, result.state, self._clock.monotonic_ms())
                    if result.error is not ErrorCode.NONE and self._look_later is None:
                        pause_s = (REFUSED_PAUSE_MS + _AGAIN_MS) / 1000
                        self._look_later = asyncio.get_running_loop().call_later(pause_s, self._look)
                yield
        finally:
            # A fault of ours in one of them is no answer to the others.
            for ask in left:
                self._changes.unknown(ask)
            self._changes.news.say_changes()

    def _change(self, ask: IsrAsk) -> IsrChange:
        isr = sorted(ask.isr)
        return IsrChange(
            tp=ask.tp,
            leader_epoch=Epoch(ask.leader_epoch),
            partition_epoch=ask.partition_epoch,
            isr=tuple(BrokerId(each) for each in isr),
            isr_epochs=tuple(self._epoch_of(ask, each) for each in isr),
            topic_id=TopicId(ask.leader.log.topic_id),
        )

    def _epoch_of(self, ask: IsrAsk, replica: int) -> int:
        """The registration that a member has shown itself under; of this broker, its own. -1: nobody has said."""
        follower = ask.leader.isr.followers.get(replica)
        if follower is not None:
            return follower.broker_epoch
        broker = self._metadata.brokers.get(BrokerId(replica))
        return -1 if broker is None else broker.epoch
