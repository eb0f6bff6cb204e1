"""Transactional ids that nobody uses are forgotten: a tombstone each, after `transactional.id.expiration.ms`.

Once in `transaction.remove.expired.transaction.cleanup.interval.ms` all ids of a shard are looked at, some at a time.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from ottla.coordinators.caller import Now
from ottla.model import ErrorCode
from ottla.transactions.state import ShardState, TransactionalId
from ottla.transactions.states import IDLE, TransactionEvent, after

#: Ids that are looked at together: a quarter of a millisecond, and a tombstone each takes some microseconds more.
IDS_A_LOOK: Final = 256
PAUSE_MS: Final = 1
_TIMER: Final = "expiry"


class Expiry:
    __slots__ = ("_rest", "_state")

    def __init__(self, state: ShardState) -> None:
        self._state = state
        #: Ids that the look under way has not come to.
        self._rest: deque[TransactionalId] = deque()

    def start(self, now: Now) -> None:
        interval_ms = self._state.settings().expiration_check_interval_ms
        self._state.timers.set(_TIMER, now.monotonic_ms + interval_ms, self._begin)

    def _begin(self, now: Now) -> None:
        self._rest = deque(self._state.ids.values())
        self._look(now)

    def _look(self, now: Now) -> None:
        before_ms = now.wall_ms - self._state.settings().transactional_id_expiration_ms
        for _ in range(min(len(self._rest), IDS_A_LOOK)):
            self._expire(self._rest.popleft(), before_ms, now)
        if self._rest:
            self._state.timers.set(_TIMER, now.monotonic_ms + PAUSE_MS, self._look)
        else:
            self.start(now)

    def _expire(self, known: TransactionalId, before_ms: int, now: Now) -> None:
        committed = known.committed
        if committed is None or known.written is not None or committed.status not in IDLE:
            return
        if committed.updated_ms <= before_ms:
            dead = committed._replace(status=after(committed.status, TransactionEvent.EXPIRE))
            self._state.write(known, dead, now, self._expired)

    def _expired(self, error: ErrorCode) -> None:
        """Where the journal took nothing it is tried again at the next look."""
        if not error:
            self._state.counts.expired += 1
