"""A topic with very many partitions comes, and goes."""

from __future__ import annotations

import threading
import time

from bench.attacks.attack import Attack, Attacker, Bound, Outcome, Victim
from bench.wire import create_topic
from ottla.protocol.generated.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.generated.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.header import RequestHeader, encode_request
from ottla.protocol.message import Message

CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS = 19, 20, 37
TOPIC = "wide"
PARTITIONS = 10_000
TIMEOUT_MS = 60_000
#: Between an honest client's topics.
BETWEEN_SECONDS = 0.05
#: What so many partitions take in memory is theirs.
BOUND = Bound(memory_mb=None, seconds=3)


def request(key: int, version: int, message: Message) -> bytes:
    return encode_request(
        RequestHeader(api_key=key, api_version=version, correlation_id=1, client_id="attack"), message
    )


class WideTopicComes(Attack):
    name = "create-partitions"
    sends = f"CreateTopics of one topic with {PARTITIONS:,} partitions"
    bound = BOUND

    def run(self, victim: Victim) -> Outcome:
        topic = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
        frame = request(CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS))
        with victim.connect() as attacker:
            return Outcome(sent=len(frame), answers=[attacker.ask(frame)])


class WideTopicBesideSmallOnes(Attack):
    name = "create-beside"
    sends = "the same, while others create topics of one partition"
    bound = Bound(memory_mb=None, seconds=3, honest_seconds=3)

    def run(self, victim: Victim) -> Outcome:
        honest = Honest(victim)
        honest.start()
        wide = WideTopicComes().run(victim)
        honest.end()
        wide.said = f"{honest.count} small topics created"
        wide.honest_seconds = honest.longest
        wide.faults += honest.faults
        return wide


class Honest(threading.Thread):
    """Creates one small topic after the other, and remembers the longest that one took."""

    def __init__(self, victim: Victim) -> None:
        super().__init__(daemon=True)
        self._victim = victim
        self._ends = threading.Event()
        self.count = 0
        self.longest = 0.0
        self.faults: list[str] = []

    def run(self) -> None:
        try:
            with self._victim.connect() as client:
                while not self._ends.is_set():
                    self._create(client)
                    self._ends.wait(BETWEEN_SECONDS)
        except OSError as failed:
            self.faults.append(f"an honest client failed: {failed}")

    def _create(self, client: Attacker) -> None:
        self.count += 1
        topic = CreatableTopic(name=f"small-{self.count}", num_partitions=1, replication_factor=1)
        began = time.monotonic()
        answer = client.ask(request(CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)))
        self.longest = max(self.longest, time.monotonic() - began)
        if set(answer.codes()) != {"NONE"}:
            self.faults.append(f"an honest request was answered with {dict(answer.codes())}")

    def end(self) -> None:
        self._ends.set()
        self.join()


class WideGrowth(Attack):
    name = "grow-partitions"
    sends = f"CreatePartitions of a topic with one partition, to {PARTITIONS:,}"
    bound = BOUND

    def prepare(self, victim: Victim) -> None:
        create_topic(victim.port, TOPIC, 1)

    def run(self, victim: Victim) -> Outcome:
        topic = CreatePartitionsTopic(name=TOPIC, count=PARTITIONS, assignments=None)
        message = CreatePartitionsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
        frame = request(CREATE_PARTITIONS, 3, message)
        with victim.connect() as attacker:
            return Outcome(sent=len(frame), answers=[attacker.ask(frame)])


class WideTopicGoes(Attack):
    name = "delete-partitions"
    sends = f"DeleteTopics of one topic with {PARTITIONS:,} partitions"
    bound = BOUND

    def prepare(self, victim: Victim) -> None:
        create_topic(victim.port, TOPIC, PARTITIONS)

    def run(self, victim: Victim) -> Outcome:
        message = DeleteTopicsRequest(topics=[DeleteTopicState(name=TOPIC)], timeout_ms=TIMEOUT_MS)
        frame = request(DELETE_TOPICS, 6, message)
        with victim.connect() as attacker:
            return Outcome(sent=len(frame), answers=[attacker.ask(frame)])


def attacks() -> list[Attack]:
    return [WideTopicComes(), WideTopicBesideSmallOnes(), WideGrowth(), WideTopicGoes()]
