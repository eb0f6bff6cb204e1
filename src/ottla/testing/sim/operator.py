"""Somebody who creates, changes and deletes topics, and remembers what was acknowledged.

An answer that never came leaves it open whether the request was carried out, so it is made again until there is one;
"exists already" and "unknown" are then answers as well. In the end the cluster must hold exactly what was acknowledged.

Such a request may also arrive later, and do its work then: no topic gets a name again that one may still be on its way
for, and topics are deleted by their ids. A topic whose deletion waits for dead brokers still has its name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ottla.model import ErrorCode
from ottla.protocol.generated.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.generated.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ottla.protocol.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.generated.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.generated.metadata import MetadataRequest
from ottla.testing.sim.history import HistoryFault
from ottla.testing.sim.producer import Routes
from ottla.testing.sim.trace import Trace
from ottla.testing.sim.wire import Unreachable

TOPIC_RESOURCE: Final = 2
#: DescribeConfigs: the source of what a topic itself overrides.
DYNAMIC_TOPIC: Final = 1
#: Nothing is known of what became of the request.
UNDECIDED: Final = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)
#: Nothing was done, and later it may be: too few brokers live.
_TOO_EARLY: Final = frozenset({ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.BROKER_NOT_AVAILABLE})


_NO_ID: Final = bytes(16)


@dataclass(slots=True)
class OperatedTopic:
    partitions: int
    configs: dict[str, str] = field(default_factory=dict)
    #: Empty until an answer has named it.
    id: bytes = b""


class Operator:
    def __init__(self, client: Routes, *, replication_factor: int = 1, trace: Trace | None = None) -> None:
        self._client = client
        self._replication_factor = replication_factor
        self._trace = trace
        #: As acknowledged.
        self.topics: dict[str, OperatedTopic] = {}
        #: Names that are not to be given again: a request that nobody has answered may still be on its way.
        self.leaving: set[str] = set()
        #: Of those that were deleted, by name.
        self._former: dict[str, set[bytes]] = {}

    async def create(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=self._replication_factor,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )

        async def attempt() -> tuple[int, Any]:
            while True:
                answer = await self._client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
                error, topic_id = answer.topics[0].error_code, bytes(answer.topics[0].topic_id)
                if error == ErrorCode.TOPIC_ALREADY_EXISTS:
                    topic_id = await self._id_of(name)
                    if topic_id == _NO_ID or topic_id in self._former.get(name, ()):
                        await asyncio.sleep(0.15)  # the one before is not gone yet
                        continue
                return error, topic_id

        topic_id = await self._until_done(f"create {name}", name, attempt, ErrorCode.TOPIC_ALREADY_EXISTS)
        self.topics[name] = OperatedTopic(partitions, dict(configs), topic_id or b"")

    async def _id_of(self, name: str) -> bytes:
        answer = await self._client.ask(MetadataRequest(topics=None), 12)
        return next((bytes(topic.topic_id) for topic in answer.topics if topic.name == name), _NO_ID)

    async def grow(self, name: str, partitions: int) -> None:
        topic = CreatePartitionsTopic(name=name, count=partitions, assignments=None)

        async def attempt() -> tuple[int, Any]:
            answer = await self._client.ask(CreatePartitionsRequest(topics=[topic], timeout_ms=10_000), 3)
            return answer.results[0].error_code, None

        await self._until_done(f"grow {name}", name, attempt, ErrorCode.INVALID_PARTITIONS)
        self.topics[name].partitions = partitions

    async def alter(self, name: str, key: str, value: str) -> None:
        resource = AlterConfigsResource(
            resource_type=TOPIC_RESOURCE,
            resource_name=name,
            configs=[AlterableConfig(name=key, config_operation=0, value=value)],
        )

        async def attempt() -> tuple[int, Any]:
            answer = await self._client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
            return answer.responses[0].error_code, None

        await self._until_done(f"alter {name}", name, attempt, ErrorCode.NONE)
        self.topics[name].configs[key] = value

    async def delete(self, name: str) -> None:
        topic_id = self.topics[name].id
        known = DeleteTopicState(name=None, topic_id=topic_id) if topic_id else DeleteTopicState(name=name)

        async def attempt() -> tuple[int, Any]:
            answer = await self._client.ask(DeleteTopicsRequest(topics=[known], timeout_ms=10_000), 6)
            return answer.responses[0].error_code, None

        gone = ErrorCode.UNKNOWN_TOPIC_ID if topic_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not topic_id:
            self.leaving.add(name)
        await self._until_done(f"delete {name}", name if not topic_id else None, attempt, gone)
        self._former.setdefault(name, set()).add(topic_id)
        del self.topics[name]

    async def _until_done(self, what: str, name: str | None, attempt: Any, done_already: ErrorCode) -> Any:
        """The second part of the answer. An attempt that nobody knows the end of spends the topic's name, if given."""
        undecided = False
        self._say(what)
        while True:
            try:
                number, answered = await attempt()
            except Unreachable as fault:
                self._say(f"{what}: {fault}")
                undecided = True
                if name is not None:
                    self.leaving.add(name)
                await asyncio.sleep(0.15)
                continue
            error = ErrorCode(number)
            self._say(f"{what}: {error.name}")
            if error == ErrorCode.NONE:
                return answered
            if self._replication_factor > 1 and error in _TOO_EARLY:
                await asyncio.sleep(0.5)
                continue
            if error == done_already and undecided:
                return answered
            if error not in UNDECIDED:
                raise HistoryFault(f"{what}: {error.name}")
            # The broker that was asked has asked the controller, and that request is on its way still, perhaps.
            undecided = True
            if name is not None:
                self.leaving.add(name)
            await asyncio.sleep(0.15)

    def _say(self, what: str) -> None:
        if self._trace is not None:
            self._trace.say("operator", what)

    # What the cluster says

    async def check(self, client: Routes, ignored: Container[str] = ()) -> None:
        """Raises HistoryFault where the cluster does not hold exactly what was acknowledged; Unreachable where a leader
        is being elected: a session may end behind the last fault, of a broker that was off the tree until then."""
        answer = await client.ask(MetadataRequest(topics=None), 12)
        found = {
            topic.name: topic
            for topic in answer.topics
            # One of a spent name may have come back: a request to create it was on its way for long.
            if topic.name not in ignored and (topic.name in self.topics or topic.name not in self.leaving)
        }
        if found.keys() != self.topics.keys():
            raise HistoryFault(f"topics {sorted(found)}, and acknowledged were {sorted(self.topics)}")
        for name, topic in self.topics.items():
            answered = found[name]
            if any(p.error_code == ErrorCode.LEADER_NOT_AVAILABLE for p in answered.partitions):
                raise Unreachable(f"{name} is not served yet: {answered}")
            if answered.error_code != ErrorCode.NONE or any(
                p.error_code != ErrorCode.NONE for p in answered.partitions
            ):
                raise HistoryFault(f"{name} is not served: {answered}")
            if sorted(p.partition_index for p in answered.partitions) != list(range(topic.partitions)):
                raise HistoryFault(f"{name}: {len(answered.partitions)} partitions instead of {topic.partitions}")
            if topic.id and answered.topic_id != topic.id:
                raise HistoryFault(f"{name} has the id {answered.topic_id.hex()}, and was created as {topic.id.hex()}")
            topic.id = answered.topic_id
            configs = await overrides(client, name)
            if configs != topic.configs:
                raise HistoryFault(f"{name}: {configs}, and acknowledged was {topic.configs}")


async def overrides(client: Routes, name: str) -> dict[str, str]:
    """What a topic itself sets."""
    resource = DescribeConfigsResource(resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None)
    answer = await client.ask(DescribeConfigsRequest(resources=[resource]), 4)
    return {each.name: each.value for each in answer.results[0].configs if each.config_source == DYNAMIC_TOPIC}
