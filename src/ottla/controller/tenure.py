"""One tenure of a controller: from the claim of an epoch to the resignation. One queue of events, and one announcer.

A request is a turn, which decides and writes, and often something that goes on behind it: topics are made, or deleted,
by brokers. The request is answered when that has ended too, and meanwhile others have their turns. What cannot be known
after a failed write is read again. A tenure that has ended announces nothing more, and answers NOT_CONTROLLER to
what it has not begun: the next one, here or elsewhere, goes on from the tree alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar, cast

from ottla.controller import identity
from ottla.controller.announcing.announcer import Announcer
from ottla.controller.core import ControllerCore, log
from ottla.controller.deciding.context import Memory
from ottla.controller.deciding.refusal import Refusal
from ottla.controller.deciding.rules import ControllerSettings
from ottla.controller.electing.controllership import ControllerClaim
from ottla.controller.events import EventQueue
from ottla.controller.loading import OnDamage, leave_alone
from ottla.controller.numbers import ControllerNumbers
from ottla.controller.turns.answers import AnswerTurns
from ottla.controller.turns.brokers import BrokerTurns, Receivers
from ottla.controller.turns.creating import CreationTurns
from ottla.controller.turns.deleting import DeletionTurns
from ottla.controller.turns.features import FeatureTurns
from ottla.controller.turns.leaders import LeaderTurns
from ottla.controller.turns.overrides import OverrideTurns
from ottla.controller.turns.reassigning import ReassignmentTurns
from ottla.controller.turns.replicas import ReplicaTurns
from ottla.controller.turns.tree_changes import TreeTurns
from ottla.controller.watching import TreeWatcher
from ottla.controller.writing import ControllerMoved, ControllerWrites
from ottla.coordination.errors import ConnectionLoss, CoordinationError, SessionClosed, SessionExpired, WriteRefused
from ottla.coordination.interface import Coordination
from ottla.model import BrokerId, ErrorCode
from ottla.ports.clock import Clock
from ottla.ports.entropy import Entropy

T = TypeVar("T")

#: How soon a turn is tried again that answers of brokers, or their coming and going, asked for.
_AGAIN_S: Final = 5.0
#: Between the claim and the first look at who leads what: Kafka's.
_FIRST_REBALANCE_S: Final = 5.0
_GOES_ON: Final = "This broker is no longer the controller: the change goes on under the next one."


class Tenure:
    def __init__(
        self,
        coordination: Coordination,
        clock: Clock,
        entropy: Entropy,
        receivers: Receivers,
        settings: ControllerSettings,
        numbers: ControllerNumbers,
        memory: Memory,
        on_end: Callable[[], None],
    ) -> None:
        """`memory` is what this broker knows, as of before. `on_end` is called once, at its end."""
        self._settings = settings
        self._on_end = on_end
        self.announcer = Announcer(clock.monotonic_ms, self._answers_came, self._announcement_failed)
        core = self.core = ControllerCore(coordination, clock, entropy, self.announcer, settings, numbers)
        self.deletions = DeletionTurns(core)
        self.creations = CreationTurns(core, self.deletions)
        self.answers = AnswerTurns(core, self.creations, self.deletions)
        self.reassignments = ReassignmentTurns(core, self.creations, self.answers)
        self.brokers = BrokerTurns(
            core, self.creations, self.deletions, self.answers, self.reassignments, receivers, memory
        )
        self.replicas = ReplicaTurns(core, self.answers, self.reassignments)
        self.overrides = OverrideTurns(core, self.answers)
        self.leaders = LeaderTurns(core, self.answers)
        self.features = FeatureTurns(core)
        self.tree = TreeTurns(core, self.creations, self.deletions, self.answers, self.reassignments)
        self.events = EventQueue(clock.monotonic_ms, numbers.waits.took)
        self._watcher = TreeWatcher(
            self.brokers,
            self.tree,
            self.leaders,
            self.reassignments,
            self.answers,
            self._added,
            self.turn,
            self._try_again_later,
        )
        #: Why this broker is not the controller, or no more.
        self.lost: str | None = "This is not the controller."
        #: Whether it has taken over once. Behind a failed write it is the controller all the same: the next turn reads
        #: the tree anew, and a broker that asks for one must not be sent elsewhere.
        self._has_begun = False
        #: Whether an event stands in the queue that takes answers.
        self._takes_answers = False
        #: Until turns are tried again that nobody waits for, and until leaders are evened out.
        self._again: asyncio.TimerHandle | None = None
        self._rebalance: asyncio.TimerHandle | None = None
        #: Why a call to this broker itself has failed, and what is to be called with it: that ends a start.
        self._own_fault: BaseException | None = None
        self._own_failed = asyncio.Event()

    @property
    def active(self) -> bool:
        return self.lost is None and self._has_begun

    # Its life.

    async def begin(self, claim: ControllerClaim, on_damage: OnDamage) -> None:
        """Finishes what was begun before it, and announces everything. Raises CoordinationError, Refusal."""
        core, settings = self.core, self._settings
        core.context.cluster_id = await identity.cluster_id(core.coordination, core.entropy)
        core.context.controller_epoch = claim.epoch
        core.writes = ControllerWrites(core.coordination, claim.epoch_version)
        self.lost = None
        self.events.start()
        await self.events.run(lambda: self._take_over(settings.new_leader_epochs, on_damage))
        self._has_begun = True
        if not self.active:
            return  # its session has ended meanwhile
        self._watcher.begin()
        if settings.auto_leader_rebalance:
            self._rebalance = asyncio.get_running_loop().call_later(_FIRST_REBALANCE_S, self._rebalance_later)
        log.info("the controller is active", epoch=claim.epoch, topics=len(core.context.topics))

    async def confirmed(self) -> None:
        """Until this broker has taken on what it was announced. Raises what hinders it."""
        confirmed = self.announcer.when_confirmed([self._settings.broker_id])
        failed: asyncio.Future[object] = asyncio.ensure_future(self._own_failed.wait())
        either: list[asyncio.Future[object]] = [cast("asyncio.Future[object]", confirmed), failed]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        finally:
            failed.cancel()
        if self._own_fault is not None:
            fault = self._own_fault
            raise fault if isinstance(fault, Exception) else RuntimeError(repr(fault))
        # What it answered is seen to.
        await self.events.run(lambda: asyncio.sleep(0))

    def resign(self, why: str) -> None:
        """Another one is the controller, or will be: it goes on with what the tree says."""
        if self.lost is not None:
            return
        self.lost = why
        log.error("this broker is no longer the controller", why=why)
        self.announcer.drop()
        self._give_up()
        self._on_end()

    async def stop(self) -> None:
        """Lets the turn and the calls under way finish."""
        await self.events.stop()
        if self.lost is None:
            self.lost = "The controller is stopping."
            self._give_up()
        await self.announcer.close(self._settings.broker_id)

    def _give_up(self) -> None:
        """Answers all that wait behind their turns, and tries nothing again.

        What these asked for is in the tree, and the next controller goes on with it. Not NOT_CONTROLLER: that says that
        nothing was done, and a request that is made again then is refused, or done to a later topic of that name.
        """
        for timer in (self._again, self._rebalance):
            if timer is not None:
                timer.cancel()
        self._again = self._rebalance = None
        self._answer_all(_goes_on_elsewhere())

    def _answer_all(self, fault: Refusal) -> None:
        self.creations.give_up(fault)
        self.deletions.give_up(fault)

    # What comes by itself.

    def _answers_came(self) -> None:
        if not self._takes_answers:
            self._takes_answers = self._added(self._take_answers)

    async def _take_answers(self) -> None:
        self._takes_answers = False
        try:
            await self.turn(self.answers.take)
        except Refusal as refusal:
            # The callers of these would wait for ever. The next turn reads the tree, and announces it anew.
            self._answer_all(refusal)
            self._try_again_later()
        except BaseException:
            # Cancelled in its middle: the answers are taken, and come again when the next turn has announced it anew.
            self._try_again_later()
            raise
        finally:
            self.announcer.go_on()

    def _try_again_later(self) -> None:
        """What no request asked for is seen to without a request."""
        if self._again is None and self.lost is None:
            self._again = asyncio.get_running_loop().call_later(_AGAIN_S, self._try_again)

    def _try_again(self) -> None:
        self._again = None
        self._answers_came()
        self._watcher.try_again()
        if self.core.unreadable:
            self._added(self._look_at_unreadable)

    async def _look_at_unreadable(self) -> None:
        try:
            await self.turn(self.answers.look_at_unreadable)
        except Refusal as refusal:
            log.warning("states that could not be read were not looked at again", fault=refusal.message)

    def _rebalance_later(self) -> None:
        interval_s = self._settings.leader_imbalance_check_interval_s
        self._rebalance = asyncio.get_running_loop().call_later(interval_s, self._rebalance_later)
        self._added(self._rebalance_now)

    async def _rebalance_now(self) -> None:
        try:
            await self.turn(self.leaders.rebalance)
        except Refusal as refusal:
            log.warning("leaders were not given back", fault=refusal.message)

    def _announcement_failed(self, broker: BrokerId, fault: BaseException) -> None:
        if self._own_fault is None and broker == self._settings.broker_id:
            self._own_fault = fault
            self._own_failed.set()

    def _added(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Whether the event is in the queue: it is not where the controller stops."""
        if self.lost is not None:
            return False
        try:
            self.events.add(work)
        except Refusal:
            return False
        return True

    # Turns.

    def add(self, work: Callable[[], Awaitable[T]]) -> asyncio.Future[T]:
        """Raises Refusal where it is not put into the queue."""
        self._check_active()
        return self.events.add(work)

    async def run(self, work: Callable[[], Awaitable[T]], timeout_ms: int | None = None) -> T:
        """A turn, when it has come. Raises Refusal."""
        self._check_active()
        return await self.events.run(lambda: self.asked(work), timeout_ms)

    async def asked(self, work: Callable[[], Awaitable[T]]) -> T:
        """A turn that somebody waits for. To be called by the queue; raises Refusal.

        A process that stood still does not know that another controller was elected, and what it remembers is no
        answer. What it writes the tree refuses; what needs no write it would say of itself.
        """

        async def confirmed() -> T:
            if not self.core.coordination.may_live:
                await self.core.writes.confirm()
            return await work()

        return await self.turn(confirmed)

    async def turn(self, work: Callable[[], Awaitable[T]]) -> T:
        """To be called by the queue. Raises Refusal, and nothing else that is an Exception."""
        self._check_active()
        is_begun = False
        try:
            if self.core.stale:
                await self._take_over()
            self.core.writes.has_written = False
            is_begun = True
            return await work()
        except CoordinationError as error:
            self.core.stale = True
            raise self._refusal(error, has_written=is_begun and self.core.writes.has_written) from error
        except Refusal:
            raise
        except Exception as error:
            # A fault of ours: the caller gets an error, and the next turn starts from the tree.
            self.core.stale = True
            log.error("a turn of the controller failed", fault=repr(error))
            raise Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, repr(error)) from error
        except BaseException:
            # The turn ended in its middle: something that it waited for was cancelled.
            self.core.stale = True
            raise
        finally:
            if self.lost is not None:
                # The tenure has ended under it. What it has begun since goes on elsewhere, and no answer comes here.
                self._answer_all(_goes_on_elsewhere())
            elif self.core.stale or self.core.unreadable:
                # Whoever asked need not ask again, and brokers may not have heard of what the tree has by now.
                self._try_again_later()

    async def _take_over(self, new_epochs: bool = False, on_damage: OnDamage = leave_alone) -> None:
        await self.tree.pass_over_config_changes()
        await self.brokers.take_over(new_epochs=new_epochs, on_damage=on_damage)
        self.tree.watched = set(self.core.context.topics)

    def _check_active(self) -> None:
        if self.lost is not None:
            raise Refusal(ErrorCode.NOT_CONTROLLER, self.lost)

    def _refusal(self, error: CoordinationError, *, has_written: bool) -> Refusal:
        if isinstance(error, SessionExpired | SessionClosed | ControllerMoved):
            self.resign(str(error))
            if has_written:
                # As in `_give_up`: asked again, the next controller would refuse what it has completed itself.
                return _goes_on_elsewhere()
            return Refusal(ErrorCode.NOT_CONTROLLER, self.lost)
        log.warning("a write to the tree failed", fault=str(error))
        # Answers say nothing about this machine: where its files are stands in the log.
        if isinstance(error, WriteRefused):
            return Refusal(ErrorCode.KAFKA_STORAGE_ERROR, "The controller has no room to write: nothing was changed.")
        if isinstance(error, ConnectionLoss):
            message = "The controller does not know whether the change was written: look at it before trying again."
            return Refusal(ErrorCode.REQUEST_TIMED_OUT, message)
        return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))


def _goes_on_elsewhere() -> Refusal:
    return Refusal(ErrorCode.REQUEST_TIMED_OUT, _GOES_ON)
