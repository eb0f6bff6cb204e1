"""Show a znode of the coordination tree: its data and what else is known of it."""

from __future__ import annotations

import argparse

from ottla.cli import options as shared
from ottla.cli.faults import NOT_FOUND, OK, CommandFault


def arguments(parser: argparse.ArgumentParser) -> None:
    from ottla.cli.znode.asking import arguments as shared_with_ls

    shared_with_ls(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    import asyncio

    return asyncio.run(_get(options))


async def _get(options: argparse.Namespace) -> int:
    from ottla.cli.output import show
    from ottla.cli.znode.asking import tree
    from ottla.coordination.errors import InvalidPath, NoNode

    async with tree(options) as session:
        try:
            data, stat = await session.get(options.path)
        except (NoNode, InvalidPath) as error:
            raise CommandFault(str(error), NOT_FOUND) from error
    text = data.decode(errors="backslashreplace")
    lines = [f"{text}\n", *(f"{name:16} {value}\n" for name, value in stat._asdict().items())]
    show(options.output, {"data": text, "stat": stat._asdict()}, "".join(lines))
    return OK
