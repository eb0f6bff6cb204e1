"""Compiled code: optional, behind what is written in Python and does the same.

A wheel brings it, and an installation from source builds it where there is a C compiler. Where it is missing, or
OTTLA_PURE is set, everything works and small requests cost a third more.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.native.lane import Run


def compiled_run() -> type[Run] | None:
    """The class that lanes are made by, or None where nothing is compiled."""
    if os.environ.get("OTTLA_PURE"):
        return None
    try:
        from ottla.native.lane import Run
    except ImportError:
        return None
    return Run
