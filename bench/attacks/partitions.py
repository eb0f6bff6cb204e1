"""A topic with very many partitions comes, and goes."""

from __future__ import annotations

from bench.attacks.attack import Attack, Bound, Outcome, Victim
from bench.wire import create_topic
from ottla.protocol.generated.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.header import RequestHeader, encode_request
from ottla.protocol.message import Message

CREATE_TOPICS, DELETE_TOPICS = 19, 20
TOPIC = "wide"
PARTITIONS = 10_000
TIMEOUT_MS = 60_000
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
    return [WideTopicComes(), WideTopicGoes()]
