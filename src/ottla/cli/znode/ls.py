"""Name the children of a znode, in a tree of Ottla's or a ZooKeeper's.

ottla znode ls /brokers --zookeeper localhost:2181
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from ottla.cli.faults import OK
from ottla.cli.znode import reading

if TYPE_CHECKING:
    from ottla.coordination.interface import Coordination

#: Nodes that are asked for at once.
_READ_AT_ONCE: Final = 1_000
_COLUMNS: Final = {"path": "PATH", "children": "CHILDREN", "bytes": "BYTES", "version": "VERSION", "owner": "SESSION"}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", metavar="PATH", default="/", help="the znode (default: /)")
    parser.add_argument("-r", "--recursive", action="store_true", help="all below it, not its children alone")
    reading.tree(parser)


def run(options: argparse.Namespace) -> int:
    return reading.run(options, options.path, _list)


async def _list(session: Coordination, path: str, options: argparse.Namespace) -> int:
    from ottla.cli.output import show_rows

    rows: list[dict[str, Any]] = []
    waiting = await _children(session, path)
    while waiting:
        some, waiting = waiting[:_READ_AT_ONCE], waiting[_READ_AT_ONCE:]
        for child, found in zip(some, await session.get_many(some), strict=True):
            if found is None:
                continue  # it has gone meanwhile
            rows.append({"path": child, **reading.described(found[1])})
            if options.recursive and found[1].num_children:
                waiting += await _children(session, child, gone=True)
    show_rows(options.output, sorted(rows, key=lambda row: row["path"]), _COLUMNS)
    return OK


async def _children(session: Coordination, path: str, *, gone: bool = False) -> list[str]:
    """`gone`: whether a znode that is not there has none."""
    from ottla.coordination.errors import NoNode

    try:
        names, _ = await session.children(path)
    except NoNode:
        if gone:
            return []
        raise
    prefix = "" if path == "/" else path
    return [f"{prefix}/{name}" for name in names]
