"""Who is to have which partition: computed by every member for itself, so that it has to come out the same everywhere.

range        for each topic: its partitions in their order, its threads by name. With m more partitions than a whole
             share each, the first m threads get one more.
roundrobin   all partitions of all topics, by Java's hash of their name, are dealt to all threads by name in turn; a
             thread that does not read the topic is passed over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ottla.client.zookeeper_groups.znodes import ConsumerThread
from ottla.javahash import java_hash
from ottla.model import TopicPartition

#: Threads by topic: of all members that read it.
Readers = Mapping[str, Sequence[ConsumerThread]]
Assignment = dict[TopicPartition, ConsumerThread]


def readers_of(members: Mapping[str, Mapping[str, int]]) -> dict[str, list[ConsumerThread]]:
    """From each member's threads by topic; a topic's threads are in the order of their names."""
    readers: dict[str, list[ConsumerThread]] = {}
    for consumer, topics in members.items():
        for topic, count in topics.items():
            readers.setdefault(topic, []).extend(ConsumerThread(consumer, number) for number in range(count))
    for threads in readers.values():
        threads.sort(key=str)
    return readers


def assign_range(readers: Readers, partitions: Mapping[str, Sequence[int]]) -> Assignment:
    assignment: Assignment = {}
    for topic, threads in readers.items():
        numbers = sorted(partitions.get(topic, ()))
        share, more = divmod(len(numbers), len(threads))
        for position, thread in enumerate(threads):
            start = share * position + min(position, more)
            for number in numbers[start : start + share + (position < more)]:
                assignment[TopicPartition(topic, number)] = thread
    return assignment


def assign_round_robin(readers: Readers, partitions: Mapping[str, Sequence[int]]) -> Assignment:
    assignment: Assignment = {}
    everyone = sorted({thread for threads in readers.values() for thread in threads}, key=str)
    of_topic = {topic: frozenset(threads) for topic, threads in readers.items()}
    placed = [TopicPartition(topic, number) for topic in readers for number in partitions.get(topic, ())]
    turn = 0
    for tp in sorted(placed, key=_dealt):
        while everyone[turn % len(everyone)] not in of_topic[tp.topic]:
            turn += 1
        assignment[tp] = everyone[turn % len(everyone)]
        turn += 1
    return assignment


def _dealt(tp: TopicPartition) -> tuple[int, TopicPartition]:
    """In the order of what Kafka prints of a partition, hashed: neighbours go to different members."""
    return java_hash(f"[{tp.topic},{tp.partition}]"), tp


STRATEGIES: Final = {"range": assign_range, "roundrobin": assign_round_robin}
