"""When a decision is answered: once it is committed, or once another has followed it."""

from __future__ import annotations

from collections.abc import Callable

from ottla.groups.state import Done
from ottla.model import ErrorCode

#: Takes an error, and a message where there is one.
RefusalCall = Callable[[ErrorCode, str | None], None]


class AnswerWhenWritten:
    """A decision that is answered once it is committed."""

    __slots__ = ("_refused", "_reply")

    def __init__(self, reply: Callable[[], None], refused: RefusalCall) -> None:
        self._reply = reply
        self._refused = refused

    def written(self, error: ErrorCode) -> None:
        if error:
            self._refused(error, None)
        else:
            self._reply()

    def applied(self) -> None:
        """The answer waits for the write alone."""


class AnswerWhenAssigned:
    """A decision that is followed by another, once the group has its target, or once the member's long share is known;
    that one is answered.
    """

    __slots__ = ("_go_on", "_is_over", "_refused", "_when_assigned")

    def __init__(self, go_on: Callable[[], None], refused: RefusalCall, when_assigned: Callable[[Done], None]) -> None:
        self._go_on = go_on
        self._refused = refused
        self._when_assigned = when_assigned
        self._is_over = False

    def written(self, error: ErrorCode) -> None:
        if error and not self._is_over:
            self._is_over = True
            self._refused(error, None)

    def applied(self) -> None:
        self._when_assigned(self._assigned)

    def _assigned(self, error: ErrorCode) -> None:
        if error:
            self.written(error)
        elif not self._is_over:
            self._is_over = True
            self._go_on()
