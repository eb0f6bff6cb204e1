"""What one request may carry, and how more is cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ottla.coordination.interface import MULTI_OPS_MAX, REQUEST_BYTES_MAX, Op

#: What an operation takes on ZooKeeper's wire beside path and data: 53 bytes for one that creates (lengths, flags, an
#: access list of one entry, the header in a multi), 17 for the request around one that is alone, and the chroot, whose
#: length nobody knows here. One of more than 58 bytes is counted too low.
OP_OVERHEAD: Final = 128


def op_size(op: Op) -> int:
    return len(op.path.encode()) + len(getattr(op, "data", b"")) + OP_OVERHEAD


def split(
    ops: Sequence[Op], *, ops_max: int = MULTI_OPS_MAX, bytes_max: int = REQUEST_BYTES_MAX
) -> Iterator[Sequence[Op]]:
    """`ops` in pieces that each fit one multi, in order. One operation is never cut: it may be too large by itself."""
    start = size = 0
    for index, op in enumerate(ops):
        added = op_size(op)
        if index > start and (index - start >= ops_max or size + added > bytes_max):
            yield ops[start:index]
            start, size = index, 0
        size += added
    if ops:
        yield ops[start:]
