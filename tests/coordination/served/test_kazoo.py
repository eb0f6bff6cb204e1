"""kazoo with a served tree in a process of its own: the contract, its recipes, and beside our client."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Callable

import pytest
from tests.coordination.contract import SCENARIOS, Scenario
from tests.coordination.zookeeper.sessions import RemoteProvider
from tools.ottla_server import TreeProcess

from ottla.coordination.interface import Coordination
from ottla.ports.real import real_ports

pytest.importorskip("kazoo", reason="kazoo is not installed")

from kazoo.client import KazooClient
from tests.coordination.kazoo_contract import KAZOO_SCENARIOS, KazooScenario
from tests.coordination.served.kazoo_session import KazooSession
from tests.coordination.served.wire import WireClient

from ottla.coordination.zookeeper.codes import OpCode
from ottla.coordination.zookeeper.messages import ConnectAnswer

_bases = itertools.count()
#: kazoo gives a connection up after two thirds of it, and what is under way is lost: nobody here waits for that.
PATIENT_MS = 60_000
#: What kazoo itself does otherwise than the contract wants.
_NOT_KAZOOS = {
    # It sends no null.
    "no_data_is_not_data_of_no_bytes",
    "a_watcher_of_data_and_children_is_told_of_the_end_once",
    # Ours asks kazoo what was made.
    "a_session_closes_behind_what_it_was_asked_for_before",
}


class KazooProvider:
    def __init__(self, process: TreeProcess) -> None:
        self.process = process
        self.opened: list[KazooSession] = []

    async def session(self) -> KazooSession:
        session = KazooSession(self.process.bootstrap, PATIENT_MS)
        self.opened.append(session)
        await session.start()
        return session

    async def expire(self, session: Coordination) -> None:
        """Ends it by a connection of its own, which knows its password."""
        info = session.session

        def end() -> None:
            known = ConnectAnswer(0, info.timeout_ms, info.id, info.password)
            with WireClient(self.process.port, session=known) as thief:
                thief.call(OpCode.CLOSE_SESSION)

        await asyncio.to_thread(end)

    async def close(self) -> None:
        for session in self.opened:
            await session.close()


@pytest.mark.parametrize(
    "scenario", [each for each in SCENARIOS if each.__name__ not in _NOT_KAZOOS], ids=lambda scenario: scenario.__name__
)
def test_contract(scenario: Scenario, shared_process: TreeProcess) -> None:
    async def run() -> None:
        provider = KazooProvider(shared_process)
        base = f"/kazoo-contract{next(_bases)}"
        await (await provider.session()).create(base)
        try:
            await scenario(provider, base)
        finally:
            await provider.close()

    asyncio.run(run())


@pytest.mark.parametrize("scenario", KAZOO_SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_beside_our_client(scenario: KazooScenario, shared_process: TreeProcess) -> None:
    async def run() -> None:
        connect = f"{shared_process.bootstrap}/kazoo{next(_bases)}"
        provider = RemoteProvider(real_ports(), connect, PATIENT_MS)
        started: list[KazooClient] = []

        async def start() -> KazooClient:
            client = KazooClient(connect, timeout=PATIENT_MS / 1000)
            started.append(client)
            await asyncio.to_thread(client.start, 60)
            return client

        await (await provider.session()).create("/base")
        try:
            await scenario(provider, start, "/base")
        finally:
            for client in started:
                await asyncio.to_thread(client.stop)
                await asyncio.to_thread(client.close)
            await provider.close()

    asyncio.run(run())


def eventually(condition: Callable[[], object], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_recipes_go_on_over_a_kill(own_process: TreeProcess) -> None:
    own_process.start()
    one, two = (KazooClient(own_process.bootstrap, timeout=PATIENT_MS / 1000) for _ in range(2))
    try:
        one.start(60)
        two.start(60)
        one.ensure_path("/seen")
        data: list[bytes | None] = []
        names: list[list[str]] = []
        one.DataWatch("/seen", lambda found, _: data.append(found))
        one.ChildrenWatch("/seen", lambda found: names.append(sorted(found)))
        party = one.Party("/party", "one")
        party.join()
        assert one.Lock("/lock", "one").acquire(timeout=60)
        won = threading.Event()
        waiting = threading.Thread(target=lambda: two.Election("/election", "two").run(won.set))
        waiting.start()
        assert won.wait(60)
        waiting.join()
        for number in range(3):
            two.set("/seen", b"%d" % number)
            two.create(f"/seen/{number}")
            eventually(lambda: data[-1] == b"%d" % number and len(names[-1]) == number + 1)  # noqa: B023
            own_process.kill()
            # Who has not noticed yet would be taken for connected again.
            eventually(lambda: not one.connected and not two.connected)
            own_process.start()
            eventually(lambda: one.connected and two.connected)
        # What they hold they still hold.
        assert list(two.Party("/party")) == ["one"]
        assert not two.Lock("/lock", "two").acquire(blocking=False)
        counter = two.Counter("/counter")
        counter += 5
        assert one.Counter("/counter").value == 5
        assert names[-1] == ["0", "1", "2"]
    finally:
        for client in (one, two):
            client.stop()
            client.close()
