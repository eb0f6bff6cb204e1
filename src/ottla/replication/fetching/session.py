"""A follower's fetch session with one leader (KIP-227): what the leader was last asked of each partition.

A full request (epoch 0) names all and opens a session; those behind it name what has changed. Whatever goes wrong, the
next one is full again; it carries the former session's id, which the leader then forgets.

The leader says each partition's watermark and log start once, and takes them for known as soon as it has answered. What
was not taken over of an answer, since the partition's role changed while it was on its way, would be said again with
the partition's next records, if ever some come. Only a new session makes a leader say it again: one that keeps to
KIP-227 remembers what it has said also of a partition that is asked for in another leader epoch.
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
    __slots__ = ("epoch", "id", "known", "untaken")

    def __init__(self) -> None:
        self.id = NO_SESSION
        self.epoch = FULL
        #: What the leader was last asked, with the request that is under way.
        self.known: dict[Key, AskedRow] = {}
        #: Of these the leader has answered something that was not taken over, and will not answer it again.
        self.untaken: dict[Key, None] = {}

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

    def has_missed(self, row_of: Callable[[Key], AskedRow | None]) -> bool:
        """Whether something that the leader answers once was not taken over, of a partition still asked for.

        One that is not asked for now leaves the session with the next request, and is all new when it comes back.
        """
        untaken, self.untaken = self.untaken, {}
        return any(key in self.known and row_of(key) is not None for key in untaken)

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
        self.untaken = {}

    def forget(self) -> None:
        """The leader does not know it."""
        self.id = NO_SESSION
        self.restart()
