"""What waits in the store's queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.coordination.errors import CoordinationError
from ottla.coordination.interface import OpResult
from ottla.coordination.sizes import OP_OVERHEAD, op_size
from ottla.coordination.tree import AppliedTransaction, CloseSession, OpenSession, TreeOp, ZnodeTree


@dataclass(slots=True, eq=False)
class WriteRequest:
    session_id: int
    ops: Sequence[TreeOp]
    size: int
    answer: asyncio.Future[list[OpResult]]
    outcome: AppliedTransaction | CoordinationError | None = None


@dataclass(slots=True, eq=False)
class ReadRequest:
    session_id: int
    action: Callable[[ZnodeTree], Any]
    answer: asyncio.Future[Any]


def fail_answer(answer: asyncio.Future[Any], error: CoordinationError) -> None:
    if not answer.done():
        answer.set_exception(error)


def size_of(op: TreeOp) -> int:
    return OP_OVERHEAD if isinstance(op, OpenSession | CloseSession) else op_size(op)
