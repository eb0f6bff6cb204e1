"""Faults of the broker's own, planted in the steps of a round.

A `Plant` raises in the middle of the broker's own code, as a mistake of ours would: before the step has done anything,
or right behind it. `SITES` names the steps that a request of a hot API, of a lane or of a coordinator passes in one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any, Final

import pytest

#: Module, and the attribute in it, of each step.
SITES: Final = (
    ("ottla.handlers.produce.handler", "ProduceHandler.begin"),
    ("ottla.handlers.produce.handler", "ProduceHandler.serve"),
    ("ottla.handlers.produce.handler", "ProduceHandler._serve_any"),
    ("ottla.handlers.produce.handler", "ProduceHandler._remember"),
    ("ottla.handlers.produce.handler", "ProduceHandler.stage"),
    ("ottla.handlers.produce.handler", "ProduceHandler.answer"),
    ("ottla.handlers.produce.handler", "ProduceHandler._settle"),
    ("ottla.handlers.produce.handler", "ProduceHandler._settle_quick"),
    ("ottla.handlers.produce.handler", "ProduceHandler._answer_or_park"),
    ("ottla.handlers.produce.handler", "ProduceHandler._count"),
    ("ottla.handlers.produce.lanes", "Lanes.stage"),
    ("ottla.handlers.produce.lanes", "Lanes._staged_end"),
    ("ottla.handlers.produce.lanes", "Lanes.answer"),
    ("ottla.handlers.produce.lanes", "Lanes._answer"),
    ("ottla.handlers.produce.appends", "Appends.append"),
    ("ottla.protocol.hot.produce_template", "AnswerTemplate.fill"),
    ("ottla.handlers.produce.waiting", "ProduceWait.try_complete"),
    ("ottla.handlers.fetch.handler", "FetchHandler.serve"),
    ("ottla.handlers.fetch.handler", "FetchHandler._serve_alike"),
    ("ottla.handlers.fetch.handler", "FetchHandler._serve_any"),
    ("ottla.handlers.fetch.handler", "FetchHandler.answer"),
    ("ottla.handlers.fetch.handler", "FetchHandler.begin"),
    ("ottla.handlers.fetch.handler", "FetchHandler.send"),
    ("ottla.handlers.fetch.handler", "FetchHandler._serve_long"),
    ("ottla.handlers.fetch.in_steps", "LongFetch._done"),
    ("ottla.handlers.fetch.in_steps", "WatchedFetch.begin"),
    ("ottla.handlers.fetch.in_steps", "WatchedFetch.first_try"),
    ("ottla.handlers.fetch.in_steps", "WatchedFetch.park"),
    ("ottla.handlers.fetch.in_steps", "WatchedFetch.steps"),
    ("ottla.handlers.fetch.in_steps", "WatchedFetch.tried"),
    ("ottla.handlers.fetch.in_steps", "WatchedFetch.try_complete"),
    ("ottla.handlers.fetch.sessions", "Sessions.open"),
    ("ottla.handlers.fetch.sessions", "Sessions.resume"),
    ("ottla.handlers.fetch.waiting", "FetchWait.try_complete"),
    ("ottla.handlers.fetch.watched", "WatchedPartitions.answer"),
    ("ottla.handlers.fetch.watched", "WatchedPartitions.look"),
    ("ottla.handlers.fetch.watched", "WatchedPartitions.mark"),
    ("ottla.handlers.fetch.watched", "WatchedPartitions.take"),
    ("ottla.groups.offsets.repeated", "RepeatedCommit.write"),
    ("ottla.handlers.commit.memo", "CommitMemo.answer"),
    ("ottla.handlers.commit.recognised", "RecognisedCommits.serve"),
    ("ottla.handlers.commit.recognised", "RecognisedCommits._note"),
    ("ottla.handlers.commit.recognised", "RecognisedCommits._grown"),
    ("ottla.replication.deadlines", "Deadlines._arm"),
    ("ottla.replication.journals", "Journals.stage"),
    ("ottla.replication.journals", "Journals.answer"),
    ("ottla.replication.journal", "PartitionJournal.stage"),
    ("ottla.replication.journal", "PartitionJournal.round_written"),
    ("ottla.replication.journal", "PartitionJournal.try_complete"),
    ("ottla.replication.leader", "Leader.advance"),
    ("ottla.replication.leader", "Leader.append"),
    ("ottla.replication.waiters", "Waiters.changed"),
    ("ottla.replication.waiters", "Waiters.park"),
    ("ottla.replication.waiters", "Waiters.watch"),
    ("ottla.replication.writes", "Writes._write"),
    ("ottla.replication.writes", "Writes.staged"),
    ("ottla.server.connection", "Connection.answer"),
    ("ottla.server.connection", "Connection.answer_now"),
    ("ottla.server.connection", "Connection.answer_in_turn"),
    ("ottla.server.connection", "Connection.send_answers"),
    ("ottla.server.connection", "Connection.left_over"),
    ("ottla.server.connection", "Connection.fill"),
    ("ottla.server.connection", "Connection.finish_with"),
    ("ottla.server.connection", "Connection.hold"),
    ("ottla.server.dispatch", "Dispatcher.serve"),
    ("ottla.server.dispatch", "Dispatcher._answer"),
    ("ottla.server.rounds", "Rounds._received"),
    ("ottla.server.rounds", "Rounds._serve_frames"),
    ("ottla.server.settling", "Settling._settle_one"),
    ("ottla.server.incoming", "IncomingBuffers.keep_rest"),
    ("ottla.server.sending", "Sending.send"),
    ("ottla.server.sending", "Sending.go_on"),
    ("ottla.storage.log.flush", "Flush.run"),
    ("ottla.storage.log.log", "Log.flushed"),
    ("ottla.storage.log.log", "Log.prepare_flush"),
    ("ottla.storage.log.staging", "Staging.stage"),
    ("ottla.storage.log.staging", "Staging.stage_plain"),
    ("ottla.storage.log.staging", "Staging.stage_run"),
    ("ottla.storage.log.staging", "Staging.add_staged"),
    ("ottla.storage.log.staging", "Staging.write"),
    ("ottla.storage.log.staging", "Staging._note_written"),
    ("ottla.storage.log.producers.producer_state", "ProducerStates.stage"),
    ("ottla.storage.log.producers.producer_state", "ProducerStates.commit"),
    ("ottla.storage.log.rolling", "before_batch"),
    ("ottla.storage.log.segment", "Segment.note_batches"),
)


class Planted(Exception):
    """A fault that no part of the broker has foreseen."""


class Plant:
    """One step that raises when it is armed, before its work or behind it."""

    def __init__(self, module: str, name: str, *, behind: bool) -> None:
        self.name = f"{name} {'behind' if behind else 'before'}"
        self._owner, self._attribute = _find(module, name)
        self._behind = behind
        #: The calls until the one that raises; None where it never does.
        self.calls_left: int | None = None
        #: How often it has raised.
        self.met = 0

    def put_in(self, patch: pytest.MonkeyPatch) -> None:
        """Handlers are bound when a broker starts, so it is to be put in before."""
        plain: Callable[..., Any] = getattr(self._owner, self._attribute)

        def planted(*args: Any, **options: Any) -> Any:
            if not self._is_due():
                return plain(*args, **options)
            if self._behind:
                plain(*args, **options)
            raise Planted(self.name)

        async def planted_coroutine(*args: Any, **options: Any) -> Any:
            if not self._is_due():
                return await plain(*args, **options)
            if self._behind:
                await plain(*args, **options)
            raise Planted(self.name)

        patch.setattr(self._owner, self._attribute, planted_coroutine if iscoroutinefunction(plain) else planted)

    def _is_due(self) -> bool:
        """Whether this call is the one that raises."""
        if self.calls_left is None:
            return False
        self.calls_left -= 1
        if self.calls_left >= 0:
            return False
        self.calls_left = None
        self.met += 1
        return True


def _find(module: str, name: str) -> tuple[Any, str]:
    owner: Any = importlib.import_module(module)
    *path, attribute = name.split(".")
    for each in path:
        owner = getattr(owner, each)
    assert callable(getattr(owner, attribute))
    return owner, attribute
