"""One request that names the same few things some hundred thousand times, or as many things as there are not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bench.attacks.attack import Attack, Frames
from bench.attacks.groups import prepare_group
from bench.attacks.long_frames import repeated
from ottla.protocol.generated.consumer_group_describe import ConsumerGroupDescribeRequest
from ottla.protocol.generated.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.generated.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ottla.protocol.generated.describe_groups import DescribeGroupsRequest
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.generated.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from ottla.protocol.message import Message

METADATA, OFFSET_FETCH, FIND_COORDINATOR, DESCRIBE_GROUPS, CREATE_TOPICS, DESCRIBE_CONFIGS = 3, 9, 10, 15, 19, 32
CONSUMER_GROUP_DESCRIBE = 69
OF_A_TOPIC, OF_A_BROKER = 2, 4
MANY = 200_000


def same(element: Any) -> Callable[[int, int], list[Any]]:
    """The same element over and over."""
    return lambda _, how_many: [element] * how_many


def frames(
    key: int, version: int, message: Callable[[list[Any]], Message], element: Any, times: int
) -> Callable[[], Sequence[bytes]]:
    return lambda: [repeated(key, version, message, same(element), count_max=times)]


def resource(kind: int, name: str) -> DescribeConfigsResource:
    return DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)


def new_topics(count: int, **fields: Any) -> bytes:
    """CreateTopics of as many, each of its own name."""

    def elements(first: int, how_many: int) -> list[CreatableTopic]:
        return [
            CreatableTopic(name=f"topic-{number:06}", num_partitions=1, replication_factor=1)
            for number in range(first, first + how_many)
        ]

    return repeated(
        CREATE_TOPICS,
        7,
        lambda topics: CreateTopicsRequest(topics=topics, timeout_ms=60_000, **fields),
        elements,
        count_max=count,
    )


def metadata(times: int) -> Callable[[], Sequence[bytes]]:
    return frames(
        METADATA,
        8,
        lambda names: MetadataRequest(topics=names, allow_auto_topic_creation=False),
        MetadataRequestTopic(name=""),
        times,
    )


def attacks() -> list[Attack]:
    return [
        Frames(
            "configs-broker",
            "DescribeConfigs of one broker, 20,000 times in a request",
            frames(
                DESCRIBE_CONFIGS, 4, lambda of: DescribeConfigsRequest(resources=of), resource(OF_A_BROKER, "1"), 20_000
            ),
        ),
        Frames(
            "configs-topic",
            "DescribeConfigs of one topic, 200,000 times in a request",
            frames(
                DESCRIBE_CONFIGS, 4, lambda of: DescribeConfigsRequest(resources=of), resource(OF_A_TOPIC, "t"), MANY
            ),
            topics={"t": 1},
        ),
        Frames("metadata-5m", "Metadata of five million empty names", metadata(5_000_000)),
        Frames("metadata-20m", "Metadata of twenty million empty names", metadata(20_000_000)),
        Frames(
            "create-topics",
            "CreateTopics of 200,000 names, to validate only",
            lambda: [new_topics(MANY, validate_only=True)],
        ),
        Frames(
            "offset-fetch",
            "OffsetFetch of one group, 200,000 times in a request",
            frames(
                OFFSET_FETCH,
                9,
                lambda groups: OffsetFetchRequest(groups=groups),
                OffsetFetchRequestGroup(group_id="g", topics=None),
                MANY,
            ),
            before=prepare_group,
        ),
        Frames(
            "find-coordinator",
            "FindCoordinator of one group, 200,000 times in a request",
            frames(FIND_COORDINATOR, 6, lambda keys: FindCoordinatorRequest(coordinator_keys=keys), "g", MANY),
            before=prepare_group,
        ),
        Frames(
            "describe-groups",
            "DescribeGroups of one group, 200,000 times in a request",
            frames(DESCRIBE_GROUPS, 5, lambda groups: DescribeGroupsRequest(groups=groups), "g", MANY),
            before=prepare_group,
        ),
        Frames(
            "describe-consumers",
            "ConsumerGroupDescribe of one group, 200,000 times in a request",
            frames(
                CONSUMER_GROUP_DESCRIBE, 1, lambda groups: ConsumerGroupDescribeRequest(group_ids=groups), "g", MANY
            ),
            before=prepare_group,
        ),
    ]
