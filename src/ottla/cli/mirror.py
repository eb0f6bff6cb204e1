"""Copy topics of one cluster into another, and follow what changes there, as a MirrorMaker 2 property file says.

Prints `Ottla is mirroring A->B` once the topics are found; SIGTERM or Ctrl-C ends it, with all that is on its way
acknowledged. Several processes with the same file share the partitions.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ottla.cli import metrics_page
from ottla.cli.counting import counted
from ottla.cli.faults import FAILED, OK, USAGE, CommandFault

if TYPE_CHECKING:
    from ottla.mirror.flow import Flow
    from ottla.mirror.properties import Mirrors
    from ottla.server.metrics_http import MetricsEndpoint


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", required=True, help="an mm2.properties file")
    parser.add_argument("--clusters", metavar="NAME", nargs="+", help="only copy into these clusters")
    parser.add_argument(
        "-e", "--exit-at-end", action="store_true", help="end when all is copied that is there at the start"
    )
    metrics_page.arguments(parser)
    parser.add_argument("--json-logs", action="store_true", help="write the log as a JSON object a line")
    parser.add_argument(
        "--log-level", type=str.upper, choices=("DEBUG", "INFO", "WARN", "ERROR", "OFF"), help="default: INFO"
    )


def run(options: argparse.Namespace) -> int:
    import asyncio

    from ottla import logs
    from ottla.cli.property_file import read_properties
    from ottla.mirror.properties import PropertyFault, parse_mirrors

    logs.configure(level=options.log_level or "INFO", json=options.json_logs)
    try:
        mirrors = parse_mirrors(read_properties(options.config), options.clusters)
    except PropertyFault as fault:
        raise CommandFault(f"{options.config}: {fault}", USAGE) from fault
    return asyncio.run(_until_stopped(options, mirrors))


async def _until_stopped(options: argparse.Namespace, mirrors: Mirrors) -> int:
    """A signal ends it in order, as a broker."""
    import asyncio

    from ottla.process_events import stopped_by_signals

    stop = asyncio.ensure_future(stopped_by_signals().wait())
    work = asyncio.ensure_future(_mirror(options, mirrors))
    try:
        await asyncio.wait({stop, work}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        work.cancel()
        await asyncio.wait({work})
        if not work.cancelled():
            return work.result()
        return OK
    finally:
        stop.cancel()


async def _mirror(options: argparse.Namespace, mirrors: Mirrors) -> int:
    import asyncio

    from ottla import logs
    from ottla.mirror.flow import Flow

    log = logs.logger("mirror")
    for name, reason in mirrors.without_effect.items():
        log.info("a property has no effect", property=name, why=reason)
    await _reach_all(mirrors)
    flows = [Flow(settings) for settings in mirrors.flows]
    endpoint = await _serve_metrics(options, flows)
    names = ", ".join(flow.settings.name for flow in flows)
    for flow in flows:
        flow.on_started = lambda: _started(names) if all(one.started for one in flows) else None
    try:
        async with asyncio.TaskGroup() as group:
            for flow in flows:
                group.create_task(_explained(flow, exit_at_end=options.exit_at_end))
    except* CommandFault as faults:
        raise _first(faults) from None
    finally:
        if endpoint is not None:
            await endpoint.close()
    stopped = [why for flow in flows for why in flow.stopped]
    if stopped:
        raise CommandFault(f"{counted(len(stopped), 'partition')} could not be copied: {stopped[0]}", FAILED)
    return OK


async def _explained(flow: Flow, *, exit_at_end: bool) -> None:
    from ottla.cli.connecting import explained

    with explained():
        await flow.run(exit_at_end=exit_at_end)


async def _reach_all(mirrors: Mirrors) -> None:
    """The user who starts it hears at once that one of the clusters is not there; later the flows are patient."""
    from ottla.cli.connecting import explained, reach
    from ottla.client.admin.admin import Admin

    sides = [side for flow in mirrors.flows for side in (flow.source_admin, flow.target_admin)]
    for side in {one["bootstrap.servers"]: one for one in sides}.values():
        with explained():
            async with Admin(side) as admin:
                await reach(admin.cluster)


def _first(faults: BaseExceptionGroup[Any]) -> BaseException:
    fault: BaseException = faults
    while isinstance(fault, BaseExceptionGroup):
        fault = fault.exceptions[0]
    return fault


async def _serve_metrics(options: argparse.Namespace, flows: list[Flow]) -> MetricsEndpoint | None:
    if options.metrics_port is None:
        return None
    from ottla.metrics import Registry
    from ottla.mirror.metrics import register

    registry = Registry()
    register(registry, flows)
    endpoint = await metrics_page.served(options, registry)
    from ottla import logs

    logs.logger("metrics").info("metrics are served", address=endpoint.address)
    return endpoint


def _started(names: str) -> None:
    # Scripts wait for this line, so it stands alone on standard output: logs go to standard error.
    from ottla import logs
    from ottla.cli import streams

    try:
        print(f"Ottla is mirroring {names}", flush=True)
    except OSError as error:  # nobody reads it
        streams.forget_output()
        logs.logger("mirror").warning("the line could not be written to standard output", reason=error.strerror)
