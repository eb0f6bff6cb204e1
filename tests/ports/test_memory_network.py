"""Cuts, delays and deaths in the network between simulated machines, and the same trace from the same seed."""

from __future__ import annotations

import asyncio

import pytest
from tests.ports.test_network import Client, Connection
from tests.ports.world import until

from ottla.ports.memory import MemoryPorts, World
from ottla.ports.memory.loop import cancel_all


class Broker:
    def __init__(self, ports: MemoryPorts) -> None:
        self.ports = ports
        self.connections: list[Connection] = []
        self.listening = ports.network.listen("", 9092, self.accept, self.on_round)

    def accept(self, channel: object) -> Connection:
        self.connections.append(Connection(channel))  # type: ignore[arg-type]
        return self.connections[-1]

    def on_round(self, events: list[tuple[Connection, int]]) -> bool:
        for connection, _ in events:
            if connection.receive():
                connection.channel.send(bytes(connection.received))
                connection.received.clear()
        return True


async def reach(source: MemoryPorts, host: str) -> Client:
    _, protocol = await source.network.connect(Client, host, 9092)
    assert isinstance(protocol, Client)
    return protocol


class Two:
    """A broker on `b` and a client's machine `a`."""

    def __init__(self, seed: int = 1) -> None:
        self.world = World(seed)
        self.a = self.world.machine("a")
        self.b = self.world.machine("b")
        self.broker = Broker(self.b)
        self.loop = self.world.loop

    def run(self, main: object) -> None:
        self.loop.run_until_complete(main)  # type: ignore[arg-type]
        cancel_all(self.loop)
        self.loop.close()


def test_machines_are_reached_by_name_and_by_address() -> None:
    two = Two()

    async def main() -> None:
        client = await reach(two.a, "b")
        await reach(two.a, two.b.network.address)
        await until(lambda: len(two.broker.connections) == 2)
        assert {connection.channel.peer for connection in two.broker.connections} == {two.a.network.address}
        assert client.transport.get_extra_info("peername") == (two.b.network.address, 9092)
        with pytest.raises(OSError, match="no machine is called nowhere"):
            await reach(two.a, "nowhere")
        with pytest.raises(ConnectionRefusedError):
            await reach(two.b, "a")

    two.run(main())


def test_latency_delays_and_keeps_the_order() -> None:
    two = Two()
    two.world.fabric.latency(5, 50)

    async def main() -> None:
        client = await reach(two.a, "b")
        for number in range(100):
            client.transport.write(b"%03d" % number)
        started = two.loop.time()
        await until(lambda: len(client.received) == 300)
        assert two.loop.time() - started >= 0.010
        assert client.received == b"".join(b"%03d" % number for number in range(100))

    two.run(main())


def test_a_slow_link_is_slow_for_two_only() -> None:
    two = Two()
    two.world.fabric.latency(1000, 1000, "a", "b")

    async def main() -> None:
        started = two.loop.time()
        await reach(two.b, "b")
        assert two.loop.time() == started
        await reach(two.a, "b")
        assert two.loop.time() == started + 2

    two.run(main())


def test_cut_link_holds_everything_until_it_heals() -> None:
    two = Two()

    async def main() -> None:
        client = await reach(two.a, "b")
        two.world.fabric.cut("a", "b")
        client.transport.write(b"held")
        await asyncio.sleep(900)
        assert client.received == b""
        two.world.fabric.heal("a", "b")
        await until(lambda: client.received == b"held")

    two.run(main())


def test_a_cut_that_lasts_breaks_the_connection_of_who_has_sent_and_of_nobody_else() -> None:
    two = Two()

    async def main() -> None:
        client = await reach(two.a, "b")
        await until(lambda: two.broker.connections)
        two.world.fabric.gives_up_s = 20
        two.world.fabric.cut("a", "b")
        client.transport.write(b"lost")
        await asyncio.sleep(19)
        assert client.told == ["made"]
        await asyncio.sleep(2)
        assert "lost" in client.told
        assert isinstance(client.error, TimeoutError)
        peer = two.broker.connections[0]
        two.world.fabric.heal()
        await asyncio.sleep(100)
        assert (peer.error, peer.ended, peer.received) == (None, False, b"")
        peer.channel.send(b"are you there?")
        await until(lambda: peer.error)
        assert isinstance(peer.error, ConnectionResetError)

    two.run(main())


def test_a_second_cut_has_its_own_time() -> None:
    two = Two()

    async def main() -> None:
        client = await reach(two.a, "b")
        two.world.fabric.gives_up_s = 20
        for _ in range(3):
            two.world.fabric.cut("a", "b")
            client.transport.write(b"held")
            await asyncio.sleep(15)
            two.world.fabric.heal()
            await asyncio.sleep(1)
        await until(lambda: client.received == b"held" * 3)

    two.run(main())


def test_a_slow_link_takes_its_time_for_each_byte() -> None:
    two = Two()

    async def main() -> None:
        client = await reach(two.a, "b")
        two.world.fabric.rate("a", "b", 1000)
        began = two.loop.time()
        client.transport.write(bytes(2000))
        await until(lambda: len(client.received) == 2000)
        assert two.loop.time() - began >= 4.0
        two.world.fabric.rate("a", "b", None)
        client.transport.write(bytes(2000))
        await until(lambda: len(client.received) == 4000)
        assert two.loop.time() - began < 5.0

    two.run(main())


def test_one_way_cut_lets_questions_through_and_no_answers() -> None:
    two = Two()

    async def main() -> None:
        client = await reach(two.a, "b")
        await until(lambda: two.broker.connections)
        two.world.fabric.cut("b", "a", one_way=True)
        client.transport.write(b"question")
        await until(lambda: two.broker.connections[0].events == [] and not two.broker.connections[0].received)
        await asyncio.sleep(10)
        assert client.received == b""
        two.world.fabric.heal()
        await until(lambda: client.received == b"question")

    two.run(main())


def test_connecting_over_a_cut_times_out_or_waits_for_the_healing() -> None:
    two = Two()

    async def main() -> None:
        two.world.fabric.isolate("b")
        with pytest.raises(TimeoutError):
            await reach(two.a, "b")
        assert two.loop.time() > 100
        two.loop.call_later(5, two.world.fabric.heal)
        await reach(two.a, "b")

    two.run(main())


def test_reset_breaks_both_ends() -> None:
    two = Two()

    async def main() -> None:
        client = await reach(two.a, "b")
        await until(lambda: two.broker.connections)
        two.world.fabric.reset("a", "b")
        await until(lambda: "lost" in client.told)
        assert isinstance(client.error, ConnectionResetError)
        await until(lambda: two.broker.connections[0].error)

    two.run(main())


def test_killed_process_closes_its_connections_and_its_next_life_listens_again() -> None:
    two = Two()

    async def main() -> None:
        client = await reach(two.a, "b")
        await until(lambda: two.broker.connections)
        old = two.b
        new = two.world.kill("b")
        await until(lambda: "lost" in client.told)
        for call in (lambda: Broker(old), lambda: old.disk.names("/"), lambda: old.disk.open("/x", create=True)):
            with pytest.raises(OSError, match=r"has ended|[Ss]tale"):
                call()
        with pytest.raises(RuntimeError):
            old.workers.thread(lambda: None)
        with pytest.raises(ConnectionRefusedError):
            await reach(two.a, "b")
        Broker(new)
        client = await reach(two.a, "b")
        client.transport.write(b"again")
        await until(lambda: client.received == b"again")

    two.run(main())


def test_power_cut_is_silent_until_somebody_sends() -> None:
    two = Two()

    async def main() -> None:
        client = await reach(two.a, "b")
        await until(lambda: two.broker.connections)
        two.world.crash("b")
        await asyncio.sleep(1000)
        assert client.told == ["made"]
        client.transport.write(b"hello?")
        await until(lambda: "lost" in client.told)
        assert isinstance(client.error, ConnectionResetError)

    two.run(main())


def test_outgoing_connections_of_a_killed_process_hear_nothing_more() -> None:
    two = Two()

    async def main() -> None:
        client = await reach(two.a, "b")
        await until(lambda: two.broker.connections)
        two.world.kill("a")
        await until(lambda: two.broker.connections[0].ended)
        await asyncio.sleep(1)
        assert client.told == ["made"]

    two.run(main())


def traced(seed: int) -> list[str]:
    """A busy scene with everything in it that draws from the seed."""
    world = World(seed)
    world.fabric.latency(0, 5)
    world.fabric.chop = True
    trace: list[str] = []
    machines = [world.machine(name) for name in ("a", "b", "c")]
    brokers = [Broker(machine) for machine in machines]

    async def talk(ports: MemoryPorts, host: str) -> None:
        client = await reach(ports, host)
        for _ in range(5):
            size = ports.entropy.below(200) + 1
            before = len(client.received)
            client.transport.write(ports.entropy.token(size))
            await ports.workers.thread(lambda: None)
            await until(lambda: len(client.received) == before + size)  # noqa: B023
            trace.append(f"{world.loop.time():.6f} {ports.network.name}>{host} {client.received[-4:].hex()}")

    async def main() -> None:
        world.loop.call_later(0.02, world.fabric.cut, "a", "b")
        world.loop.call_later(0.1, world.fabric.heal)
        await asyncio.gather(*(talk(machine, host) for machine in machines for host in ("a", "b", "c")))

    world.loop.run_until_complete(main())
    trace.append(f"{world.loop.turns} turns, {[len(broker.connections) for broker in brokers]}")
    cancel_all(world.loop)
    world.loop.close()
    return trace


@pytest.mark.parametrize("seed", range(10))
def test_same_seed_same_trace(seed: int) -> None:
    first, again = traced(seed), traced(seed)
    assert len(first) == 46
    assert first == again
    assert first != traced(seed + 100)
