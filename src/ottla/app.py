"""The composition root: a broker from a configuration and a world. The real world is put together here only."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from ottla import logs
from ottla.broker.broker import Broker, StartFault
from ottla.broker.garbage import collect_at_rest, settle_in
from ottla.broker.group_metrics import register_group_metrics
from ottla.broker.loop_stalls import LoopStalls, register_loop_stalls
from ottla.broker.metrics import register_broker_metrics
from ottla.broker.process_metrics import register_process_metrics
from ottla.broker.transaction_metrics import register_transaction_metrics
from ottla.config import Config
from ottla.ports import Ports
from ottla.ports.real import new_event_loop, real_ports
from ottla.ports.real.descriptors import raise_limit
from ottla.ports.real.workers import take_short_turns
from ottla.process_events import report_unhandled, stop_with_input, stopped_by_signals
from ottla.server.metrics_http import Condition, MetricsEndpoint


class BrokerLost(Exception):
    """A broker that ran could go on no more, and was stopped; the message says why."""


def assemble(
    config: Config, ports: Ports, host_name: str | None = None, on_lost: Callable[[str], None] | None = None
) -> Broker:
    """`host_name` is given to clients where no address is configured: this machine's, unless given."""
    name = socket.gethostname() if host_name is None else host_name
    broker = Broker(config, ports, host_name=name, on_lost=on_lost)
    register_broker_metrics(broker)
    register_group_metrics(broker)
    register_transaction_metrics(broker)
    return broker


@asynccontextmanager
async def running(
    config: Config, ports: Ports, on_lost: Callable[[str], None] | None = None
) -> AsyncIterator[tuple[Broker, MetricsEndpoint | None]]:
    """A broker that serves inside of the block, with its metrics where they are asked for, and has stopped after it."""
    broker = assemble(config, ports, on_lost=on_lost)
    register_process_metrics(broker.registry)
    stalls = LoopStalls()
    register_loop_stalls(broker.registry, stalls)
    # First of all, and to the end: a client that asks `/ready` learns that the broker starts, or stops.
    metrics = await _serve_metrics(broker)
    try:
        stalls.start()
        await broker.start()
        try:
            yield broker, metrics
        finally:
            await broker.stop()
    finally:
        stalls.stop()
        if metrics is not None:
            await metrics.close()


async def _serve_metrics(broker: Broker) -> MetricsEndpoint | None:
    observe = broker.config.observe
    if observe.metrics_port is None:
        return None
    endpoint = MetricsEndpoint(
        broker.registry, observe.metrics_host, observe.metrics_port, lambda: Condition(broker.lost, broker.stage)
    )
    try:
        await endpoint.start()
    except OSError as error:
        # The event loop's words name the address once more. What a resolver says has a number of its own, below 0.
        reason = os.strerror(error.errno) if (error.errno or 0) > 0 else error.strerror or str(error)  # type: ignore[arg-type]
        raise StartFault(f"ottla.metrics.port: cannot listen on {endpoint.address}: {reason}") from error
    return endpoint


Prepare = Callable[[Broker], Awaitable[None]]


async def serve(
    config: Config,
    started: Callable[[Broker], None],
    prepare: Prepare | None = None,
    *,
    end_with_input: bool = False,
) -> None:
    """Runs a broker on this machine until SIGINT, SIGTERM or SIGHUP stops it.

    `prepare` is awaited when clients can connect, and before `started` is called.
    """
    logs.configure(level=config.observe.log_level, json=config.observe.log_json)
    raise_limit()
    take_short_turns()
    ports = real_ports()
    stop = stopped_by_signals()
    asyncio.get_running_loop().set_exception_handler(report_unhandled)
    orphaned = asyncio.Event()

    def input_ended() -> None:
        orphaned.set()
        stop.set()

    if end_with_input:
        stop_with_input(input_ended)
    serving = asyncio.current_task()
    assert serving is not None
    impatient = asyncio.ensure_future(_end_start(stop, serving))
    lost: list[str] = []
    try:

        def give_up(reason: str) -> None:
            lost.append(reason)
            stop.set()

        async with running(config, ports, give_up) as (broker, _):
            impatient.cancel()
            settle_in()
            collecting = asyncio.ensure_future(collect_at_rest(broker.resting_ms))
            if prepare is not None:
                await prepare(broker)
            started(broker)
            await stop.wait()
            # The process that held our input held the others' too.
            broker.hands_over = not orphaned.is_set()
            collecting.cancel()
    except asyncio.CancelledError:
        if impatient.cancelled() or not impatient.done():
            raise
        serving.uncancel()
    finally:
        impatient.cancel()
        ports.network.close()
        ports.workers.close()
    if lost:
        raise BrokerLost(f"the broker had to stop: {lost[0]}")


async def _end_start(stop: asyncio.Event, serving: asyncio.Task[Any]) -> None:
    """A start may wait for long: for the id that an earlier life has left, or for a controller."""
    await stop.wait()
    serving.cancel()


def run(
    config: Config,
    started: Callable[[Broker], None],
    prepare: Prepare | None = None,
    *,
    end_with_input: bool = False,
) -> None:
    """`serve` in a loop of its own, made for it."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(serve(config, started, prepare, end_with_input=end_with_input))
