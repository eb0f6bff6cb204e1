"""Replicas that are to be here and have no log: made, or opened again, until they are there.

A new one is made with the change that names it. One that a full disk has no room for is offline meanwhile, and tried
again; so is a folder that could not be opened at the start for want of room, which a worker opens.

    not there ──create──▶ there
        └ no room: unmade ──try_again──▶ there: the owner has its role given to it
    roomless (of the directories) ──a worker opens it──▶ reopened: the same

Changed settings reach the logs that are there, one announcement after the other. None of this is an announcement: a
change may come while there is no log, or while a worker makes it. So a log that was made or opened later gets the
settings of the moment again with its role; nothing is written to it or removed from it before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Final, NamedTuple

from ottla.config.log import LogConfig
from ottla.metadata import PartitionState
from ottla.model import NO_BROKER, TopicPartition
from ottla.ports import Clock, Workers
from ottla.steps import DiskSteps
from ottla.storage.directories.directories import LogDirectories
from ottla.storage.directories.errors import DirectoryError
from ottla.storage.directories.opening import OpenedFolder
from ottla.storage.directories.placing import NewReplica
from ottla.storage.errors import StorageFault
from ottla.storage.log.log import Log

#: Logs that are tried again in one turn of the loop; each is some files.
_MADE_AT_ONCE: Final = 100


class _UnmadeReplica(NamedTuple):
    topic_id: bytes
    is_new: bool
    #: Of the state that gave it to this broker.
    leader_epoch: int
    #: Asked each time that it is tried: by the time that there is room, its topic's settings may be others.
    config_for: Callable[[str], LogConfig]


class MissingReplicas:
    def __init__(
        self,
        broker_id: int,
        directories: LogDirectories,
        workers: Workers,
        clock: Clock,
        went_offline: Callable[[TopicPartition, str], None],
    ) -> None:
        """`went_offline` is called with a partition that cannot be served for now, and with the reason."""
        self._broker_id = broker_id
        self._directories = directories
        self._workers = workers
        self._clock = clock
        self._went_offline = went_offline
        #: Those that a full disk had no room for: they are tried again. A log that is there by now has no role yet.
        self._unmade: dict[TopicPartition, _UnmadeReplica] = {}
        #: Those that are tried in a worker just now, and those that were opened since and have no role yet.
        self._opening: set[TopicPartition] = set()
        self._reopened: set[TopicPartition] = set()

    @property
    def are_left(self) -> bool:
        """Whether there is anything to try again."""
        return bool(self._unmade or self._reopened or self._directories.has_roomless)

    def create(self, states: Sequence[PartitionState], config_for: Callable[[str], LogConfig]) -> DiskSteps[None]:
        """Creates the logs that are to be here and are not, all at once: names are made durable once a directory."""
        directories = self._directories
        configs: dict[str, LogConfig] = {}
        missing: dict[bool, list[NewReplica]] = {True: [], False: []}
        epochs: dict[TopicPartition, int] = {}
        for state in states:
            tp = TopicPartition(state.topic, state.partition)
            if state.leader not in {self._broker_id, NO_BROKER} and self._broker_id not in state.isr:
                # A replica that is in sync might be elected next, with nothing.
                directories.give_up_lost(tp)
            if self._broker_id in state.replicas and directories.get(tp) is None:
                config = configs.get(tp.topic) or configs.setdefault(tp.topic, config_for(tp.topic))
                missing[state.is_new].append(NewReplica(tp, state.topic_id, config))
                epochs[tp] = state.leader_epoch
            yield None
        for is_new, replicas in missing.items():
            if not replicas:
                continue
            refused = yield from directories.create_many(replicas, now_ms=self._clock.wall_ms(), is_new=is_new)
            for replica in [replica for replica in replicas if replica.partition in refused]:
                tp = replica.partition
                self._not_made(tp, _UnmadeReplica(replica.topic_id, is_new, epochs[tp], config_for), refused[tp])
                yield None

    def _not_made(self, tp: TopicPartition, unmade: _UnmadeReplica, fault: DirectoryError | StorageFault) -> None:
        waits = isinstance(fault, StorageFault) and not fault.directory_failed
        if waits:
            self._unmade[tp] = unmade
        reason = f"{fault}; it is tried again until it can be made" if waits else str(fault)
        self._went_offline(tp, reason)

    def try_again(self, made: Callable[[Sequence[TopicPartition]], None]) -> DiskSteps[None]:
        """Tries to make or open those that lacked room; `made` is called with what is there, until it has its role."""
        directories = self._directories
        for tp, job in directories.prepare_roomless().items():
            if tp not in self._opening:
                self._opening.add(tp)
                self._workers.thread(job).add_done_callback(partial(self._opened_again, tp))
        # Some are gone since, with their role, their topic or their directory.
        self._reopened = {tp for tp in self._reopened if directories.get(tp) is not None}
        if self._reopened:
            made(sorted(self._reopened))
        tried = list(islice(self._unmade.items(), _MADE_AT_ONCE))
        for is_new in (True, False):
            wanted: list[NewReplica] = []
            for tp, unmade in tried:
                if unmade.is_new == is_new:
                    wanted.append(NewReplica(tp, unmade.topic_id, unmade.config_for(tp.topic)))
                    yield None
            yield from directories.create_many(wanted, now_ms=self._clock.wall_ms(), is_new=is_new)
        for tp, unmade in tried:
            # The next ones come first next time.
            if self._unmade.pop(tp, None) is not None:
                self._unmade[tp] = unmade
        there = [tp for tp, _ in tried if directories.get(tp) is not None]
        if there:
            made(there)

    def _opened_again(self, tp: TopicPartition, done: asyncio.Future[OpenedFolder]) -> None:
        self._opening.discard(tp)
        if done.cancelled():
            return
        if self._directories.settle_roomless(tp, done.result()):
            # It was opened with the settings of the start.
            self._reopened.add(tp)

    def came_later(self, tp: TopicPartition) -> Log | None:
        """Its log, where that lacked room, was made or opened since, and is about to get its first role."""
        log = self._directories.get(tp) if tp in self._reopened or tp in self._unmade else None
        if log is not None:
            self._reopened.discard(tp)
        return log

    def awaited(self, tp: TopicPartition) -> tuple[bytes, int] | None:
        """Of one that waits for room: its topic, and the leader epoch of the state that gave it to this broker."""
        unmade = self._unmade.get(tp)
        return None if unmade is None else (unmade.topic_id, unmade.leader_epoch)

    def is_there(self, tp: TopicPartition) -> None:
        """It has a log and gets a role."""
        self._unmade.pop(tp, None)

    def is_given_up(self, tp: TopicPartition) -> None:
        """Nobody wants it here any more."""
        self._unmade.pop(tp, None)
        self._reopened.discard(tp)
