"""Records for groups to read, and the check that the members together read each of them once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from tests.interop.clients import SECONDS_MAX, confluent_producer
from tests.interop.group_members import Member, wait_for


def produce(bootstrap: str, topic: str, partitions: int, values: Sequence[bytes]) -> None:
    """Writes the values round and round over the partitions."""
    producer = confluent_producer(bootstrap, linger_ms=0)
    for number, value in enumerate(values):
        producer.produce(topic, value, key=value, partition=number % partitions)
    assert producer.flush(SECONDS_MAX) == 0


class Writing:
    """Values of one topic, each of which must be read once by the members together."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.topic = topic
        self.partitions = partitions
        self.written: list[bytes] = []
        self._bootstrap = bootstrap

    def write_and_wait(self, members: Sequence[Member], everyone: Sequence[Member], count: int = 12) -> None:
        """Writes some and waits until ``members`` have read them, each from the partitions it holds."""
        holders = {partition: member for member in members for partition in member.assigned}
        before = {member: len(member.received) for member in members}
        values = [b"%d" % number for number in range(len(self.written), len(self.written) + count)]
        produce(self._bootstrap, self.topic, self.partitions, values)
        self.written += values
        wait_for(lambda: self.read_by(everyone) >= set(self.written), everyone)
        for member in members:
            for received in member.received[before[member] :]:
                assert holders[received.partition] is member, (member, received)
        assert sorted(value for member in everyone for value in member.values) == sorted(self.written), "read twice"

    @staticmethod
    def read_by(everyone: Sequence[Member]) -> set[bytes]:
        return {value for member in everyone for value in member.values}


class SteadyLoad:
    """Writes to all partitions, round and round, until its block ends."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, records_a_second: float = 400.0) -> None:
        self.written: list[bytes] = []
        self._topic = topic
        self._partitions = partitions
        self._pause_s = partitions / records_a_second
        self._ending = threading.Event()
        self._producer = confluent_producer(bootstrap, linger_ms=0)
        self._thread = threading.Thread(target=self._write, name="steady-load", daemon=True)

    def _write(self) -> None:
        while not self._ending.wait(self._pause_s):
            for partition in range(self._partitions):
                value = b"%d" % len(self.written)
                self._producer.produce(self._topic, value, partition=partition)
                self.written.append(value)
            self._producer.poll(0)

    def wait_for_more(self, members: Sequence[Member], count: int) -> None:
        """Until each of these has read so many more records."""
        wanted = {member: len(member.received) + count for member in members}
        wait_for(lambda: all(len(member.received) >= wanted[member] for member in members), members)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()
        assert self._producer.flush(SECONDS_MAX) == 0
