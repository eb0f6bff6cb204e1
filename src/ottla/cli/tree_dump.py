"""Write a cluster's tree as JSON, to look at, to keep, or to load into another place with `ottla tree load`.

The brokers are to be stopped before: a dump that was made while one was registered can be looked at, and not loaded.

ottla tree dump --dir ~/.local/state/ottla/data.coordination --file tree.json
ottla tree dump --zookeeper zk-1:2181,zk-2:2181,zk-3:2181/ottla --file tree.json
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from ottla.cli import tree_places
from ottla.cli.faults import OK

if TYPE_CHECKING:
    from ottla.ports import Ports


def arguments(parser: argparse.ArgumentParser) -> None:
    tree_places.place(parser)
    parser.add_argument("--file", metavar="FILE", help="write it there (default: to standard output)")


def run(options: argparse.Namespace) -> int:
    async def work(ports: Ports) -> int:
        return await _dump(options, ports)

    return tree_places.run(work)


async def _dump(options: argparse.Namespace, ports: Ports) -> int:
    import json

    from ottla.coordination.moving import KAFKA_NAMES, registered_brokers
    from ottla.coordination.transfer import export_tree, parsed
    from ottla.ports.real.whole_file import write_file

    async with tree_places.read(options, ports) as tree:
        dump = await export_tree(tree, KAFKA_NAMES)
    if alive := registered_brokers(parsed(dump)):
        named = ", ".join(map(str, alive))
        print(
            f"ottla: registered while this was made: {named}. `ottla tree load` does not take it: stop them first, and "
            "what serves the tree after them",
            file=sys.stderr,
        )
    # A node a line: two dumps can be compared.
    nodes = ",\n".join(json.dumps(node, ensure_ascii=False) for node in dump["nodes"])
    text = f'{{"format": {dump["format"]}, "nodes": [\n{nodes}\n]}}\n'
    if options.file is None:
        sys.stdout.write(text)
    else:
        write_file(options.file, text.encode())
    return OK
