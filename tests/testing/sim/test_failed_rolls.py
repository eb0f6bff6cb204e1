"""A segment that is to be rolled in the middle of a round, whose earlier batches are staged and not written.

Offsets were given to those batches. Where their write fails, the next segment begins where the log ends then, or the
lost batches would be acknowledged in others' place. Where the segment cannot be made, all that wait for it are refused.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Sequence

import pytest
from tests.testing.sim.one_broker import OneBroker

from ottla.model import ErrorCode
from ottla.testing.sim.wire import Client

SEGMENT_MS = 1000
CONNECTIONS = 5


@pytest.mark.parametrize("flush", ["1", str(2**63 - 1)], ids=["flush before the answer", "no flush"])
@pytest.mark.parametrize("recognised", [True, False], ids=["recognised requests", "first requests"])
def test_a_roll_that_fails_in_a_round_refuses_the_rest_of_it(recognised: bool, flush: str) -> None:
    refused_together = 0
    for seed in range(12):
        with OneBroker(seed, {"log.flush.interval.messages": flush}) as one:
            refused: list[int] = []
            operation = "create" if seed % 2 else "append"
            one.run(_fail_a_roll(one, refused, operation, recognised=recognised))
            refused_together += refused[0] > 1
    # Else nothing ever waited beside the batch that was to be rolled for.
    assert refused_together > 0


async def _fail_a_roll(one: OneBroker, refused: list[int], operation: str, *, recognised: bool) -> None:
    await one.broker.started()
    assert await one.create(configs={"segment.ms": str(SEGMENT_MS)}) == ErrorCode.NONE
    clients = [one.new_client(f"c{number}") for number in range(CONNECTIONS)]
    await asyncio.gather(*(client.connected() for client in clients))
    if recognised:
        # A request is recognised by its connection's last one.
        assert set(await _all_at_once(one, clients, 0)) == {ErrorCode.NONE}
    else:
        await one.must_produce()
    # Each batch is later than a segment lasts: it is rolled for all but those that come out of order.
    one.disk.fail(operation, "*/t-0/*.log", errno.ENOSPC, times=1)
    errors = await _all_at_once(one, clients, SEGMENT_MS * 2)
    assert set(errors) <= {ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR}, errors
    await one.check()
    refused.append(errors.count(ErrorCode.KAFKA_STORAGE_ERROR))
    assert refused[0], "nothing ever met the fault"
    assert set(await _all_at_once(one, clients, SEGMENT_MS * 2)) == {ErrorCode.NONE}
    await one.check()
    await one.restart(power=False)
    await one.check()


async def _all_at_once(one: OneBroker, clients: Sequence[Client], step_ms: int) -> list[ErrorCode]:
    now_ms = one.broker.ports.clock.wall_ms()
    return list(
        await asyncio.gather(
            *(one.produce(client=client, timestamp=now_ms + number * step_ms) for number, client in enumerate(clients))
        )
    )
