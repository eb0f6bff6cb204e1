"""Administrators' requests with arrays as long as a frame carries: many small steps, and bounds that are named.

The steps are counted, and what they look at; a slow machine changes neither.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.server.conftest import BrokerThread

from ottla.config import describe
from ottla.handlers import alter_configs, create_partitions, describe_configs, incremental_alter_configs, metadata
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.from_brokers import BROKERS_MAX, broker_ids_of_client
from ottla.handlers.configs import described as described_configs
from ottla.handlers.describe_configs import ANSWER_BYTES_MAX, TOO_MUCH
from ottla.model import ErrorCode
from ottla.protocol.generated import alter_configs as alter
from ottla.protocol.generated import incremental_alter_configs as incremental
from ottla.protocol.generated.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from ottla.protocol.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.header import decode_response_header
from ottla.protocol.message import Message
from ottla.security.principal import ANONYMOUS
from ottla.steps import PIECE

TOPIC, BROKER, GROUP = 2, 4, 32
MANY = 20_000

Handle = Callable[[Call, Any], Any]


class Admin:
    """Calls handlers as the dispatcher does, on the broker's own loop, and counts their steps."""

    def __init__(self, running: BrokerThread) -> None:
        self.running = running
        self.steps = 0

    def ask(self, handle: Handle, request: Message, version: int) -> Any:
        async def answer() -> Any:
            services = self.running.broker.services
            assert services is not None
            call = Call(services, version, 1, "test", ANONYMOUS, "127.0.0.1", "PLAINTEXT", services.clock.wall_ms())
            steps = handle(call, request)
            self.steps = 0
            while True:
                try:
                    next(steps)
                except StopIteration as end:
                    return await end.value if asyncio.iscoroutine(end.value) else end.value
                self.steps += 1

        return self.running.run(answer())


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Admin]:
    with BrokerThread(str(tmp_path_factory.mktemp("admin"))) as running:
        running.create_topic("t")
        running.create_topic("own", retention_ms="5")
        yield Admin(running)


def described(*resources: tuple[int, str], keys: list[str] | None = None) -> DescribeConfigsRequest:
    asked = [
        DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
        for kind, name in resources
    ]
    return DescribeConfigsRequest(resources=asked, include_synonyms=True, include_documentation=True)


# -- DescribeConfigs


def test_a_broker_that_is_described_many_times_is_looked_at_once(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[str] = []

    def counted(name: str, config: Any) -> Any:
        looked_at.append(name)
        return describe.broker_entry(name, config)

    monkeypatch.setattr(described_configs, "broker_entry", counted)
    own = admin.running.look(lambda broker: str(broker.broker_id))
    answer: DescribeConfigsResponse = admin.ask(describe_configs.handle, described(*[(BROKER, own)] * MANY), 4)
    assert len(looked_at) == len(set(looked_at)) > 300
    assert admin.steps > MANY
    assert "internal.metadata.log.segment.bytes" not in looked_at
    good = [result for result in answer.results if result.error_code == ErrorCode.NONE]
    assert {id(result) for result in good} == {id(good[0])}
    refused = answer.results[len(good) :]
    assert len(good) > 100
    assert len(refused) == MANY - len(good)
    assert {(each.error_code, each.error_message) for each in refused} == {(ErrorCode.POLICY_VIOLATION, TOO_MUCH)}
    assert sys.getsizeof(answer.results) < 1 << 20


def test_an_answer_fills_its_bound_and_no_more(admin: Admin) -> None:
    own = admin.running.look(lambda broker: str(broker.broker_id))
    for resources in ([(BROKER, own)] * 2_000, [(TOPIC, "t")] * 5_000 + [(TOPIC, "own")] * 5_000):
        answer = admin.ask(describe_configs.handle, described(*resources), 4)
        assert ANSWER_BYTES_MAX // 2 < len(answer.encode(4)) <= ANSWER_BYTES_MAX + 500 * len(resources)


def test_names_of_settings_are_bounded_too(admin: Admin) -> None:
    own = admin.running.look(lambda broker: str(broker.broker_id))
    keys = ["broker.id", *(f"made.up.{number}" for number in range(MANY)), "broker.id"]
    (only,) = admin.ask(describe_configs.handle, described((BROKER, own), keys=keys), 4).results
    assert [setting.name for setting in only.configs] == ["broker.id"]
    assert admin.steps >= MANY // PIECE


def test_topics_that_override_nothing_share_their_settings(admin: Admin) -> None:
    answer = admin.ask(describe_configs.handle, described((TOPIC, "t"), (TOPIC, "own"), (GROUP, "a"), (GROUP, "b")), 4)
    plain, own, a, b = ({each.name: each for each in result.configs} for result in answer.results)
    assert [name for name in plain if plain[name] is not own[name]] == ["retention.ms"]
    assert own["retention.ms"].value == "5"
    assert all(a[name] is b[name] for name in a)


def test_a_result_for_each_resource_that_there_is_not(admin: Admin) -> None:
    names = [f"none-{number}" for number in range(MANY)]
    answer = admin.ask(describe_configs.handle, described(*((TOPIC, name) for name in names * 2)), 4)
    assert [result.resource_name for result in answer.results] == names * 2
    assert {result.error_code for result in answer.results} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    repeated = answer.results[: describe_configs.REFUSALS_KEPT_MAX]
    assert all(first is again for first, again in zip(repeated, answer.results[MANY:], strict=False))


def test_what_did_not_fit_is_not_kept(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    described_groups: list[str] = []
    whole = described_configs.SettingsOf.all

    def counted(self: Any, asked: Any) -> Any:
        described_groups.append(asked.name)
        return whole(self, asked)

    monkeypatch.setattr(described_configs.SettingsOf, "all", counted)
    answer = admin.ask(describe_configs.handle, described(*((GROUP, f"g-{n}") for n in range(MANY))), 4)
    good = sum(result.error_code == ErrorCode.NONE for result in answer.results)
    assert 1_000 < good < MANY
    assert len(described_groups) == good + 1


# -- Metadata


def named(*names: str | None) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False)


def topics_of(raw: bytes, version: int) -> list[Any]:
    _, _, start = decode_response_header(raw[4:], MetadataResponse.API_KEY, version)
    answer, end = MetadataResponse.decode(raw[4:], version, start)
    assert end == len(raw) - 4
    return answer.topics


@pytest.mark.parametrize("version", [1, 9, 12, 13])
def test_a_name_that_is_asked_for_many_times_is_answered_once(admin: Admin, version: int) -> None:
    found = topics_of(admin.ask(metadata.handle, named(*[""] * MANY, "t", *["t"] * MANY), version), version)
    assert [(topic.error_code, topic.name) for topic in found] == [
        (ErrorCode.INVALID_TOPIC_EXCEPTION, ""),
        (ErrorCode.NONE, "t"),
    ]
    assert admin.steps >= 2 * MANY // PIECE


def test_many_names_that_nobody_has(admin: Admin) -> None:
    names = [f"none-{number}" for number in range(MANY)]
    found = topics_of(admin.ask(metadata.handle, named(*names), 9), 9)
    assert [topic.name for topic in found] == names
    assert {topic.error_code for topic in found} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert admin.steps >= MANY // PIECE


def test_a_request_that_is_refused_whole_goes_in_steps_as_well(admin: Admin) -> None:
    found = topics_of(admin.ask(metadata.handle, named(*[None] * MANY), 10), 10)
    assert len(found) == MANY
    assert {topic.error_code for topic in found} == {ErrorCode.INVALID_REQUEST}
    assert admin.steps >= MANY // PIECE


# -- changes


def test_changes_of_many_resources_are_answered_in_their_order(admin: Admin) -> None:
    names = [f"none-{number}" for number in range(MANY)]
    change = incremental.AlterableConfig(name="retention.ms", config_operation=0, value="7")
    changes = [
        incremental.AlterConfigsResource(resource_type=TOPIC, resource_name=name, configs=[change])
        for name in [*names, "t"]
    ]
    answer = admin.ask(
        incremental_alter_configs.handle, incremental.IncrementalAlterConfigsRequest(resources=changes), 1
    )
    assert [result.resource_name for result in answer.responses] == [*names, "t"]
    assert [result.error_code for result in answer.responses[-2:]] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
    ]
    assert admin.steps > MANY
    assert admin.running.look(lambda broker: broker.metadata.topic_config("t")["retention.ms"]) == "7"


def test_more_changes_than_a_controller_writes_at_once_change_nothing(admin: Admin) -> None:
    setting = alter.AlterableConfig(name="consumer.session.timeout.ms", value="50000")
    groups = [
        alter.AlterConfigsResource(resource_type=GROUP, resource_name=f"g-{number}", configs=[setting])
        for number in range(10_001)
    ]
    answer = admin.ask(alter_configs.handle, alter.AlterConfigsRequest(resources=groups), 2)
    assert {result.error_code for result in answer.responses} == {ErrorCode.POLICY_VIOLATION}
    assert admin.running.look(lambda broker: broker.metadata.group_config("g-0")) == {}
    answer = admin.ask(alter_configs.handle, alter.AlterConfigsRequest(resources=groups[:200]), 2)
    assert {result.error_code for result in answer.responses} == {ErrorCode.NONE}
    assert admin.running.look(lambda broker: broker.metadata.group_config("g-199")) == {
        "consumer.session.timeout.ms": "50000"
    }


def test_more_partitions_for_many_topics(admin: Admin) -> None:
    names = [f"none-{number}" for number in range(MANY)]
    topics = [CreatePartitionsTopic(name=name, count=2, assignments=None) for name in [*names, "none-0", "t"]]
    topics[-1].assignments = [CreatePartitionsAssignment(broker_ids=[1]) for _ in range(MANY)]
    request = CreatePartitionsRequest(topics=topics, timeout_ms=60_000, validate_only=True)
    results = {
        result.name: (result.error_code, result.error_message)
        for result in admin.ask(create_partitions.handle, request, 3).results
    }
    assert len(results) == MANY + 1
    assert results["none-0"] == (ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    assert results["none-1"] == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    assert results["t"][0] == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert admin.steps > MANY


def test_a_replica_list_costs_what_it_is_long(admin: Admin) -> None:
    own = admin.running.look(lambda broker: int(broker.broker_id))
    places = [CreatePartitionsAssignment(broker_ids=[own] * 1_000_000)]
    topic = CreatePartitionsTopic(name="t", count=2, assignments=places)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=60_000, validate_only=True)
    (result,) = admin.ask(create_partitions.handle, request, 3).results
    assert (result.error_code, result.error_message) == (
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        f"The manual partition assignment includes the broker {own} more than once.",
    )


def test_more_replicas_than_there_can_be_brokers_are_refused_without_a_look_at_each(admin: Admin) -> None:
    places = [CreatePartitionsAssignment(broker_ids=list(range(1_000_000)))]
    topic = CreatePartitionsTopic(name="t", count=2, assignments=places)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=60_000, validate_only=True)
    (result,) = admin.ask(create_partitions.handle, request, 3).results
    assert result.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert broker_ids_of_client(places[0].broker_ids) == tuple(range(BROKERS_MAX + 1))
    assert broker_ids_of_client([3, 1, 2]) == (3, 1, 2)


def test_settings_of_one_resource_have_a_bound(admin: Admin) -> None:
    """The same one said again and again would be one in the end, and what stands behind them is not passed over."""
    setting = alter.AlterableConfig(name="retention.ms", value="9")
    many = alter.AlterConfigsResource(resource_type=TOPIC, resource_name="t", configs=[setting] * 10_001)
    answer = admin.ask(alter_configs.handle, alter.AlterConfigsRequest(resources=[many]), 2)
    (result,) = answer.responses
    assert (result.error_code, result.error_message) == (
        ErrorCode.POLICY_VIOLATION,
        "more than 10000 changes in one request",
    )
    assert admin.running.look(lambda broker: broker.metadata.topic_config("t").get("retention.ms")) != "9"
