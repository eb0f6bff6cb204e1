"""What serving a tree consists of, for those who take part in it."""

from __future__ import annotations

from dataclasses import dataclass

from ottla.coordination.served.figures import Figures
from ottla.coordination.served.limits import ServedLimits
from ottla.coordination.served.long_work import LongWork
from ottla.coordination.served.rounds import Rounds
from ottla.coordination.served.session_life import SessionLife
from ottla.coordination.store import TreeStore
from ottla.ports.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    store: TreeStore
    clock: Clock
    limits: ServedLimits
    life: SessionLife
    rounds: Rounds
    figures: Figures
    long_work: LongWork
