"""What `/health` and `/ready` say over a broker's life."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.server.test_metrics_http import asked, status

from ottla.app import assemble, running
from ottla.broker.broker import PortTaken
from ottla.config import Config
from ottla.metrics import Registry
from ottla.ports.real import real_ports
from ottla.server.metrics_http import Condition, MetricsEndpoint


def config(folder: Path, **more: str) -> Config:
    properties = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(folder), **more}
    return Config.parse({name.replace("_", "."): value for name, value in properties.items()})


def test_a_broker_is_ready_from_the_end_of_its_start_to_the_beginning_of_its_stop(tmp_path: Path) -> None:
    async def scenario() -> None:
        ports = real_ports()
        broker = assemble(config(tmp_path), ports, "localhost")
        assert broker.stage == "starting"
        await broker.start()
        assert broker.stage == "ready"
        stopping = asyncio.ensure_future(broker.stop())
        await asyncio.sleep(0)
        assert broker.stage == "stopping"
        await stopping
        assert broker.stage == "stopping"
        ports.network.close()
        ports.workers.close()

    asyncio.run(scenario())


def test_both_are_answered_before_the_broker_has_started_and_until_it_has_stopped(tmp_path: Path) -> None:
    async def scenario() -> None:
        ports = real_ports()
        broker = assemble(config(tmp_path), ports, "localhost")
        endpoint = MetricsEndpoint(broker.registry, "127.0.0.1", 0, lambda: Condition(broker.lost, broker.stage))
        await endpoint.start()

        async def answers() -> tuple[int, int, int]:
            return tuple(  # type: ignore[return-value]
                [
                    status((await asked(endpoint, b"GET " + path + b" HTTP/1.1\r\n\r\n"))[0])
                    for path in (b"/health", b"/ready", b"/metrics")
                ]
            )

        assert await answers() == (200, 503, 200)
        await broker.start()
        assert await answers() == (200, 200, 200)
        broker._give_up("the tree is gone")
        assert await answers() == (503, 503, 200)
        await broker.stop()
        assert await answers() == (503, 503, 200)
        await endpoint.close()
        ports.network.close()
        ports.workers.close()

    asyncio.run(scenario())


def test_a_start_that_fails_leaves_no_port_open(tmp_path: Path) -> None:
    async def scenario() -> None:
        ports = real_ports()
        other = MetricsEndpoint(Registry(), "127.0.0.1", 0, lambda: Condition(None, "ready"))
        await other.start()
        taken = config(tmp_path, listeners=f"PLAINTEXT://127.0.0.1:{other.port}", ottla_metrics_port="0")
        with pytest.raises(PortTaken):
            async with running(taken, ports):
                pass
        await other.close()
        assert len(asyncio.all_tasks()) == 1
        ports.network.close()
        ports.workers.close()

    asyncio.run(scenario())
