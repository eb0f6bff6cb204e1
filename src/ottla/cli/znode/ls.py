"""Name the children of a znode of the coordination tree."""

from __future__ import annotations

import argparse

from ottla.cli import options as shared
from ottla.cli.faults import NOT_FOUND, OK, CommandFault


def arguments(parser: argparse.ArgumentParser) -> None:
    from ottla.cli.znode.asking import arguments as shared_with_get

    shared_with_get(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    import asyncio

    return asyncio.run(_list(options))


async def _list(options: argparse.Namespace) -> int:
    from ottla.cli.output import show
    from ottla.cli.znode.asking import tree
    from ottla.coordination.errors import InvalidPath, NoNode

    async with tree(options) as session:
        try:
            names, _ = await session.children(options.path)
        except (NoNode, InvalidPath) as error:
            raise CommandFault(str(error), NOT_FOUND) from error
    show(options.output, names, "".join(f"{name}\n" for name in names))
    return OK
