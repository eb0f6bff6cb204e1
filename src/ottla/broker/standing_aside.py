"""What a broker does that is cut off from its cluster, while clients still reach it: it stands aside.

Its session with the tree is over there, and others lead what it led. Nobody can tell it. It acknowledges nothing that
all in-sync replicas are to have, but a client that waits for that waits as long as the cut: it has a broker that
answers and says of itself that it leads.

    leads ──the tree is silent for a session's time, and nobody replicates with it──▶ stands aside
      ▲                                                                                    │
      └── the same session lives after all, a follower fetches again, or a controller's ◀──┘
          state says that it leads

Both have to be silent. Where the tree alone is away its followers go on to fetch: who fetches has heard of no other
leader. A partition that nobody else may lead, since it has no other replica or none that is in sync, is led on.

Until then, from the end of its session on by its own clock, it does not tell producers that their sequence numbers are
wrong: what comes before may be with the leader that has replaced it.

To stand aside is to follow nobody in the leader epoch that it led in (`Replicas.stand_aside`): whoever waits is
answered NOT_LEADER_OR_FOLLOWER, coordinators resign, and Metadata names no leader, so that clients ask elsewhere. It
is no part of what makes replication safe: where it comes too early or too late, clients wait and nothing is lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from itertools import chain
from typing import Final

from ottla import logs
from ottla.coordination.interface import SessionEvent
from ottla.coordination.providers import BrokersTree
from ottla.metadata import MetadataCache
from ottla.model import TopicPartition
from ottla.ports import Clock
from ottla.replication.fetching.fetchers import Fetchers
from ottla.replication.isr_progress import NEVER
from ottla.replication.leader import Leader
from ottla.replication.replicas import Replicas
from ottla.steps import Steps, pieces

log_event = logs.logger("server")

#: Between two looks while the tree is not connected, or this broker stands aside; without that nobody looks.
LOOK_MS: Final = 100
#: A follower asks again when `replica.fetch.wait.max.ms` is over. One that is busy may be late by so much.
LATE_MS: Final = 1_000
#: A look that comes so late says that this process stood still, and what others have sent is yet to be read.
STALL_MS: Final = 300
#: What is to be done has to be found so often in a row: a process that stood still reads what has come in between.
LOOKS: Final = 2
#: Each change of role takes some ten microseconds.
_PARTITIONS_A_STEP: Final = 4


class StandingAside:
    def __init__(
        self,
        replicas: Replicas,
        fetchers: Fetchers,
        metadata: MetadataCache,
        clock: Clock,
        tree: Callable[[], BrokersTree | None],
        fetch_wait_ms: Callable[[], int],
    ) -> None:
        """`tree`: of the present session, or of the last one."""
        self._replicas = replicas
        self._fetchers = fetchers
        self._metadata = metadata
        self._now_ms = clock.monotonic_ms
        self._tree = tree
        self._fetch_wait_ms = fetch_wait_ms
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._looked_ms = 0
        #: How many looks in a row have found that something is to be done.
        self._found = 0
        #: Those that it had stand aside; others do so where there is no room for them.
        self._partitions: list[TopicPartition] = []
        #: The session in which it stood aside, and since when.
        self._aside_in: BrokersTree | None = None
        self._since_ms = 0
        self._changing: asyncio.Future[None] | None = None
        self._closed = False
        replicas.may_be_replaced = self._may_be_replaced

    def session_event(self, event: SessionEvent) -> None:
        """Of whatever session: from a loss on it is looked at how long that lasts."""
        if event is not SessionEvent.CONNECTED and self._timer is None and not self._closed:
            self._looked_ms = self._now_ms()
            self._look_later()

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    # -- looking

    def _look_later(self) -> None:
        self._timer = self._loop.call_later(LOOK_MS / 1000, self._look)

    def _look(self) -> None:
        self._timer = None
        now_ms, tree = self._now_ms(), self._tree()
        stood_still, self._looked_ms = now_ms - self._looked_ms >= LOOK_MS + STALL_MS, now_ms
        if self._changing is None:
            is_aside = self._is_aside
            is_due = self._may_return(tree, now_ms) if is_aside else self._is_alone(tree, now_ms)
            self._found = self._found + 1 if is_due and not stood_still else 0
            if self._found >= LOOKS:
                self._found = 0
                if is_aside:
                    self._return()
                else:
                    self._stand_aside(tree)
        if not self._closed and (self._is_aside or self._changing or tree is None or not tree.is_connected):
            self._look_later()

    @property
    def _is_aside(self) -> bool:
        return any(tp in self._replicas.aside for tp in self._partitions)

    def _is_alone(self, tree: BrokersTree | None, now_ms: int) -> bool:
        """Whether it may have been replaced, and nobody who replicates with it says otherwise."""
        return _is_over(tree) and not self._is_heard_of(now_ms - self._silence_ms())

    def _may_be_replaced(self) -> bool:
        return _is_over(self._tree())

    def _may_return(self, tree: BrokersTree | None, now_ms: int) -> bool:
        """Whether it was not replaced: its session lives, or somebody replicates with it as before. After a new session
        that is the controller's to say."""
        if tree is not None and tree is self._aside_in and tree.may_live and tree.is_connected:
            return True
        # What was on its way before it stood aside, and came late, is no news.
        return self._is_heard_of(max(self._since_ms + self._fetch_wait_ms(), now_ms - self._silence_ms()))

    def _silence_ms(self) -> int:
        return self._fetch_wait_ms() + LATE_MS

    def _is_heard_of(self, since_ms: int) -> bool:
        """Whether a follower has fetched here since then, or a leader has answered as one that knows no news."""
        return any(heard_ms > since_ms for heard_ms in self._heard_ms())

    def _heard_ms(self) -> Iterator[int]:
        """When each of them was last heard of."""
        replicas = self._replicas
        yield self._fetchers.agreed_ms
        yield replicas.sought_ms
        roles: tuple[Collection[Leader], ...] = (replicas.leaders.values(), replicas.aside.values())
        for leader in chain.from_iterable(roles):
            for follower in leader.isr.followers.values():
                yield follower.last_fetch_ms

    # -- changing

    def _stand_aside(self, tree: BrokersTree | None) -> None:
        partitions = [tp for tp, leader in self._replicas.leaders.items() if _may_be_replaced(leader)]
        if not partitions:
            return
        self._partitions, self._aside_in, self._since_ms = partitions, tree, self._now_ms()
        heard_ms = max(self._heard_ms())
        log_event.warning(
            "nobody is heard of, and others may lead by now: clients are sent elsewhere",
            partitions=len(partitions),
            silent_ms=self._since_ms - heard_ms if heard_ms != NEVER else "ever",
        )
        self._change(partitions, self._replicas.stand_aside)

    def _return(self) -> None:
        partitions = [tp for tp in self._partitions if tp in self._replicas.aside]
        log_event.info("nobody has taken its place: this broker leads on", partitions=len(partitions))
        self._change(partitions, self._replicas.lead_again)

    def _change(self, partitions: list[TopicPartition], change: Callable[[TopicPartition], None]) -> None:
        def ended(done: asyncio.Future[None]) -> None:
            self._changing = None
            if not done.cancelled() and (fault := done.exception()) is not None:
                log_event.error("partitions could not be given to others, or taken back", fault=repr(fault))

        self._changing = self._replicas.change_apart(self._changes(partitions, change))
        self._changing.add_done_callback(ended)

    def _changes(self, partitions: list[TopicPartition], change: Callable[[TopicPartition], None]) -> Steps[None]:
        for piece in pieces(partitions, _PARTITIONS_A_STEP):
            for tp in piece:
                change(tp)
            self._metadata.derived.clear()
            self._replicas.waiters.settle_outside(self._now_ms())
            yield


def _may_be_replaced(leader: Leader) -> bool:
    """Whether a controller that takes this broker for dead may have another one lead."""
    isr = leader.isr
    return len(isr.maximal) > 1 or (len(isr.replicas) > 1 and leader.log.config.unclean_leader_election)


def _is_over(tree: BrokersTree | None) -> bool:
    """Whether the session is, by this broker's own clock."""
    return tree is None or not tree.may_live
