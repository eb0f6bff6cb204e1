"""Whether a session may live by this side's clock: what a server has answered proves it, from when it was asked on.

A process that stood still finds answers and notifications in its sockets: they are as old as its sleep.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.coordination.contract import Events, fails, until
from tests.coordination.zookeeper.small_server import SmallConnection
from tests.coordination.zookeeper.test_client_faults import Simulation

from ottla.coordination.errors import SessionExpired
from ottla.coordination.zookeeper import session as session_module
from ottla.coordination.zookeeper.client import RemoteTree
from ottla.coordination.zookeeper.codes import KeeperError, OpCode
from ottla.coordination.zookeeper.frames import encode_error
from ottla.coordination.zookeeper.messages import RequestHeader
from ottla.ports import Clock, Ports

TIMEOUT_MS = 6_000


class JumpingClock:
    """The machine's, and as far ahead of the loop as the process has stood still."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.stood_still_ms = 0

    def monotonic_ms(self) -> int:
        return self._clock.monotonic_ms() + self.stood_still_ms

    def wall_ms(self) -> int:
        return self._clock.wall_ms() + self.stood_still_ms


def run(work: Callable[[Simulation, RemoteTree, JumpingClock], Awaitable[None]]) -> None:
    async def whole(sim: Simulation) -> None:
        clock = JumpingClock(sim.provider.ports.clock)
        ports = sim.provider.ports
        sim.provider.ports = Ports(
            clock=clock, disk=ports.disk, network=ports.network, entropy=ports.entropy, workers=ports.workers
        )
        await work(sim, await sim.session(), clock)

    Simulation().run(whole)


def test_a_session_may_live_as_long_as_it_is_answered() -> None:
    async def work(sim: Simulation, tree: RemoteTree, clock: JumpingClock) -> None:
        for _ in range(200):
            assert tree.may_live
            await asyncio.sleep(0.1)
        sim.world.fabric.isolate("client")
        await asyncio.sleep(TIMEOUT_MS / 1000)
        assert not tree.may_live
        sim.world.fabric.heal()
        await until(lambda: tree.is_connected)
        assert tree.may_live

    run(work)


def test_a_notification_that_waited_in_the_socket_proves_nothing() -> None:
    async def work(sim: Simulation, tree: RemoteTree, clock: JumpingClock) -> None:
        other = await sim.session()
        await other.create("/a")
        events = Events()
        await tree.exists("/a", events)
        writing = asyncio.ensure_future(other.set("/a", b"x"))
        clock.stood_still_ms = TIMEOUT_MS
        await until(lambda: events)
        assert not tree.may_live
        await writing

    run(work)


@pytest.mark.parametrize("op", [OpCode.PING, OpCode.GET_DATA])
def test_an_answer_proves_what_was_so_when_it_was_asked_for(op: OpCode) -> None:
    async def work(sim: Simulation, tree: RemoteTree, clock: JumpingClock) -> None:
        await tree.create("/a")
        answered: list[int] = []

        def answer_late(connection: SmallConnection, header: RequestHeader, request: Any) -> None:
            clock.stood_still_ms += TIMEOUT_MS
            connection.serve(header, request)
            answered.append(header.xid)

        connection = tree._session._connection
        assert connection is not None
        sim.once(op, answer_late)
        if op is OpCode.GET_DATA:
            await tree.get("/a")
            assert not tree.may_live
        else:
            await until(lambda: answered)
            await asyncio.sleep(0.05)  # the answer is there
            assert connection.fault is None
            assert not tree.may_live
        # The next ping is asked after the sleep.
        await asyncio.sleep(TIMEOUT_MS / 1000 / session_module.PINGS_A_TIMEOUT + 0.05)
        assert tree.may_live
        assert tree._session._connection is connection

    run(work)


def test_an_answer_that_the_session_is_over_proves_nothing() -> None:
    async def work(sim: Simulation, tree: RemoteTree, clock: JumpingClock) -> None:
        await tree.create("/a")

        def refuse(connection: SmallConnection, header: RequestHeader, _: Any) -> None:
            connection.send(encode_error(header.xid, 0, KeeperError.SESSION_EXPIRED))

        sim.once(OpCode.GET_DATA, refuse)
        connection = tree._session._connection
        assert connection is not None
        proven_ms = connection.proven_ms
        await asyncio.sleep(0.5)
        await fails(tree.get("/a"), SessionExpired)
        assert connection.fault is not None
        assert connection.proven_ms == proven_ms

    run(work)


def test_a_server_that_answers_no_pings_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers requests, so that it is not silent: what is noted of pings has an end."""
    monkeypatch.setattr(session_module, "PINGS_UNANSWERED_MAX", 5)

    async def work(sim: Simulation, tree: RemoteTree, clock: JumpingClock) -> None:
        sim.ensemble.hook = lambda _, header, __: header.op == OpCode.PING
        await tree.create("/a")
        first = tree._session._connection
        assert first is not None
        for _ in range(100):
            await tree.get("/a")
            await asyncio.sleep(TIMEOUT_MS / 1000 / session_module.PINGS_A_TIMEOUT / 10)
        assert first.fault is not None
        assert "pings" in first.fault

    run(work)
