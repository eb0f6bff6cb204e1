"""Partitions that are being made: in the tree already, and hidden from clients until their leaders serve them.

One request is one making. It is *settled* when each of its partitions has a leader that has taken its role on, or when
it is certain that nobody can lead it: until then the topic is in nobody's metadata, and the caller waits. A topic is
in one making at most, since a request that changes it waits for the one that makes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

#: Of a topic that is in no making.
_NOTHING: Final[frozenset[int]] = frozenset()


class Making:
    def __init__(self, partitions: Mapping[str, Iterable[int]], *, is_creation: bool) -> None:
        #: Topic -> the partitions that are new.
        self.partitions = {topic: frozenset(numbers) for topic, numbers in partitions.items()}
        #: Whether the topics are new themselves. These are taken back where one of their partitions cannot be made.
        self.is_creation = is_creation
        #: Topic -> partitions of which it is not known yet. Empty topics do not stay in it.
        self._unsettled = {topic: set(numbers) for topic, numbers in self.partitions.items() if numbers}
        #: Topics with a partition that nobody can make the log of.
        self.without_room: set[str] = set()
        #: Topics that are gone from the tree.
        self.vanished: set[str] = set()

    @property
    def is_settled(self) -> bool:
        return not self._unsettled

    def settle(self, topic: str, partition: int) -> None:
        numbers = self._unsettled.get(topic)
        if numbers is not None:
            numbers.discard(partition)
            if not numbers:
                del self._unsettled[topic]

    def vanish(self, topic: str) -> None:
        self.vanished.add(topic)
        self._unsettled.pop(topic, None)


class Makings:
    """All that are not settled, or whose end was not seen to yet."""

    def __init__(self) -> None:
        self._by_topic: dict[str, Making] = {}

    def __len__(self) -> int:
        """How many topics are in one."""
        return len(self._by_topic)

    def begin(self, making: Making) -> None:
        assert not self._by_topic.keys() & making.partitions.keys(), "one making a topic"
        self._by_topic |= dict.fromkeys(making.partitions, making)

    def end(self, making: Making) -> None:
        for topic in making.partitions:
            if self._by_topic.get(topic) is making:
                del self._by_topic[topic]

    def of(self, topic: str, partition: int) -> Making | None:
        making = self._by_topic.get(topic)
        return making if making is not None and partition in making.partitions[topic] else None

    def hidden(self, topic: str) -> Collection[int]:
        making = self._by_topic.get(topic)
        return _NOTHING if making is None else making.partitions[topic]

    def all(self) -> list[Making]:
        """In the order in which they began."""
        return list(dict.fromkeys(self._by_topic.values()))
