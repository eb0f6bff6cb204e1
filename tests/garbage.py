"""Whether what nobody uses any more goes, circles too."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable
from typing import Any
from weakref import ReferenceType

_TRIES = 50
_PAUSE_S = 0.05


def are_gone(known: Iterable[ReferenceType[Any]]) -> bool:
    """Long work in another thread, as of a broker that serves other tests, keeps all that is there from the collector
    (`steps.keep_from_collector`), this test's circles too: they are looked for again without that."""
    left = list(known)
    gc.collect()
    for _ in range(_TRIES):
        left = [one for one in left if one() is not None]
        if not left:
            return True
        time.sleep(_PAUSE_S)
        gc.unfreeze()
        gc.collect()
    return False
