"""What becomes of offsets that were to be read and are gone: an error, or a warning that names them.

Gaps inside of what is there are no loss: compaction and the markers of transactions make them. Lost is what lies
before a log's first offset, behind its end, or in a topic that was deleted.
"""

from __future__ import annotations

from typing import Final

from ottla.logs import logger
from ottla.model import TopicPartition
from ottla.spark.source.errors import DataLost, span

_LOG = logger("spark")

_GO_ON: Final = "set failOnDataLoss to false to read on with what is there"


class LossPolicy:
    """`failOnDataLoss`: what each loss leads to."""

    def __init__(self, *, fail: bool) -> None:
        self.fail = fail

    def lost(self, tp: TopicPartition, first: int, until: int, why: str) -> None:
        self.report(f"{span(tp, first, until)} can no longer be read: {why}")

    def report(self, what: str) -> None:
        if self.fail:
            raise DataLost(f"{what} ({_GO_ON})")
        _LOG.warning("data is lost, and failOnDataLoss is false: reading goes on with what is there", lost=what)
