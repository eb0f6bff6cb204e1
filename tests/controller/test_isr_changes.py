"""ISR changes that leaders ask for: which are taken, and which are refused, and with what."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.controller.several import Brokers, ids

from ottla.controller.interface import IsrChange
from ottla.coordination.notifications import ISR_CHANGE_PREFIX, encode_partitions
from ottla.model import Epoch, ErrorCode, TopicId, TopicPartition

TP = TopicPartition("orders", 0)


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    made = Brokers()
    made.settle(made.begin())
    made.settle(made.create("orders", 2, 3, 1))
    yield made
    made.close()


def ask(brokers: Brokers, *isr: int, broker: int = 2, **changes: Any) -> tuple[ErrorCode, Any]:
    epoch = changes.pop("broker_epoch", -1)
    change = IsrChange(TP, Epoch(0), 0, ids(*isr))._replace(**changes)
    (result,) = brokers.settle(  # type: ignore[misc]
        brokers.controller.alter_isr(ids(broker)[0], [change], broker_epoch=epoch)
    )
    return result.error, result.state


def epochs(brokers: Brokers, *numbers: int) -> tuple[int, ...]:
    return tuple(brokers.controller.context.brokers[number].epoch for number in ids(*numbers))


def test_a_leader_shrinks_and_widens_its_isr(brokers: Brokers) -> None:
    error, state = ask(brokers, 2, 3)
    assert (error, state.isr, state.partition_epoch, state.leader_epoch) == (ErrorCode.NONE, (2, 3), 1, 0)
    assert brokers.state("orders") == (2, 0, (2, 3))
    assert brokers.seen_by(1, "orders").isr == (2, 3)
    error, _ = ask(brokers, 2, 3, 1, partition_epoch=1, isr_epochs=epochs(brokers, 2, 3, 1))
    assert error is ErrorCode.NONE
    assert brokers.state("orders") == (2, 0, (2, 3, 1))


@pytest.mark.parametrize(
    ("isr", "changes", "error"),
    [
        ((2,), {"tp": TopicPartition("none", 0)}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ((2,), {"tp": TopicPartition("orders", 1)}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ((2,), {"leader_epoch": Epoch(-1)}, "FENCED_LEADER_EPOCH"),
        ((2,), {"topic_id": TopicId(bytes(15) + b"\x01")}, "UNKNOWN_TOPIC_ID"),
        ((2,), {"leader_epoch": Epoch(1)}, "NOT_CONTROLLER"),
        ((2,), {"partition_epoch": 1}, "NOT_CONTROLLER"),
        ((2,), {"partition_epoch": -1}, "INVALID_UPDATE_VERSION"),
        ((), {}, "INVALID_REQUEST"),
        ((3, 1), {}, "INVALID_REQUEST"),
        ((2, 2), {}, "INVALID_REQUEST"),
        ((2, 9), {}, "INVALID_REQUEST"),
        ((2, 3), {"isr_epochs": (-1,)}, "INVALID_REQUEST"),
        ((3, 2), {"broker": 3}, "INVALID_REQUEST"),
        ((2,), {"broker": 9}, "STALE_BROKER_EPOCH"),
        ((2,), {"broker_epoch": 1}, "STALE_BROKER_EPOCH"),
        ((2, 3), {"isr_epochs": (-1, 1)}, "INELIGIBLE_REPLICA"),
    ],
)
def test_what_is_refused(brokers: Brokers, isr: tuple[int, ...], changes: dict[str, Any], error: str) -> None:
    assert ask(brokers, *isr, **changes)[0] is ErrorCode[error]
    assert brokers.state("orders") == (2, 0, (2, 3, 1))


def test_the_same_is_not_written_twice(brokers: Brokers) -> None:
    assert ask(brokers, 2, 3)[0] is ErrorCode.NONE
    # The leader has not heard the answer, and asks again.
    error, state = ask(brokers, 3, 2)
    assert (error, state.partition_epoch) == (ErrorCode.NONE, 1)
    assert ask(brokers, 2)[0] is ErrorCode.INVALID_UPDATE_VERSION


def test_who_is_gone_or_about_to_stop_does_not_join(brokers: Brokers) -> None:
    assert ask(brokers, 2)[0] is ErrorCode.NONE
    brokers.settle(brokers.die(1))
    version = brokers.controller.context.topics["orders"].states[0].version
    leader_epoch = brokers.controller.context.topics["orders"].states[0].state.leader_epoch
    now = {"partition_epoch": version, "leader_epoch": leader_epoch}
    assert ask(brokers, 2, 1, **now)[0] is ErrorCode.INELIGIBLE_REPLICA
    answer = brokers.settle(brokers.controller.shut_down(ids(3)[0], -1))
    assert answer is not None
    assert answer.error is ErrorCode.NONE
    assert ask(brokers, 2, 3, **now)[0] is ErrorCode.INELIGIBLE_REPLICA


def test_an_old_life_of_a_follower_does_not_join(brokers: Brokers) -> None:
    """KIP-903: it was caught up, died, came back with an empty disk, and the leader's request is on its way still."""
    assert ask(brokers, 2, 1)[0] is ErrorCode.NONE
    old = epochs(brokers, 2, 1, 3)
    brokers.settle(brokers.die(3))
    brokers.settle(brokers.start(3))
    known = brokers.controller.context.topics["orders"].states[0]
    now = {"partition_epoch": known.version, "leader_epoch": known.state.leader_epoch}
    assert ask(brokers, 2, 1, 3, isr_epochs=old, **now)[0] is ErrorCode.INELIGIBLE_REPLICA
    assert ask(brokers, 2, 1, 3, isr_epochs=epochs(brokers, 2, 1, 3), **now)[0] is ErrorCode.NONE


def test_one_that_changed_behind_the_controller_spoils_no_other_and_is_read_at_once(brokers: Brokers) -> None:
    brokers.settle(brokers.create_all("many", [(2, 3)] * 20))

    async def work() -> list[ErrorCode]:
        await brokers.write_state("many", 2, 4, 2, partition=5)
        changes = [IsrChange(TopicPartition("many", number), Epoch(0), 0, ids(2)) for number in range(20)]
        results = await brokers.controller.alter_isr(ids(2)[0], changes)
        assert results[5].state is not None
        assert (results[5].state.leader_epoch, results[5].state.partition_epoch) == (4, 1)
        return [result.error for result in results]

    errors = brokers.settle(work())
    assert errors is not None
    assert errors.pop(5) is ErrorCode.INVALID_UPDATE_VERSION
    assert set(errors) == {ErrorCode.NONE}
    assert not brokers.controller.tenure.core.stale
    assert brokers.seen_by(1, "many", 5).leader_epoch == 4


def test_two_at_once_from_before_and_after_an_election(brokers: Brokers) -> None:
    async def work() -> list[ErrorCode]:
        change = IsrChange(TP, Epoch(0), 0, ids(2))
        asked = asyncio.ensure_future(brokers.controller.alter_isr(ids(2)[0], [change]))
        await brokers.die(2)
        late = brokers.controller.alter_isr(ids(2)[0], [change])
        return [(await asked)[0].error, (await late)[0].error]

    first, second = brokers.settle(work()) or []
    assert first in (ErrorCode.NONE, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.STALE_BROKER_EPOCH)
    assert second is ErrorCode.STALE_BROKER_EPOCH
    leader, _, isr = brokers.state("orders")
    assert (leader, isr) in ((3, (3, 1)), (-1, (2,)))


def test_notifications_of_older_brokers_are_read_and_taken_away(brokers: Brokers) -> None:
    """They write the state of what they lead themselves."""

    async def work() -> None:
        for _ in range(3):
            await brokers.write_state("orders", 2, 0, 2, 3)
            node = encode_partitions([TP, TopicPartition("none", 0)])
            await brokers.person.create(ISR_CHANGE_PREFIX, node, sequential=True)
        await brokers.person.create(ISR_CHANGE_PREFIX, b"[]", sequential=True)

    brokers.settle(work())
    assert brokers.run(brokers.person.children("/isr_change_notification"))[0] == []
    state = brokers.seen_by(1, "orders")
    assert (state.isr, state.partition_epoch) == ((2, 3), 3)
    brokers.settle(work())
    assert brokers.run(brokers.person.children("/isr_change_notification"))[0] == []
    assert brokers.seen_by(1, "orders").partition_epoch == 6
