"""Print the data of a znode, in a tree of Ottla's or a ZooKeeper's.

ottla znode get /controller --zookeeper localhost:2181
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ottla.cli.faults import OK
from ottla.cli.znode import reading

if TYPE_CHECKING:
    from ottla.coordination.interface import Coordination


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", metavar="PATH", help="the znode")
    reading.tree(parser)


def run(options: argparse.Namespace) -> int:
    return reading.run(options, options.path, _get)


async def _get(session: Coordination, path: str, options: argparse.Namespace) -> int:
    import sys

    from ottla.cli.output import show

    data, stat = await session.get(path)
    if options.output == "table":
        sys.stdout.flush()
        sys.stdout.buffer.write(data + b"\n")
        sys.stdout.buffer.flush()
        return OK
    show(options.output, {"path": path, **_readable(data), **reading.described(stat)}, "")
    return OK


def _readable(data: bytes) -> dict[str, Any]:
    """As in a dump of the tree: what is no text is in base64."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        import base64

        return {"base64": base64.b64encode(data).decode()}
