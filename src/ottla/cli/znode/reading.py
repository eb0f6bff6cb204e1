"""What the verbs that read a tree share: its address, a session for a moment, and what a stat says."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from ottla.cli import options as shared
from ottla.cli.faults import NOT_FOUND, UNREACHABLE, CommandFault, UsageFault

if TYPE_CHECKING:
    from ottla.coordination.interface import Coordination, Stat
    from ottla.coordination.zookeeper.addresses import Chroot

ADDRESS_DEFAULT: Final = "localhost:2181"
#: Of the session, which lasts as long as the verb.
_SESSION_MS: Final = 10_000
#: A person waits.
_CONNECT_MS: Final = 5_000

Work = Callable[["Coordination", str, argparse.Namespace], Awaitable[int]]


def tree(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--zookeeper",
        metavar="HOST:PORT",
        default=ADDRESS_DEFAULT,
        help="the servers, separated by commas, and the chroot where there is one, as zookeeper.connect has them "
        f"(default {ADDRESS_DEFAULT})",
    )
    shared.output(parser)


def run(options: argparse.Namespace, path: str, work: Work) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_run(options, path, work))


async def _run(options: argparse.Namespace, path: str, work: Work) -> int:
    async with tree_session(options.zookeeper) as (session, chroot):
        return await work(session, chroot.on_server(path), options)


@asynccontextmanager
async def tree_session(address: str) -> AsyncIterator[tuple[Coordination, Chroot]]:
    """A session for a moment; what goes wrong inside of the block ends the verb.

    The chroot is to be put before each path: a session with one would make it where it is missing.
    """
    from ottla import logs
    from ottla.config.slices import CoordinationConfig
    from ottla.coordination.errors import CoordinationError, InvalidPath, NoNode, ServersUnreachable
    from ottla.coordination.zookeeper.addresses import BadConnectString, parse_connect_string
    from ottla.coordination.zookeeper.client import open_remote
    from ottla.ports.real import real_ports

    before = logs.configure(level="OFF")
    ports = real_ports()
    try:
        connect = parse_connect_string(address)
        servers = ",".join(map(str, connect.servers))
        config = CoordinationConfig(servers, _SESSION_MS, _CONNECT_MS, set_acl=False, in_flight_requests_max=10)
        session = await open_remote(config, ports)
        try:
            yield session, connect.chroot
        finally:
            await session.close()
    except (BadConnectString, InvalidPath) as fault:
        raise UsageFault(str(fault)) from fault
    except NoNode as fault:
        raise CommandFault(f"{fault}; `ottla znode ls` names those that there are", NOT_FOUND) from fault
    except ServersUnreachable as fault:
        raise CommandFault(f"{fault}; --zookeeper says where the tree is", UNREACHABLE) from fault
    except CoordinationError as fault:
        raise CommandFault(str(fault)) from fault
    finally:
        ports.network.close()
        ports.workers.close()
        logs.restore(before)


def described(stat: Stat) -> dict[str, Any]:
    return {
        "children": stat.num_children,
        "bytes": stat.data_length,
        "version": stat.version,
        "owner": f"{stat.ephemeral_owner:#x}" if stat.ephemeral_owner else None,
        "czxid": stat.czxid,
        "mzxid": stat.mzxid,
        "pzxid": stat.pzxid,
        "ctime_ms": stat.ctime_ms,
        "mtime_ms": stat.mtime_ms,
        "cversion": stat.cversion,
        "aversion": stat.aversion,
    }
