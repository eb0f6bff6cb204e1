"""Links to other brokers, in a virtual world: what became of each call is said exactly, and nothing waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from itertools import pairwise
from typing import Any

import pytest
from tests.testing.sim.one_broker import OneBroker

from ottla.client.wire.connection import IN_FLIGHT_MAX, BrokerConnection
from ottla.interbroker import links as links_module
from ottla.interbroker.links import WAITING_MAX, BrokerAddress, BrokerLink, BrokerLinks, LinkLost, LinkRefused
from ottla.model import BrokerId, ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ottla.protocol.generated.list_offsets import ListOffsetsRequest
from ottla.protocol.generated.metadata import MetadataRequest, MetadataResponse
from ottla.testing.sim import Simulation

ONE = BrokerId(1)
VERSION = 12


class Links:
    """Links from the machine `here` to a broker on the machine `broker`, whose address a test may change."""

    def __init__(self, one: OneBroker) -> None:
        self.one = one
        self.address: BrokerAddress | None = BrokerAddress(*one.broker.address, 1)
        self.asked_for_address = 0
        self.links = BrokerLinks(self._address_of, self.one.simulation.world.machine("here"), "broker-2-test")
        self.link: BrokerLink = self.links.to(ONE)
        self.loop = asyncio.get_running_loop()

    def _address_of(self, broker: BrokerId) -> BrokerAddress | None:
        assert broker == ONE
        self.asked_for_address += 1
        return self.address

    async def metadata(self, timeout_ms: int = 1_000) -> MetadataResponse:
        answer = await self.link.call(MetadataRequest(topics=[]), VERSION, timeout_ms=timeout_ms)
        assert isinstance(answer, MetadataResponse)
        return answer

    def metadata_soon(self, timeout_ms: int = 1_000) -> asyncio.Task[MetadataResponse]:
        return asyncio.create_task(self.metadata(timeout_ms))

    def parked_fetch(self, wait_ms: int = 10_000) -> asyncio.Task[Any]:
        """A fetch at the end of the log of `t`, which the broker keeps for so long."""
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1_000)
        topic = FetchTopic(topic="t", partitions=[partition])
        request = FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=1_000, session_epoch=-1, topics=[topic])
        return asyncio.create_task(self.link.call(request, 11, timeout_ms=60_000))


def run(scenario: Callable[[Links], Coroutine[Any, Any, None]], *, started: bool = True) -> None:
    async def whole(one: OneBroker) -> None:
        if started:
            await one.broker.started()
            assert await one.create() == ErrorCode.NONE
        await scenario(Links(one))

    with OneBroker() as one:
        one.run(whole(one))


async def settled(*tasks: asyncio.Task[Any]) -> list[Any]:
    return await asyncio.gather(*tasks, return_exceptions=True)


def kinds(outcomes: list[Any]) -> list[type]:
    return [type(outcome) for outcome in outcomes]


def test_calls_go_out_in_their_order_over_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    send = BrokerConnection.send

    def noted(self: BrokerConnection, request: Any, response_type: Any, version: int, timeout_ms: int) -> Any:
        if request.API_KEY == ApiKey.METADATA:
            sent.append(version)
        return send(self, request, response_type, version, timeout_ms)

    monkeypatch.setattr(BrokerConnection, "send", noted)

    async def scenario(links: Links) -> None:
        tasks = []
        for version in (9, 12, 8, 11, 10):
            call = links.link.call(MetadataRequest(topics=[]), version, timeout_ms=1_000)
            tasks.append(asyncio.create_task(call))
            await asyncio.sleep(0)
        assert [answer.error_code for answer in await settled(*tasks)] == [0] * 5
        assert sent == [9, 12, 8, 11, 10]
        assert links.one.broker.broker is not None
        assert links.one.broker.broker.connection_count == 2  # the test's client, and the link

    run(scenario)


def test_a_large_batch_comes_whole() -> None:
    """A follower that refused it would never come to what is behind it."""

    async def scenario(links: Links) -> None:
        await links.metadata()
        fetching = links.parked_fetch()
        await asyncio.sleep(0.1)
        connection = links.link._connection
        assert connection is not None
        connection.get_buffer(-1)[:4] = (300 << 20).to_bytes(4, "big")
        connection.buffer_updated(4)
        assert connection.fault is None
        fetching.cancel()

    run(scenario)


def test_a_broker_that_is_away_is_waited_for_as_long_as_the_call_may_take() -> None:
    async def scenario(links: Links) -> None:
        began = links.loop.time()
        with pytest.raises(LinkRefused, match="refused"):
            await links.metadata(timeout_ms=3_000)
        assert links.loop.time() - began == pytest.approx(3.0, abs=0.01)
        assert links.link.waiting == 0
        later = links.metadata_soon(timeout_ms=5_000)
        await asyncio.sleep(1)
        await links.one.broker.started()
        assert (await later).brokers

    run(scenario, started=False)


def test_a_broker_that_is_away_is_dialled_with_longer_and_longer_pauses_up_to_a_second() -> None:
    async def scenario(links: Links) -> None:
        network = links.one.simulation.world.machine("here").network
        dials: list[float] = []
        connect = network.connect

        async def counted(*arguments: Any) -> Any:
            dials.append(links.loop.time())
            return await connect(*arguments)

        network.connect = counted  # type: ignore[method-assign]
        with pytest.raises(LinkRefused):
            await links.metadata(timeout_ms=20_000)
        pauses = [after - before for before, after in pairwise(dials)]
        assert 0.03 < pauses[0] < 0.07
        assert max(pauses) < 1.3
        assert 18 < len(dials) < 32

    run(scenario, started=False)


def test_after_a_restart_at_the_same_address_calls_go_on() -> None:
    async def scenario(links: Links) -> None:
        await links.metadata()
        links.one.broker.kill()
        await asyncio.sleep(0.1)
        waits = links.metadata_soon(timeout_ms=5_000)
        await links.one.broker.started()
        assert (await waits).brokers

    run(scenario)


def test_what_was_sent_when_the_broker_died_is_lost_and_what_was_not_is_sent_to_the_next() -> None:
    async def scenario(links: Links) -> None:
        fetch = links.parked_fetch()
        await asyncio.sleep(0.01)
        behind = links.metadata_soon()
        await asyncio.sleep(0.1)
        links.one.broker.kill()
        outcomes = await settled(fetch, behind)
        assert kinds(outcomes) == [LinkLost, LinkLost]
        waits = links.metadata_soon(timeout_ms=5_000)
        await asyncio.sleep(0.1)
        await links.one.broker.started()
        assert (await waits).brokers

    run(scenario)


def test_a_broker_that_registered_again_is_dialled_anew_and_at_once() -> None:
    async def scenario(links: Links) -> None:
        fetch = links.parked_fetch()
        await asyncio.sleep(0.1)
        links.address = BrokerAddress(*links.one.broker.address, 2)
        began = links.loop.time()
        links.links.look()
        assert kinds(await settled(fetch)) == [LinkLost]
        assert (await links.metadata()).brokers
        assert links.loop.time() - began < 0.05

    run(scenario)


def test_another_epoch_is_noticed_by_the_next_call_too() -> None:
    async def scenario(links: Links) -> None:
        fetch = links.parked_fetch()
        await asyncio.sleep(0.1)
        links.address = BrokerAddress(*links.one.broker.address, 2)
        assert (await links.metadata()).brokers
        assert kinds(await settled(fetch)) == [LinkLost]

    run(scenario)


def test_a_call_that_waits_goes_to_the_address_that_the_broker_came_back_with() -> None:
    async def scenario(links: Links) -> None:
        right = links.address
        links.address = BrokerAddress("nowhere", 9092, 1)
        links.one.simulation.world.machine("nowhere")
        waits = links.metadata_soon(timeout_ms=30_000)
        await asyncio.sleep(10)
        assert not waits.done()
        links.address = right
        began = links.loop.time()
        links.links.look()
        assert (await waits).brokers
        assert links.loop.time() - began < 0.05, "the pause of the former address counts no more"

    run(scenario)


def test_a_machine_that_says_nothing_is_given_up_and_its_successor_is_dialled() -> None:
    async def scenario(links: Links) -> None:
        fabric = links.one.simulation.world.fabric
        fabric.cut("here", "broker")
        waits = links.metadata_soon(timeout_ms=10_000)
        await asyncio.sleep(3)
        assert not waits.done()
        fabric.heal()
        assert (await waits).brokers

    run(scenario)


def test_a_broker_that_is_not_registered_is_refused_at_once_with_all_that_wait_for_it() -> None:
    async def scenario(links: Links) -> None:
        waits = links.metadata_soon(timeout_ms=60_000)
        await asyncio.sleep(0.2)
        links.address = None
        links.links.look()
        assert kinds(await settled(waits)) == [LinkRefused]
        with pytest.raises(LinkRefused, match="broker 1 is not registered"):
            await links.metadata()
        await links.one.broker.started()
        links.address = BrokerAddress(*links.one.broker.address, 2)
        assert (await links.metadata()).brokers

    run(scenario, started=False)


def test_without_an_answer_in_time_all_that_was_sent_is_lost() -> None:
    async def scenario(links: Links) -> None:
        await links.metadata()
        links.one.simulation.world.fabric.cut("here", "broker")
        began = links.loop.time()
        first, second = links.metadata_soon(timeout_ms=500), links.metadata_soon(timeout_ms=60_000)
        assert kinds(await settled(first, second)) == [LinkLost, LinkLost]
        assert links.loop.time() - began == pytest.approx(0.5, abs=0.01)
        links.one.simulation.world.fabric.heal()
        assert (await links.metadata(timeout_ms=5_000)).brokers

    run(scenario)


def test_what_is_in_flight_and_what_waits_have_their_bounds() -> None:
    async def scenario(links: Links) -> None:
        fetches = [links.parked_fetch(wait_ms=1_000)]
        await asyncio.sleep(0.01)
        fetches += [links.parked_fetch(wait_ms=0) for _ in range(IN_FLIGHT_MAX + WAITING_MAX - 1)]
        await asyncio.sleep(0.1)
        assert links.link.waiting == WAITING_MAX
        with pytest.raises(LinkRefused, match="100 requests wait"):
            await links.metadata()
        outcomes = await settled(*fetches)
        assert kinds(outcomes) == [FetchResponse] * len(fetches)
        assert (await links.metadata()).brokers

    run(scenario)


def test_a_call_whose_time_is_over_in_the_line_was_never_sent() -> None:
    async def scenario(links: Links) -> None:
        fetches = [links.parked_fetch(wait_ms=2_000)]
        await asyncio.sleep(0.01)
        fetches += [links.parked_fetch(wait_ms=0) for _ in range(IN_FLIGHT_MAX - 1)]
        await asyncio.sleep(0.1)
        with pytest.raises(LinkRefused, match="not answered"):
            await links.metadata(timeout_ms=500)
        assert kinds(await settled(*fetches)) == [FetchResponse] * len(fetches)

    run(scenario)


def test_a_call_that_waited_in_the_line_for_long_is_lost_alone() -> None:
    """It was sent with a tenth of a second left: that is no time by which a broker could be judged."""

    async def scenario(links: Links) -> None:
        fetches = [links.parked_fetch(wait_ms=2_000)]
        await asyncio.sleep(0.01)
        fetches += [links.parked_fetch(wait_ms=0) for _ in range(IN_FLIGHT_MAX - 1)]
        fetches.append(links.parked_fetch(wait_ms=1_000))
        await asyncio.sleep(0)
        began = links.loop.time()
        late = links.metadata_soon(timeout_ms=2_100)
        assert kinds(await settled(late)) == [LinkLost]
        assert links.loop.time() - began == pytest.approx(2.1, abs=0.01)
        connection = links.link.connection
        assert kinds(await settled(*fetches)) == [FetchResponse] * len(fetches)
        assert (await links.metadata()).brokers
        assert links.link.connection is connection

    run(scenario)


def test_a_caller_that_is_cancelled_leaves_the_line() -> None:
    async def scenario(links: Links) -> None:
        waits, other = links.metadata_soon(timeout_ms=60_000), links.metadata_soon(timeout_ms=60_000)
        await asyncio.sleep(0.2)
        waits.cancel()
        assert kinds(await settled(waits)) == [asyncio.CancelledError]
        assert links.link.waiting == 1
        await links.one.broker.started()
        assert (await other).brokers

    run(scenario, started=False)


def test_a_caller_that_is_cancelled_behind_its_request_does_not_disturb_the_others() -> None:
    async def scenario(links: Links) -> None:
        fetch = links.parked_fetch(wait_ms=500)
        await asyncio.sleep(0.01)
        behind = links.metadata_soon()
        await asyncio.sleep(0.1)
        fetch.cancel()
        assert (await behind).brokers

    run(scenario)


def test_closing_refuses_what_waits_and_loses_what_was_sent() -> None:
    async def scenario(links: Links) -> None:
        fetches = [links.parked_fetch() for _ in range(IN_FLIGHT_MAX)]
        await asyncio.sleep(0.1)
        waits = links.metadata_soon()
        await asyncio.sleep(0)
        links.links.close()
        links.links.close()
        outcomes = await settled(*fetches, waits)
        assert kinds(outcomes) == [LinkLost] * IN_FLIGHT_MAX + [LinkRefused]
        for link in (links.link, links.links.to(ONE)):
            with pytest.raises(LinkRefused, match="closed"):
                await link.call(MetadataRequest(topics=[]), VERSION, timeout_ms=100)

    run(scenario)


def test_closing_while_it_is_dialled_leaves_no_task() -> None:
    async def scenario(links: Links) -> None:
        waits = links.metadata_soon()
        await asyncio.sleep(0.2)
        links.links.close()
        assert kinds(await settled(waits)) == [LinkRefused]
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(scenario, started=False)


def test_a_version_that_the_other_broker_does_not_serve_is_refused_and_an_older_one_is_taken() -> None:
    async def scenario(links: Links) -> None:
        with pytest.raises(LinkRefused, match="ListOffsets"):
            await links.link.call(ListOffsetsRequest(), 0, timeout_ms=1_000)
        newest = MetadataRequest.MAX_VERSION
        assert await links.link.call(MetadataRequest(topics=[]), newest + 1, at_least=newest, timeout_ms=1_000)
        with pytest.raises(LinkRefused, match="Metadata"):
            await links.link.call(MetadataRequest(topics=[]), newest + 1, timeout_ms=1_000)

    run(scenario)


def test_a_request_that_cannot_be_said_fails_alone() -> None:
    async def scenario(links: Links) -> None:
        topic = FetchTopic(topic="t", partitions=[FetchPartition(partition="none")])  # type: ignore[arg-type]
        bad = asyncio.create_task(links.link.call(FetchRequest(topics=[topic]), 11, timeout_ms=1_000))
        good = links.metadata_soon()
        outcomes = await settled(bad, good)
        assert isinstance(outcomes[0], ValueError)
        assert isinstance(outcomes[1], MetadataResponse)

    run(scenario)


def test_a_dial_in_which_something_was_cancelled_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    faults: list[BaseException] = [asyncio.CancelledError()]
    dial = links_module.connect

    async def planted(*given: Any, **options: Any) -> BrokerConnection:
        if faults:
            raise faults.pop()
        return await dial(*given, **options)

    monkeypatch.setattr(links_module, "connect", planted)

    async def scenario(links: Links) -> None:
        assert (await links.metadata()).error_code == 0
        assert faults == []

    run(scenario)


def test_links_belong_to_a_simulated_world() -> None:
    """The same seed gives the same times."""

    def times(seed: int) -> list[float]:
        found: list[float] = []

        async def whole(simulation: Simulation) -> None:
            here = simulation.world.machine("here")
            simulation.world.machine("gone")
            links = BrokerLinks(lambda _: BrokerAddress("gone", 9092, 1), here, "test")
            connect = here.network.connect

            async def counted(*arguments: Any) -> Any:
                found.append(simulation.loop.time())
                return await connect(*arguments)

            here.network.connect = counted  # type: ignore[method-assign]
            with pytest.raises(LinkRefused):
                await links.to(ONE).call(MetadataRequest(topics=[]), VERSION, timeout_ms=10_000)

        with Simulation(seed) as simulation:
            simulation.run(whole(simulation))
        return found

    assert times(5) == times(5)
    assert len(times(5)) > 10
