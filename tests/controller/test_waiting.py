"""Requests wait for what is done to their topics, and leave nothing behind when they wait no more."""

from __future__ import annotations

from tests.controller.several import Brokers, ids

from ottla.controller.interface import TopicRef, TopicToCreate
from ottla.model import ErrorCode


def test_requests_that_have_waited_long_enough_leave_nothing_behind() -> None:
    """A broker that lives and does not answer holds a deletion up for as long as that lasts; clients ask again and
    again, with requests of a megabyte perhaps."""
    brokers = Brokers()
    brokers.settle(brokers.begin())
    brokers.settle(brokers.create("orders", 2, 3))
    broker = brokers.all[3]
    broker.hangs_in = "stop_replicas"
    again = TopicToCreate("orders", assignments=((0, ids(2, 3)),))

    async def work() -> None:
        controller = brokers.controller
        (gone,) = await controller.delete_topics([TopicRef("orders")], timeout_ms=100)
        assert gone.error is ErrorCode.REQUEST_TIMED_OUT
        (deletion,) = controller.tenure.core.under_way.deletions
        before = deletion.waiting
        for _ in range(5):
            (made,) = await controller.create_topics([again], timeout_ms=100)
            assert made.error is ErrorCode.REQUEST_TIMED_OUT
        assert deletion.waiting == before
        broker.hangs_in = None
        broker.go_on()
        # One that waits still has its turn.
        (made,) = await controller.create_topics([again])
        assert made.error is ErrorCode.NONE

    brokers.settle(work())
    brokers.close()
