"""What other tools and people write into the tree is carried out, and watches do not grow with partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.controller.several import Brokers, ids

from ottla.controller.interface import (
    ConfigChanges,
    ConfigOverrides,
    ConfigTarget,
    ConfigTargetType,
    TopicRef,
    TopicToCreate,
)
from ottla.coordination.interface import Stat, Watch
from ottla.coordination.local import LocalSession
from ottla.coordination.notifications import (
    CONFIG_CHANGE_PREFIX,
    CONFIG_CHANGES,
    decode_config_change,
    encode_config_change,
)
from ottla.coordination.znodes import decode_config, decode_topic, encode_config
from ottla.model import ZERO_TOPIC_ID, ErrorCode, TopicPartition

RETENTION = {"retention.ms": "7"}
#: Of one broker, of all, and of a group.
OVERRIDDEN = (
    ConfigTarget(ConfigTargetType.BROKER, "2"),
    ConfigTarget(ConfigTargetType.BROKER, ""),
    ConfigTarget(ConfigTargetType.GROUP, "a/b"),
)
OVERRIDES = dict(
    zip(
        OVERRIDDEN,
        ({"log.cleaner.threads": "2"}, {"log.retention.ms": "8"}, {"consumer.session.timeout.ms": "50000"}),
        strict=True,
    )
)
CONFIG_NODES = ("/config/topics/orders", "/config/brokers/2", "/config/brokers/<default>", "/config/groups/a%2Fb")


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    made = Brokers()
    made.settle(made.begin())
    yield made
    made.close()


def assignment(*partitions: tuple[int, ...], extra: str = "") -> bytes:
    """As tools of Kafka before 2.8 write it, which knew no ids of topics."""
    listed = ",".join(f'"{number}":{list(replicas)}' for number, replicas in enumerate(partitions))
    return f'{{"version":1,"partitions":{{{listed}}}{extra}}}'.encode()


def test_a_topic_that_was_put_into_the_tree_is_made(brokers: Brokers) -> None:
    for name in ("first", "second"):
        # `kafka-topics --zookeeper` writes these two, and in this order.
        brokers.settle(brokers.person.create(f"/config/topics/{name}", encode_config(RETENTION)))
        brokers.settle(brokers.person.create(f"/brokers/topics/{name}", assignment((2, 3), (3, 1))))
        assert brokers.states(name) == [(2, 0, (2, 3)), (3, 0, (3, 1))]
        assert [brokers.seen_by(number, name).leader for number in (1, 2, 3)] == [2, 2, 2]
        data = brokers.person.store._tree.nodes[f"/brokers/topics/{name}"].data
        assert decode_topic("", data).topic_id == brokers.seen_by(1, name).topic_id != ZERO_TOPIC_ID
        assert brokers.all[3].cache.topic_config(name) == RETENTION
        assert brokers.all[3].roles[TopicPartition(name, 1)].is_new
        # It is one as any other.
        brokers.settle(brokers.controller.delete_topics([TopicRef(name)]))
        assert not brokers.exists(f"/brokers/topics/{name}")


def test_partitions_that_were_added_in_the_tree_are_made(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 2, 3))
    topic_id = brokers.seen_by(1, "orders").topic_id
    partitions: list[tuple[int, ...]] = [(2, 3)]
    for _ in range(3):
        partitions.append((3, 1))
        brokers.settle(brokers.person.set("/brokers/topics/orders", assignment(*partitions)))
        assert brokers.states("orders") == [(2, 0, (2, 3)), *[(3, 0, (3, 1))] * (len(partitions) - 1)]
        assert brokers.seen_by(2, "orders", len(partitions) - 1).leader == 3
        # The tool knew of no id: the topic has kept its own.
        data = brokers.person.store._tree.nodes["/brokers/topics/orders"].data
        assert decode_topic("", data).topic_id == topic_id == brokers.seen_by(1, "orders").topic_id


def test_a_topic_that_was_marked_in_the_tree_is_deleted(brokers: Brokers) -> None:
    for _ in range(2):
        brokers.settle(brokers.create("orders", 2, 3))
        brokers.settle(brokers.person.create("/admin/delete_topics/orders"))
        assert not brokers.exists("/brokers/topics/orders")
        assert not brokers.exists("/admin/delete_topics/orders")
        assert not any(broker.roles for broker in brokers.all.values())
        assert "orders" not in brokers.all[1].cache.topics
    # There is no such topic.
    brokers.settle(brokers.person.create("/admin/delete_topics/none"))
    assert not brokers.exists("/admin/delete_topics/none")


def test_marks_are_taken_away_where_deletion_is_disabled() -> None:
    made = Brokers(delete_topics=False)
    made.settle(made.begin())
    made.settle(made.create("orders", 2, 3))
    made.settle(made.person.create("/admin/delete_topics/orders"))
    assert made.exists("/brokers/topics/orders")
    assert not made.exists("/admin/delete_topics/orders")
    made.close()


def test_a_topic_that_was_taken_out_by_hand_is_gone_for_clients_and_its_logs_stay(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 2, 3))

    async def remove() -> None:
        from ottla.controller.loading import below

        for path in await below(brokers.person, "/brokers/topics/orders"):
            await brokers.person.delete(path)

    brokers.settle(remove())
    assert "orders" not in brokers.all[1].cache.topics
    assert TopicPartition("orders", 0) in brokers.all[2].roles
    # Another topic under its name is another one.
    brokers.settle(brokers.person.create("/brokers/topics/orders", assignment((3, 1))))
    assert brokers.seen_by(1, "orders").leader == 3


def test_a_topic_that_was_made_again_between_two_looks_is_another_one(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 2, 3))
    before = brokers.seen_by(1, "orders").topic_id

    async def replace() -> None:
        from ottla.controller.loading import below

        held = asyncio.Event()
        turn = asyncio.ensure_future(brokers.controller.tenure.run(held.wait))
        await asyncio.sleep(0)
        for path in await below(brokers.person, "/brokers/topics/orders"):
            await brokers.person.delete(path)
        extra = ',"topic_id":"gf4U0uiLT_S_rrKHSCmwug","adding_replicas":{},"removing_replicas":{}'
        await brokers.person.create("/brokers/topics/orders", assignment((3, 1), extra=extra))
        held.set()
        await turn

    brokers.settle(replace())
    after = brokers.seen_by(1, "orders")
    assert after.topic_id != before
    assert (after.leader, brokers.state("orders")) == (3, (3, 0, (3, 1)))
    # Its node is watched as that of any other.
    brokers.settle(brokers.person.set("/brokers/topics/orders", assignment((3, 1), (1, 2))))
    assert brokers.seen_by(2, "orders", 1).leader == 1


def test_assignments_that_were_changed_by_hand_are_left_as_they_were(brokers: Brokers, log_lines: list[str]) -> None:
    brokers.settle(brokers.create_all("orders", [(2, 3), (3, 2)]))
    brokers.settle(brokers.person.set("/brokers/topics/orders", assignment((1, 3))))
    assert "changed by hand" in "\n".join(log_lines)
    assert [brokers.seen_by(1, "orders", number).replicas for number in (0, 1)] == [(2, 3), (3, 2)]
    brokers.settle(brokers.create("more", 1))


def test_nodes_that_are_damaged_while_the_controller_runs_stop_nothing(brokers: Brokers, log_lines: list[str]) -> None:
    brokers.settle(brokers.create("orders", 2, 3))
    brokers.settle(brokers.person.set("/brokers/topics/orders", b"{"))

    async def work() -> None:
        await asyncio.sleep(30)
        (made,) = await brokers.controller.create_topics([TopicToCreate("more", assignments=((0, ids(2)),))])
        assert made.error is ErrorCode.NONE
        await brokers.person.delete("/controller")

    brokers.settle(work())
    # Not even the next controller, which has never read the topic: brokers serve it on, and clients find it.
    assert [brokers.seen_by(1, name).leader for name in ("more", "orders")] == [2, 2]
    assert "the znode /brokers/topics/orders is damaged" in "\n".join(log_lines)
    assert TopicPartition("orders", 0) in brokers.all[2].roles
    brokers.settle(brokers.person.set("/brokers/topics/orders", assignment((2, 3))))
    assert brokers.seen_by(1, "orders").leader == 2


def test_what_is_damaged_is_as_it_was_known(brokers: Brokers) -> None:
    brokers.settle(brokers.create_all("orders", [(2, 3), (3, 2)], RETENTION))
    for path in ("/brokers/topics/orders", "/config/topics/orders", "/brokers/topics/orders/partitions/1/state"):
        brokers.settle(brokers.person.set(path, b"{"))
    brokers.controller.tenure.core.stale = True
    brokers.settle(brokers.create("more", 1))
    assert [brokers.seen_by(1, "orders", number).leader for number in (0, 1)] == [2, 3]
    assert brokers.all[1].cache.topic_config("orders") == RETENTION
    # The state that nobody can read is not written over; all others are.
    brokers.settle(brokers.die(3))
    assert brokers.seen_by(1, "orders").isr == (2,)
    assert brokers.person.store._tree.nodes["/brokers/topics/orders/partitions/1/state"].data == b"{"


@pytest.mark.parametrize("is_known", [True, False], ids=["known before", "to nobody"])
def test_what_was_due_while_a_state_was_damaged_is_done_when_it_is_mended(brokers: Brokers, is_known: bool) -> None:
    """No watch tells that it can be read again."""
    path = "/brokers/topics/orders/partitions/0/state"
    brokers.settle(brokers.create_all("orders", [(2, 3)]))
    before = brokers.person.store._tree.nodes[path].data
    brokers.settle(brokers.person.set(path, b"{"))
    if not is_known:
        brokers.settle(
            brokers.die(1)
        )  # the controller: the next one has never read it, and its broker was just started
        brokers.settle(brokers.start(1))
        brokers.settle(brokers.person.delete("/controller"))
    brokers.settle(brokers.die(2))
    assert brokers.person.store._tree.nodes[path].data == b"{"
    brokers.settle(brokers.person.set(path, before))
    brokers.settle(asyncio.sleep(6))
    assert brokers.state("orders")[::2] == (3, (3,))
    assert brokers.seen_by(3, "orders").leader == 3
    # The next change names the version that it has now.
    brokers.settle(brokers.start(2))
    brokers.settle(brokers.change_isr("orders", 3, 2))
    assert brokers.state("orders")[2] == (3, 2)


def test_what_is_damaged_is_for_the_next_controller_as_its_broker_knew_it(brokers: Brokers) -> None:
    brokers.settle(brokers.create_all("orders", [(2, 3), (3, 2)], RETENTION))
    for target in OVERRIDDEN:
        brokers.settle(brokers.controller.alter_configs([ConfigOverrides(target, OVERRIDES[target])]))
    before = brokers.all[1].cache.topics["orders"]
    for path in ("/brokers/topics/orders", "/brokers/topics/orders/partitions/1/state", *CONFIG_NODES):
        brokers.settle(brokers.person.set(path, b"{"))
    gone: list[str] = []
    for broker in brokers.all.values():
        broker.cache.listen(lambda update: gone.extend(update.topics_deleted))
    for _ in range(2):
        brokers.settle(brokers.person.delete("/controller"))
        brokers.settle(brokers.create(f"more-{_}", 1))
    for broker in brokers.all.values():
        cache = broker.cache
        after = cache.topics["orders"]
        assert (after.id, [state.leader for state in after.partitions]) == (before.id, [2, 3])
        assert (cache.topic_config("orders"), cache.broker_config(2)) == (RETENTION, {"log.cleaner.threads": "2"})
        assert cache.default_broker_config() == {"log.retention.ms": "8"}
        assert cache.group_config("a/b") == {"consumer.session.timeout.ms": "50000"}
    assert gone == []
    brokers.settle(brokers.die(3))
    assert brokers.seen_by(1, "orders").isr == (2,)
    assert brokers.person.store._tree.nodes["/brokers/topics/orders/partitions/1/state"].data == b"{"


def test_a_note_of_overrides_that_cannot_be_read_takes_none_away(brokers: Brokers) -> None:
    for target in OVERRIDDEN:
        brokers.settle(brokers.controller.alter_configs([ConfigOverrides(target, OVERRIDES[target])]))
    for path in CONFIG_NODES[1:]:
        brokers.settle(brokers.person.set(path, b"{"))
        note = encode_config_change(path.removeprefix("/config/"))
        brokers.settle(brokers.person.create(CONFIG_CHANGE_PREFIX, note, sequential=True))
    cache = brokers.all[1].cache
    assert cache.broker_config(2) == {"log.cleaner.threads": "2"}
    assert cache.default_broker_config() == {"log.retention.ms": "8"}
    assert cache.group_config("a/b") == {"consumer.session.timeout.ms": "50000"}


# Overrides.


def test_overrides_that_another_tool_wrote_are_known(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 3, 2))
    brokers.settle(brokers.change_isr("orders", 3))
    brokers.settle(brokers.die(3))
    assert brokers.state("orders")[0] == -1

    async def alter(kind: str, name: str, config: dict[str, str]) -> None:
        path = f"/config/{kind}/{name}"
        if brokers.exists(path):
            await brokers.person.set(path, encode_config(config))
        else:
            await brokers.person.create(path, encode_config(config))
        await brokers.person.create(CONFIG_CHANGE_PREFIX, encode_config_change(f"{kind}/{name}"), sequential=True)

    brokers.settle(alter("topics", "orders", RETENTION))
    assert brokers.all[2].cache.topic_config("orders") == RETENTION
    brokers.settle(alter("brokers", "2", {"log.cleaner.threads": "2"}))
    assert brokers.all[2].cache.broker_config(2) == {"log.cleaner.threads": "2"}
    brokers.settle(alter("topics", "orders", {"unclean.leader.election.enable": "true"}))
    assert brokers.state("orders")[::2] == (2, (2,))


@pytest.mark.parametrize("notes", [1, 3, 4])
def test_overrides_are_known_where_the_place_of_their_notes_was_made_anew_between_two_looks(
    brokers: Brokers, notes: int
) -> None:
    """By hand: they are numbered from the first one then."""
    brokers.settle(brokers.create("orders", 2, 3))
    person = brokers.person

    async def note() -> None:
        await person.create(CONFIG_CHANGE_PREFIX, encode_config_change("topics/orders"), sequential=True)

    for _ in range(3):
        brokers.settle(note())

    async def anew() -> None:
        for name in (await person.children(CONFIG_CHANGES))[0]:
            await person.delete(f"{CONFIG_CHANGES}/{name}")
        await person.delete(CONFIG_CHANGES)
        await person.create(CONFIG_CHANGES)
        await person.set("/config/topics/orders", encode_config(RETENTION))
        for _ in range(notes):
            await note()

    async def between_two_looks() -> None:
        turn = asyncio.Event()
        held = brokers.controller.tenure.events.add(turn.wait)
        await anew()
        turn.set()
        await held

    brokers.settle(between_two_looks())
    assert brokers.all[2].cache.topic_config("orders") == RETENTION
    # The controller's own next change is made on top of it.
    topic = ConfigTarget(ConfigTargetType.TOPIC, "orders")
    brokers.settle(brokers.controller.alter_configs([ConfigChanges(topic, (("segment.bytes", 0, "70000"),))]))
    assert brokers.all[2].cache.topic_config("orders") == {**RETENTION, "segment.bytes": "70000"}


def test_a_change_of_overrides_is_said_to_other_brokers_and_forgotten_in_time(brokers: Brokers) -> None:
    brokers.settle(brokers.create("orders", 2, 3))
    topic, group = ConfigTarget(ConfigTargetType.TOPIC, "orders"), ConfigTarget(ConfigTargetType.GROUP, "a/b")

    async def change(value: str) -> None:
        results = await brokers.controller.alter_configs(
            [
                ConfigOverrides(topic, {"retention.ms": value}),
                ConfigOverrides(group, {"consumer.session.timeout.ms": value}),
                ConfigOverrides(ConfigTarget(ConfigTargetType.BROKER, ""), {"log.cleaner.threads": "2"}),
            ]
        )
        assert {result.error for result in results} == {ErrorCode.NONE}

    def changes() -> list[str]:
        nodes = brokers.person.store._tree.nodes
        names = sorted(path for path in nodes if path.startswith(CONFIG_CHANGE_PREFIX))
        return [decode_config_change(path, nodes[path].data) for path in names]

    brokers.settle(change("50000"))
    assert changes() == ["topics/orders", "groups/a%2Fb", "brokers/<default>"]
    brokers.run(asyncio.sleep(16 * 60))
    brokers.settle(change("51000"))
    # What has not changed is not written, nor said.
    assert changes() == ["topics/orders", "groups/a%2Fb"]


def test_overrides_that_are_written_while_a_controller_begins_are_known_to_it(brokers: Brokers) -> None:
    """Behind its reading, and before its first look at what has changed: its next change would undo them."""
    written: list[str] = []

    class Overtaken(LocalSession):
        async def children(self, path: str, watch: Watch | None = None) -> tuple[list[str], Stat]:
            if path == CONFIG_CHANGES and watch is not None and not written:
                written.append(path)
                await brokers.person.set("/config/topics/orders", encode_config(RETENTION))
                note = encode_config_change("topics/orders")
                await brokers.person.create(CONFIG_CHANGE_PREFIX, note, sequential=True)
            return await super().children(path, watch)

    brokers.settle(brokers.create("orders", 2, 3, configs={"retention.ms": "6"}))
    for session in brokers.sessions.values():
        session.__class__ = Overtaken
    brokers.settle(brokers.person.delete("/controller"))
    assert written
    change = ConfigChanges(ConfigTarget(ConfigTargetType.TOPIC, "orders"), (("max.message.bytes", 0, "5"),))
    assert [made.error for made in brokers.run(brokers.controller.alter_configs([change]))] == [ErrorCode.NONE]
    data = brokers.person.store._tree.nodes["/config/topics/orders"].data
    assert decode_config("", data) == RETENTION | {"max.message.bytes": "5"}


# Watches.


@pytest.mark.parametrize("at", ["/admin/delete_topics", "/brokers/topics/orders"], ids=["look", "answers"])
def test_a_turn_that_was_cancelled_in_its_middle_is_tried_again(at: str) -> None:
    """Nobody would ask for it again: neither a watch that has called, nor a broker that has answered."""

    class Cancelled(LocalSession):
        cancelled = 0

        async def children(self, path: str, watch: Watch | None = None) -> tuple[list[str], Stat]:
            if path == at and not self.cancelled:
                self.cancelled += 1
                raise asyncio.CancelledError
            return await super().children(path, watch)

    # No other turn comes by itself.
    brokers = Brokers(auto_leader_rebalance=False)
    brokers.settle(brokers.begin())
    brokers.settle(brokers.create("orders", 2, 3))
    session = brokers.sessions[1]
    session.__class__ = Cancelled
    assert isinstance(session, Cancelled)
    brokers.settle(brokers.person.create("/admin/delete_topics/orders"))
    brokers.settle(asyncio.sleep(10))
    assert session.cancelled == 1
    assert not brokers.exists("/brokers/topics/orders")
    assert not brokers.exists("/admin/delete_topics/orders")
    brokers.close()


def watches(brokers: Brokers) -> int:
    return len(brokers.person.store.watches)


def test_watches_do_not_grow_with_partitions(brokers: Brokers) -> None:
    brokers.settle(brokers.create_all("orders", [(1, 2, 3)] * 10))
    with_ten = watches(brokers)
    brokers.settle(brokers.controller.delete_topics([TopicRef("orders")]))
    assert watches(brokers) == with_ten - 1
    brokers.settle(brokers.create_all("orders", [(1, 2, 3)] * 2_000))
    assert watches(brokers) == with_ten
    # Nor with time.
    for _ in range(3):
        brokers.settle(brokers.die(3))
        brokers.settle(brokers.start(3))
        brokers.settle(brokers.person.create("/admin/delete_topics/none"))
    assert watches(brokers) == with_ten
