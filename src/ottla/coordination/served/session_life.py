"""How long sessions live whose owners are at the other end of a connection.

A session ends when it was not heard of for its time-out, and not before the server has had the time to hear of it: the
leases run on a clock that stands still while this process did (a machine without room for it, SIGSTOP, a write that
blocked the loop). A disk that stands still ends nothing either, since neither a ping nor a client that takes its
session up again waits for it (`requests`, `greeting`). Nor does a crowd: whose request waits here was heard of.

    opened ──heard of──▶ (whole time-out) ──not heard of──▶ ending ──the store has ended it──▶ gone
      │                        ▲                               │
      │                        └────────the disk refuses───────┘
      └─ its connection closes, and it asked for END_WITH_CONNECTION: what is left is cut to what it asked for

A restart finds the sessions in the tree, and gives each a whole time-out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ottla import logs
from ottla.coordination.errors import CoordinationError, SessionExpired, WriteRefused
from ottla.coordination.store import TreeStore
from ottla.coordination.tree import CloseSession
from ottla.ports.clock import Clock

#: How often leases are looked at, and the longest pause that is not a stall.
LOOK_MS: Final = 50
#: A stall that is worth a line in the log.
SAID_MS: Final = 500
#: Sessions that a line names, where very many end at once.
SAID_SESSIONS: Final = 8
#: How long a session is left alone that could not be ended.
REFUSED_MS: Final = 1_000

_log = logs.logger("tree")


class SessionLife:
    def __init__(
        self, store: TreeStore, clock: Clock, ended: Callable[[int], None], is_heard: Callable[[int], bool]
    ) -> None:
        """`ended` is called with each session that is over, when that is durable; `is_heard` says whether something
        that its owner has sent waits for this server."""
        self._store = store
        self._leases = store.sessions.leases
        self._clock = clock
        self._ended = ended
        self._is_heard = is_heard
        self._looked_ms = clock.monotonic_ms()
        #: All stalls so far: leases run on time without them.
        self._lost_ms = 0
        self.stall_ms_max = 0
        #: Sessions whose end was handed to the store.
        self._ending: set[int] = set()
        self._refused_until_ms = 0

    @property
    def lease_ms(self) -> int:
        """Now, as leases have it."""
        return self._clock.monotonic_ms() - self._lost_ms

    def is_ending(self, session_id: int) -> bool:
        return session_id in self._ending

    def begin(self, session_id: int, timeout_ms: int) -> None:
        """Also of a session that is taken up again, maybe with another time-out."""
        self._leases.grant(session_id, timeout_ms, self.lease_ms)

    def heard_of(self, session_id: int) -> None:
        self._leases.touch(session_id, self.lease_ms)

    def left_alone(self, session_id: int, grace_ms: int) -> None:
        """Its connection has closed, and it had asked to end `grace_ms` later."""
        self._leases.shorten(session_id, grace_ms, self.lease_ms)

    def look(self) -> None:
        """Adds what was lost to a stall, and ends what has run out."""
        now_ms = self._clock.monotonic_ms()
        stalled_ms = now_ms - self._looked_ms - LOOK_MS
        self._looked_ms = now_ms
        if stalled_ms > 0:
            self._lost_ms += stalled_ms
            self.stall_ms_max = max(self.stall_ms_max, stalled_ms)
            if stalled_ms >= SAID_MS:
                _log.warning("the process stood still: sessions live as much longer", ms=stalled_ms)
        if now_ms < self._refused_until_ms:
            return
        overdue: list[int] = []
        for each in self._leases.overdue(self.lease_ms):
            if self._is_heard(each):
                # Its owner has spoken, and others have kept this server from listening.
                self.heard_of(each)
            elif each not in self._ending:
                overdue.append(each)
        if overdue:
            named = ",".join(f"{each:#x}" for each in overdue[:SAID_SESSIONS])
            _log.info("sessions were not heard of in time, and end", count=len(overdue), sessions=named)
        for session_id in overdue:
            self.end(session_id)

    def end(self, session_id: int) -> None:
        """Has the store end it."""
        try:
            self._store.submit_write(session_id, [CloseSession(session_id)], _End(self, session_id))
        except CoordinationError as error:
            self.not_ended(session_id, error)
        else:
            self._ending.add(session_id)

    def ends(self, session_id: int) -> None:
        """Its owner has asked for its end, which is on its way to the store."""
        self._ending.add(session_id)

    def has_ended(self, session_id: int) -> None:
        self._ending.discard(session_id)
        self._ended(session_id)

    def not_ended(self, session_id: int, error: CoordinationError) -> None:
        self._ending.discard(session_id)
        if isinstance(error, WriteRefused):
            self._refused_until_ms = self._clock.monotonic_ms() + REFUSED_MS
            _log.warning_limited("sessions that have run out cannot be ended for now", reason=str(error))


class _End:
    """Takes the store's answer."""

    __slots__ = ("_life", "_session_id")

    def __init__(self, life: SessionLife, session_id: int) -> None:
        self._life = life
        self._session_id = session_id

    def done(self) -> bool:
        return False

    def set_result(self, _: object, /) -> None:
        self._life.has_ended(self._session_id)

    def set_exception(self, error: CoordinationError, /) -> None:
        if isinstance(error, SessionExpired):  # it was over
            self._life.has_ended(self._session_id)
        else:
            self._life.not_ended(self._session_id, error)
