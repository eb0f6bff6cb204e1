"""A follower's fetch session with one leader (KIP-227): what the leader was last asked of each partition.

A full request (epoch 0) names all and opens a session; those behind it name what has changed. Whatever goes wrong, the
next one is full again; it carries the former session's id, which the leader then forgets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from ottla.protocol.hot.follower_fetch import AskedRow, TopicKey
from ottla.replication.fetching.partition import Key

NO_SESSION: Final = 0
FULL: Final = 0
EPOCH_MAX: Final = 2**31 - 1

Rows = dict[TopicKey, list[AskedRow]]
Forgotten = dict[TopicKey, list[int]]


class FollowerSession:
    __slots__ = ("epoch", "id", "known")

    def __init__(self) -> None:
        self.id = NO_SESSION
        self.epoch = FULL
        #: What the leader was last asked, with the request that is under way.
        self.known: dict[Key, AskedRow] = {}

    def take(self, keys: Iterable[Key], row_of: Callable[[Key], AskedRow | None]) -> tuple[Rows, Forgotten]:
        """What the next request is to say of these partitions; None of `row_of`: nothing is to be asked."""
        rows: Rows = {}
        forgotten: Forgotten = {}
        known = self.known
        for key in keys:
            row = row_of(key)
            if row is None:
                if known.pop(key, None) is not None:
                    forgotten.setdefault(key[0], []).append(key[1])
            elif known.get(key) != row:
                known[key] = row
                rows.setdefault(key[0], []).append(row)
        return rows, forgotten

    def answered(self, session_id: int) -> None:
        """The leader has taken the request; without a session id it keeps no session for us."""
        if session_id == NO_SESSION:
            self.id, self.epoch = NO_SESSION, FULL
        else:
            self.epoch = 1 if self.epoch in {FULL, EPOCH_MAX} or session_id != self.id else self.epoch + 1
            self.id = session_id

    def restart(self) -> None:
        """The next request names all."""
        self.epoch = FULL
        self.known = {}

    def forget(self) -> None:
        """The leader does not know it."""
        self.id = NO_SESSION
        self.restart()
