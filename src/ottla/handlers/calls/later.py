"""An answer that is not known yet: a coordinator gives it in the same round, or when a group has come together.

Futures are resumed by the event loop in one of its next turns; this is answered where it is set, so that a commit's
answer leaves with the round that wrote it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Later:
    __slots__ = ("_then", "response")

    def __init__(self) -> None:
        #: A response, its bytes, or the steps that make one of these; None while it is not known.
        self.response: Any = None
        self._then: Callable[[Any], None] | None = None

    def set(self, response: Any) -> None:
        """Gives the answer, once."""
        assert self.response is None
        self.response = response
        if self._then is not None:
            self._then(response)

    def then(self, call: Callable[[Any], None]) -> None:
        """Calls as soon as the answer is known, which it is not yet."""
        assert self.response is None
        self._then = call


class GatheredAnswers:
    """Answers about several things, each given by itself, that make one response in the order of the questions."""

    __slots__ = ("_answers", "_done", "_missing")

    def __init__(self, count: int, done: Callable[[list[Any]], None]) -> None:
        """`count` may be 0: then `done` is called at once."""
        self._answers: list[Any] = [None] * count
        self._missing = count
        self._done = done
        if not count:
            done([])

    def place(self, index: int) -> Callable[[Any], None]:
        """Where the answer to one of the questions is given."""

        def give(answer: Any) -> None:
            assert self._answers[index] is None
            self._answers[index] = answer
            self._missing -= 1
            if not self._missing:
                self._done(self._answers)

        return give
