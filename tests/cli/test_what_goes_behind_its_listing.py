"""A topic, or a group, that has gone when it is asked about, and that nobody has named: the others are shown."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Position

from ottla.cli import faults
from ottla.client.admin.admin import Admin
from ottla.client.admin.group_results import GroupListing
from ottla.client.admin.results import TopicDescription
from ottla.testing import InProcessBroker
from tests.cli.conftest import Command

GONE = "gone"


@pytest.fixture
def topic_that_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Among all topics there is one that goes as soon as they are known."""
    describe = Admin.describe_topics

    async def known(self: Admin, names: Sequence[str] | None = None) -> dict[str, TopicDescription]:
        found = await describe(self, names)
        if names is None:
            found[GONE] = dataclasses.replace(next(iter(found.values())), name=GONE)
        return found

    monkeypatch.setattr(Admin, "describe_topics", known)


@pytest.fixture
def group_that_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    listing = Admin.list_groups

    async def listed(self: Admin, *args: Any, **options: Any) -> list[GroupListing]:
        gone = GroupListing(group_id=GONE, protocol_type="consumer", state="Stable", type="classic")
        return [*await listing(self, *args, **options), gone]

    monkeypatch.setattr(Admin, "list_groups", listed)


def make_group(broker: InProcessBroker, name: str, topic: str) -> None:
    """One that has committed something."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": name, "log_level": 0})
    consumer.commit(offsets=[Position(topic, 0, 0)], asynchronous=False)
    consumer.close()


@pytest.mark.usefixtures("topic_that_goes")
@pytest.mark.parametrize("more", [[], ["-a"]])
def test_all_topics_are_described(
    in_process: Command, ottla_broker: InProcessBroker, topic: str, more: list[str]
) -> None:
    ran = in_process("topic", "describe", "-b", ottla_broker.bootstrap, "-o", "json", *more)
    assert (ran.code, ran.err) == (faults.OK, "")
    assert topic in (named := [one["topic"] for one in json.loads(ran.out)])
    assert GONE not in named


@pytest.mark.usefixtures("topic_that_goes")
def test_topics_that_keep_everything_are_named(in_process: Command, ottla_broker: InProcessBroker, topic: str) -> None:
    ran = in_process("topic", "confirm", "-b", ottla_broker.bootstrap)
    assert (ran.code, ran.err) == (faults.OK, "")


@pytest.mark.usefixtures("group_that_goes")
def test_all_groups_are_described(in_process: Command, ottla_broker: InProcessBroker, topic: str) -> None:
    make_group(ottla_broker, group := f"readers-of-{topic}", topic)
    ran = in_process("group", "describe", "--all-groups", "-b", ottla_broker.bootstrap, "-o", "json")
    assert (ran.code, ran.err) == (faults.OK, "")
    assert group in (named := [one["group"] for one in json.loads(ran.out)])
    assert GONE not in named
    named_alone = in_process("group", "describe", GONE, "-b", ottla_broker.bootstrap)
    assert named_alone.code == faults.NOT_FOUND


@pytest.mark.usefixtures("group_that_goes")
def test_all_groups_are_deleted(in_process: Command) -> None:
    with InProcessBroker() as broker:
        broker.create_topic("t")
        make_group(broker, "readers", "t")
        ran = in_process("group", "delete", "--all-groups", "--yes", "-b", broker.bootstrap)
    assert (ran.code, ran.err) == (faults.OK, "")
    assert ran.lines[-1] == "deleted readers"


def test_the_only_topic_goes_while_health_is_looked_at(in_process: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with InProcessBroker() as broker:
        broker.create_topic("only")
        describe = Admin.describe_configs

        async def described(self: Admin, *args: Any, **options: Any) -> Any:
            await self.delete_topics(["only"])
            return await describe(self, *args, **options)

        monkeypatch.setattr(Admin, "describe_configs", described)
        ran = in_process("cluster", "health", "-b", broker.bootstrap)
    assert (ran.code, ran.err) == (faults.OK, "")
