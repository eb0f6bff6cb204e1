"""Requests that are like the last one of their connection, served without being decoded: how they are answered.

What the request says is known then, and what the answer is where all is well. All that may have changed meanwhile is
asked as ever: the policy and the metadata by their numbers, coordinators by a call.
"""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from typing import Generic, Protocol, TypeVar

from ottla import logs
from ottla.handlers.calls.call import Services
from ottla.handlers.calls.peer import Peer
from ottla.model import ErrorCode
from ottla.protocol.apis import api

log_event = logs.logger("handlers")


class Memo(Protocol):
    """What is kept of a request with its connection."""

    #: The number of the policy that allowed it.
    policy: int

    def answer(self, correlation: int) -> bytes:
        """Where all is well."""
        ...


M = TypeVar("M", bound=Memo)


class Recognised(ABC, Generic[M]):
    def __init__(self, services: Services, *keys: int) -> None:
        """`keys` are those of the APIs."""
        self._services = services
        self._round = services.round
        self._clock = services.clock
        self._metrics = services.metrics
        #: Memos are void once its number is another.
        self._policy = services.policy
        #: With another generation of it what is remembered of it is looked for again.
        self._metadata = services.metadata
        self._names = {key: api(key).name for key in keys}

    def _answer(self, peer: Peer, memo: M, key: int, correlation: int, began_ms: int, error: ErrorCode) -> None:
        """The coordinator has decided, in the round of the request or later."""
        if peer.closed:
            return
        try:
            if error or memo.policy != self._policy.number:
                answer = self._general_answer(peer, memo, key, correlation, error)
            else:
                answer = memo.answer(correlation)
            now_ms = self._clock.monotonic_ms()
            if began_ms == self._round.began_ms:
                peer.finish_with(answer, now_ms)
            else:
                # A crowd may have waited for the same replica: its answers have the time of a round's end.
                peer.answer(answer)
                peer.finish()
            self._metrics.request(key, self._names[key], now_ms - began_ms)
        except Exception as fault:
            # Its client asks again.
            log_event.error("a request failed", api=key, error="".join(traceback.format_exception(fault)))
            peer.abort()

    @abstractmethod
    def _general_answer(self, peer: Peer, memo: M, key: int, correlation: int, error: ErrorCode) -> bytes | bytearray:
        """Where it has failed, or its client may be held back by now."""
