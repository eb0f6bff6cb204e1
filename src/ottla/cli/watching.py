"""Shows the same thing again and again, as `watch` does: in place on a terminal that can do that, elsewhere one
after the other.

A broker that goes away does not end it: standard error says so, and it goes on when the broker is back.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NoReturn

from ottla.cli.output import show
from ottla.client.errors import KafkaError

if TYPE_CHECKING:
    from ottla.client.wire.cluster import Cluster

#: To the upper left corner, and away with everything behind it.
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


async def watch(
    form: str, interval_s: float, looked: Callable[[], Awaitable[tuple[Any, str]]], cluster: Cluster
) -> NoReturn:
    """Prints what `looked` gives, data and table, until it is interrupted. JSON is an object or a list a line."""
    from ottla.cli.reachability import BrokerWatch

    is_first = True
    BrokerWatch(cluster).begin()
    while True:
        try:
            data, table = await looked()
        except KafkaError as error:
            if is_first or not error.retriable:
                raise
        else:
            show_again(form, data, table, is_first=is_first)
            is_first = False
        await asyncio.sleep(interval_s)


def show_again(form: str, data: Any, table: str, *, is_first: bool) -> None:
    """Prints it in place of what was shown before, or behind it."""
    if form == "json":
        import json

        sys.stdout.write(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n")
    elif form == "yaml":
        sys.stdout.write("---\n")
        show(form, data, table)
    elif sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        sys.stdout.write(_CLEAR + table)
    else:
        sys.stdout.write(table if is_first else f"\n{table}")
    sys.stdout.flush()
