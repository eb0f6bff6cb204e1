"""What requests wait for outside their turns: that a topic is made, or that it is gone.

A turn that begins such work leaves a mark of it here. The request that asked waits for its end, and so do requests that
change the same topic: their turns come when it is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import TypeVar

from ottla.controller.deciding.refusal import Refusal
from ottla.controller.interface import DeletedTopic, TopicCreation, TopicResult
from ottla.model import ErrorCode
from ottla.steps import Steps, pieces

R = TypeVar("R", TopicCreation, TopicResult, DeletedTopic)


class Work:
    """Something that goes on when the turn that began it is over."""

    def __init__(self) -> None:
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        #: Why it was not carried to its end. Per topic, where only some were.
        self.fault: Refusal | None = None
        self.refused: dict[str, Refusal] = {}
        #: What follows from it and is waited for as well.
        self.following: list[asyncio.Future[None] | Work] = []
        #: Called at its end, once. They may hold this very work, which lets go of them then.
        self._behind: dict[Callable[[], None], None] = {}

    @property
    def has_ended(self) -> bool:
        return self._ended.done()

    def end(self, fault: Refusal | None = None) -> None:
        if not self._ended.done():
            self.fault = fault
            self._ended.set_result(None)
            behind, self._behind = self._behind, {}
            for call in behind:
                call()

    def then(self, call: Callable[[], None]) -> None:
        """Calls at its end, in the order in which this was asked for."""
        if self._ended.done():
            call()
        else:
            self._behind[call] = None

    def forget(self, call: Callable[[], None]) -> None:
        """Whoever asked for it waits no more. The work may go on for as long as a broker does not answer."""
        self._behind.pop(call, None)

    @property
    def waiting(self) -> int:
        """How many calls there will be at its end."""
        return len(self._behind)

    async def wait(self) -> None:
        """Until it has ended, and what follows from it. A caller that goes away ends nothing."""
        await asyncio.shield(self._ended)
        for one in self.following:
            if isinstance(one, Work):
                await one.wait()
            else:
                await asyncio.shield(one)


class UnderWay:
    """Work that has not ended, by its topics."""

    def __init__(self) -> None:
        self._makings: dict[str, Work] = {}
        self._deletions: dict[str, Work] = {}

    @property
    def deletions(self) -> set[Work]:
        return set(self._deletions.values())

    def making(self, topics: Iterable[str], work: Work) -> None:
        self._begin(self._makings, topics, work)

    def deletion(self, topics: Iterable[str], work: Work) -> None:
        self._begin(self._deletions, topics, work)

    @staticmethod
    def _begin(table: dict[str, Work], topics: Iterable[str], work: Work) -> None:
        names = list(topics)
        table.update(dict.fromkeys(names, work))

        def ended() -> None:
            for name in names:
                if table.get(name) is work:
                    del table[name]

        work.then(ended)

    def of(self, topics: Iterable[str], *, makings: bool) -> Steps[Work | None]:
        """Work on one of them: its deletion, or with `makings` that it is made, too."""
        if not (self._deletions or (makings and self._makings)):
            return None
        for piece in pieces(topics):
            for topic in piece:
                work = self._deletions.get(topic) or (self._makings.get(topic) if makings else None)
                if work is not None:
                    return work
            yield
        return None

    def end_all(self, fault: Refusal) -> None:
        for work in [*self._makings.values(), *self._deletions.values()]:
            work.end(fault)


def refused(results: list[R], refusal: Refusal | None) -> list[R]:
    """What did not go on to its end, whatever the turn said; results that are refusals already stay."""
    if refusal is None:
        return results
    return [
        result._replace(error=refusal.error, message=refusal.message) if result.error is ErrorCode.NONE else result
        for result in results
    ]
