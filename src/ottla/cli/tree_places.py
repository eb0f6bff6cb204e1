"""What `tree dump` and `tree load` share: where a tree is, and what keeps one from being read or written."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final

from ottla.cli.faults import FAILED, NOT_FOUND, UNREACHABLE, CommandFault, UsageFault

if TYPE_CHECKING:
    from ottla.coordination.interface import Coordination
    from ottla.coordination.transfer import ReadableTree
    from ottla.ports import Ports

#: Of the session, which lasts as long as the verb.
_SESSION_MS: Final = 10_000
#: A person waits.
_CONNECT_MS: Final = 5_000


def place(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument(
        "--zookeeper",
        metavar="HOST:PORT",
        help="the servers, separated by commas, and the chroot where there is one, as zookeeper.connect has them",
    )
    which.add_argument(
        "--dir",
        metavar="DIR",
        help="a tree's folder that no process uses: `ottla up` keeps it in data.coordination",
    )


def run(work: Callable[[Ports], Coroutine[Any, Any, int]]) -> int:
    """`work`, with the faults of trees as one line."""
    from ottla import logs
    from ottla.cli.connecting import run as run_on_loop
    from ottla.ports.real import real_ports

    async def with_ports() -> int:
        ports = real_ports()
        try:
            with _faults():
                return await work(ports)
        finally:
            ports.network.close()
            ports.workers.close()

    before = logs.configure(level="OFF")
    try:
        return run_on_loop(with_ports())
    finally:
        logs.restore(before)


@contextmanager
def _faults() -> Iterator[None]:
    from ottla.coordination.at_rest import NoTree
    from ottla.coordination.errors import CoordinationError, InvalidPath, ServersUnreachable
    from ottla.coordination.zookeeper.addresses import BadConnectString

    try:
        yield
    except (BadConnectString, InvalidPath) as fault:
        raise UsageFault(str(fault)) from fault
    except NoTree as fault:
        raise CommandFault(str(fault), NOT_FOUND) from fault
    except ServersUnreachable as fault:
        raise CommandFault(f"{fault}; --zookeeper says where the tree is", UNREACHABLE) from fault
    except CoordinationError as fault:
        raise CommandFault(str(fault), FAILED) from fault


@asynccontextmanager
async def read(options: argparse.Namespace, ports: Ports) -> AsyncIterator[ReadableTree]:
    from ottla.coordination.at_rest import NoTree, tree_at_rest

    if options.dir is not None:
        with tree_at_rest(ports.disk, _folder(options.dir)) as tree:
            yield tree
        return
    # A session with a chroot makes it where it is missing: one without looks first.
    servers, prefix = _servers(options.zookeeper)
    async with _session(servers, ports) as session:
        if prefix and await session.exists(prefix) is None:
            raise NoTree(f"there is no znode {prefix} on {servers}")
    async with _session(servers + prefix, ports) as session:
        await session.sync("/")
        yield session


@asynccontextmanager
async def write(options: argparse.Namespace, ports: Ports) -> AsyncIterator[Coordination]:
    """A folder or a chroot is made where it is missing."""
    if options.dir is None:
        async with _session(options.zookeeper, ports) as session:
            await session.sync("/")
            yield session
        return
    from ottla.coordination.local import open_local

    _refuse_open_sessions(ports, _folder(options.dir))
    local = await open_local(
        disk=ports.disk,
        workers=ports.workers,
        clock=ports.clock,
        entropy=ports.entropy,
        directory=_folder(options.dir),
    )
    try:
        yield local
    finally:
        await local.close()


def _refuse_open_sessions(ports: Ports, directory: str) -> None:
    """To open the tree here would end them, and their brokers may run."""
    from ottla.coordination.at_rest import NoTree, tree_at_rest

    try:
        with tree_at_rest(ports.disk, directory) as tree:
            sessions = tree.sessions_of_others
    except NoTree:
        return
    if sessions:
        plural = "" if sessions == 1 else "s"
        raise CommandFault(
            f"{directory} has {sessions} open session{plural} of other processes: stop them, then start and stop what "
            "served the tree (`ottla up`, `ottla tree`), which ends what is left of them by its time-out",
            FAILED,
        )


def _folder(path: str) -> str:
    import os

    if not path:
        raise UsageFault("--dir is empty: name a folder")
    return os.path.abspath(path)


def _servers(text: str) -> tuple[str, str]:
    from ottla.coordination.zookeeper.addresses import parse_connect_string

    connect = parse_connect_string(text)
    return ",".join(map(str, connect.servers)), connect.chroot.prefix


@asynccontextmanager
async def _session(connect: str, ports: Ports) -> AsyncIterator[Coordination]:
    from ottla.config.slices import CoordinationConfig
    from ottla.coordination.zookeeper.client import open_remote

    config = CoordinationConfig(connect, _SESSION_MS, _CONNECT_MS, set_acl=False, in_flight_requests_max=10)
    session = await open_remote(config, ports)
    try:
        yield session
    finally:
        await session.close()
