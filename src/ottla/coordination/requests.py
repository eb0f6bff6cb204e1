"""What waits in the store's queue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from ottla.coordination.errors import CoordinationError
from ottla.coordination.sizes import op_size
from ottla.coordination.tree import AppliedTransaction, CloseSession, OpenSession, TreeOp, ZnodeTree

#: Of the beginning or the end of a session in the journal, rounded up.
_SESSION_BYTES: Final = 64


class Answer(Protocol):
    """Where a result goes: a future, or whatever takes it in the very moment in which it is known. Raises nothing."""

    def done(self) -> bool:
        """Whether nobody waits for it any more."""
        ...

    def set_result(self, result: Any, /) -> None: ...

    def set_exception(self, error: CoordinationError, /) -> None: ...


@dataclass(slots=True, eq=False)
class WriteRequest:
    session_id: int
    ops: Sequence[TreeOp]
    size: int
    #: Gets a list of OpResult.
    answer: Answer
    outcome: AppliedTransaction | CoordinationError | None = None
    #: The last transaction that was applied with it, its own where it was: all that its answer can show.
    zxid: int = 0


@dataclass(slots=True, eq=False)
class ReadRequest:
    session_id: int
    #: Raises CoordinationError and nothing else.
    action: Callable[[ZnodeTree], Any]
    answer: Answer
    #: Whether the action gives steps, whose end is the result. The tree is as it is until then.
    is_long: bool = False


def fail_answer(answer: Answer, error: CoordinationError) -> None:
    if not answer.done():
        answer.set_exception(error)


def size_of(op: TreeOp) -> int:
    return _SESSION_BYTES if isinstance(op, OpenSession | CloseSession) else op_size(op)
