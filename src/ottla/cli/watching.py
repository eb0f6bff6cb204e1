"""Shows the same thing again and again, as `watch` does: in place on a terminal, one after the other elsewhere."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn

from ottla.cli.output import show

#: To the upper left corner, and away with everything behind it.
_CLEAR = "\x1b[H\x1b[2J\x1b[3J"


async def watch(form: str, interval_s: float, looked: Callable[[], Awaitable[tuple[Any, str]]]) -> NoReturn:
    """Prints what `looked` gives, data and table, until it is interrupted. JSON is an object or a list a line."""
    is_first = True
    while True:
        data, table = await looked()
        if form == "json":
            import json

            sys.stdout.write(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n")
        elif form == "yaml":
            sys.stdout.write("---\n")
            show(form, data, table)
        elif sys.stdout.isatty():
            sys.stdout.write(_CLEAR + table)
        else:
            sys.stdout.write(table if is_first else f"\n{table}")
        sys.stdout.flush()
        is_first = False
        await asyncio.sleep(interval_s)
