"""Write what `ottla tree dump` has written into another place: a folder, or a ZooKeeper. All brokers are stopped.

It refuses to go back: into a tree of another cluster, one that brokers are registered in, or one that went on after the
dump. A load that was cut short leaves a tree that no broker starts with; run it again.

ottla tree load --zookeeper zk-1:2181,zk-2:2181,zk-3:2181/ottla --file tree.json
ottla tree load --dir ~/.local/state/ottla/data.coordination --file tree.json --replace
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ottla.cli import options as shared
from ottla.cli import tree_places
from ottla.cli.faults import OK, CommandFault

if TYPE_CHECKING:
    from ottla.ports import Ports


def arguments(parser: argparse.ArgumentParser) -> None:
    tree_places.place(parser)
    parser.add_argument("--file", metavar="FILE", required=True, help="what `ottla tree dump` has written")
    parser.add_argument(
        "--replace", action="store_true", help="write it over the same cluster's tree, unless that one has gone further"
    )
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    dump = _read(options.file)

    async def work(ports: Ports) -> int:
        return await _load(options, dump, ports)

    return tree_places.run(work)


def _read(path: str) -> Any:
    from ottla.cli.json_file import read_json

    try:
        return read_json(path)
    except ValueError as error:
        raise CommandFault(f"{path} is not what `ottla tree dump` writes: {error}") from error


async def _load(options: argparse.Namespace, dump: Any, ports: Ports) -> int:
    from ottla.cli.output import show
    from ottla.coordination.moving import load_tree
    from ottla.coordination.transfer import DamagedDump

    async with tree_places.write(options, ports) as tree:
        try:
            loaded = await load_tree(tree, dump, replace=options.replace)
        except DamagedDump as fault:
            raise CommandFault(f"{options.file} is not what `ottla tree dump` writes: {fault}") from fault
    found = {"cluster": loaded.cluster_id, "znodes": loaded.nodes, "topics": loaded.topics}
    show(options.output, found, "".join(f"{name}: {value}\n" for name, value in found.items()))
    return OK
