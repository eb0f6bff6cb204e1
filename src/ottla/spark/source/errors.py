"""What can go wrong while Spark reads. Each message names what it is about and the option to change."""

from __future__ import annotations

from ottla.model import TopicPartition


class ReadFailed(Exception):
    """Records could not be read, and trying further did not help."""


class TopicMissing(ReadFailed):
    """A topic or a partition that was asked for by name is not there."""


class DataLost(ReadFailed):
    """Offsets that were to be read are no longer there, and `failOnDataLoss` is true."""


def span(tp: TopicPartition, first: int, until: int) -> str:
    """Offsets as people count them: the last one is among them."""
    return f"offset {first} of {tp}" if until == first + 1 else f"offsets {first} to {until - 1} of {tp}"
