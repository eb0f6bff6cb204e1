"""Serve a tree of znodes on ZooKeeper's protocol, for the brokers of one host.

Prints `Ottla's tree is listening on HOST:PORT` once clients can connect; SIGTERM or Ctrl-C stops it cleanly. Everything
is kept in DIR, and a start goes on with the sessions that were there. It is one process and no ensemble: brokers on
several machines want a real ZooKeeper.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ottla.cli.faults import OK, CommandFault, SaidFault, UsageFault
from ottla.cli.numbers import milliseconds, port_number

if TYPE_CHECKING:
    from ottla.coordination.served.limits import ServedLimits
    from ottla.coordination.served.words import Descriptors

HOST_DEFAULT = "127.0.0.1"
#: ZooKeeper's.
PORT_DEFAULT = 2181
#: Of what `_serve` imports, for a process that waits to begin.
_LOADED_AHEAD = ("ottla.broker.garbage", "ottla.coordination.served.server", "ottla.ports.real", "ottla.process_events")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dir", metavar="DIR", required=True, help="keep the tree in this folder; it is made if need be"
    )
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        default=f"{HOST_DEFAULT}:{PORT_DEFAULT}",
        help=f"listen there (default {HOST_DEFAULT}:{PORT_DEFAULT}); port 0: a free one",
    )
    parser.add_argument(
        "--min-session-timeout", type=milliseconds, metavar="MS", help="the shortest a client is given (default 1000)"
    )
    parser.add_argument(
        "--max-session-timeout", type=milliseconds, metavar="MS", help="the longest a client is given (default 60000)"
    )
    parser.add_argument("--json-logs", action="store_true", help="write the log as a JSON object a line")
    parser.add_argument(
        "--log-level", type=str.upper, choices=("DEBUG", "INFO", "WARN", "ERROR", "OFF"), help="default: INFO"
    )
    parser.add_argument(
        "--begin-with-input",
        action="store_true",
        help="load everything and wait for a line on standard input before anything else is done",
    )
    parser.add_argument(
        "--end-with-input", action="store_true", help="stop when standard input ends, as it does with whoever holds it"
    )


def run(options: argparse.Namespace) -> int:
    import asyncio
    import os.path

    from ottla import logs
    from ottla.cli.standard_input import check_ends_with_holder
    from ottla.ports.real import new_event_loop

    if not options.dir:
        raise UsageFault("--dir is empty: name a folder")
    host, port = _address(options.listen)
    limits = _limits(options)
    if options.end_with_input:
        check_ends_with_holder("--end-with-input")
    logs.configure(level=options.log_level or "INFO", json=options.json_logs)
    if options.begin_with_input and not _is_begun():
        return OK
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        work = _serve(os.path.abspath(options.dir), host, port, limits, end_with_input=options.end_with_input)
        try:
            return runner.run(work)
        except CommandFault as fault:
            if not options.json_logs:
                raise
            logs.logger("tree").error("the tree had to end", reason=str(fault))
            raise SaidFault(str(fault)) from fault


def _is_begun() -> bool:
    """Waits for a line; False where the input ends without one. What is used behind it is loaded by then."""
    import sys
    from importlib import import_module

    for name in _LOADED_AHEAD:
        import_module(name)
    return bool(sys.stdin.readline())


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host:
        raise UsageFault(f"--listen {text}: it is HOST:PORT, such as {HOST_DEFAULT}:{PORT_DEFAULT}")
    try:
        number = port_number(port)
    except argparse.ArgumentTypeError as error:
        raise UsageFault(f"--listen {text}: {error}") from error
    return host.removeprefix("[").removesuffix("]"), number


def _limits(options: argparse.Namespace) -> ServedLimits:
    from ottla.coordination.served.limits import SESSION_MS_MAX, SESSION_MS_MIN, ServedLimits

    least = SESSION_MS_MIN if options.min_session_timeout is None else options.min_session_timeout
    most = SESSION_MS_MAX if options.max_session_timeout is None else options.max_session_timeout
    if not 0 < least <= most:
        raise UsageFault(
            f"sessions cannot last from {least} to {most} ms: the shortest is at least 1 ms, and no longer"
        )
    return ServedLimits(session_ms_min=least, session_ms_max=most)


async def _serve(directory: str, host: str, port: int, limits: ServedLimits, *, end_with_input: bool = False) -> int:
    """Until a signal comes, or the tree is lost."""
    import asyncio

    from ottla.broker.garbage import collect_at_rest, settle_in
    from ottla.cli.streams import print_address
    from ottla.coordination.errors import CoordinationError
    from ottla.coordination.served.server import CannotListen, TreeServer
    from ottla.ports.real import real_ports
    from ottla.ports.real.descriptors import raise_limit
    from ottla.ports.real.workers import take_short_turns
    from ottla.process_events import report_unhandled, stop_with_input, stopped_by_signals

    raise_limit()
    take_short_turns()
    asyncio.get_running_loop().set_exception_handler(report_unhandled)
    lost: list[str] = []
    stop = stopped_by_signals()
    if end_with_input:
        stop_with_input(stop.set)

    def give_up(reason: str) -> None:
        lost.append(reason)
        stop.set()

    ports = real_ports()
    server = TreeServer(ports, directory, limits, on_lost=give_up, descriptors=_descriptors)
    at = f"[{host}]" if ":" in host else host
    try:
        try:
            port = await server.start(host, port)
        except CannotListen as fault:
            raise CommandFault(f"cannot listen on {at}:{port}: {fault}; choose another with --listen") from fault
        except CoordinationError as fault:
            raise CommandFault(str(fault)) from fault
        except OSError as fault:
            where = fault.filename or directory
            raise CommandFault(f"the tree cannot use {where}: {fault.strerror or fault}") from fault
        settle_in()
        collecting = asyncio.ensure_future(collect_at_rest(server.resting_ms))
        print_address(f"Ottla's tree is listening on {at}:{port}", "tree")
        await stop.wait()
        collecting.cancel()
        await server.stop()
    finally:
        ports.network.close()
        ports.workers.close()
    if lost:
        raise CommandFault(f"the tree had to stop: {lost[0]}")
    return OK


def _descriptors() -> Descriptors:
    from ottla.coordination.served.words import Descriptors
    from ottla.ports.real.process import files_max, open_files

    try:
        return Descriptors(sum(open_files()), int(min(files_max(), 2**31 - 1)))
    except OSError:  # where the system does not say
        return Descriptors(-1, -1)
