"""What to answer to one who thinks that another leader epoch is the present one (KIP-320)."""

from __future__ import annotations

from ottla.model import ErrorCode


def fencing(known: int, asked: int) -> ErrorCode:
    """`asked`: -1 where the request does not say."""
    if asked in (-1, known):
        return ErrorCode.NONE
    return ErrorCode.FENCED_LEADER_EPOCH if asked < known else ErrorCode.UNKNOWN_LEADER_EPOCH
