"""What keeps a partition from being copied: what passes is tried again, and what does not is named and stops it."""

from __future__ import annotations

from typing import Final

from ottla.client.errors import KafkaError
from ottla.model import TopicPartition

#: A source that so often in a row did not know a topic, for some seconds and by several brokers, has it no more.
UNKNOWN_MAX: Final = 10


class CopyStopped(Exception):
    """The copy of a partition cannot go on without somebody's decision; says what is wrong and what can be done."""


class StrangeRecords(CopyStopped):
    """The target has records that the mirror did not write."""


class LostRecords(CopyStopped):
    """Records are gone that were there: the source's, of which the copy has some, or the copy's own."""


class Overtaken(KafkaError):
    """Another process has taken the partition over, and knows what this one has recorded until then."""


class PairsWouldVanish(KafkaError):
    """The topic of pairs is not compacted."""


def deleted(tp: TopicPartition, end: int) -> str:
    """What is said of a partition that was to be copied up to `end`, and whose topic is gone."""
    return f"{tp}: the source's topic was deleted before it was copied up to {end}"
