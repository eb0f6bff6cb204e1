"""The code of an API, imported by a worker when the API is first asked for.

A broker starts without what it may never need. An import takes one to thirty milliseconds, though, and nobody else is
to wait for that: the client that asks first waits alone, and all others are served meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Final

from ottla.handlers.calls.turns import PausingSteps
from ottla.handlers.routes import ROUTES
from ottla.ports import Workers
from ottla.protocol.apis import api

#: The rooms of the groups: 30 ms.
_GROUPS: Final = "ottla.groups.coordinator"
#: Those that ask them, and the controller's announcement of who coordinates.
ASK_GROUPS: Final = frozenset({4, 8, 9, 10, 11, 12, 13, 14, 15, 16, 25, 28, 42, 47, 68, 69})
#: The rooms of transactions: 15 ms. And those that ask them.
_TRANSACTIONS: Final = (
    "ottla.transactions.coordinator",
    "ottla.handlers.write_txn_markers",
    "ottla.protocol.generated.transaction_log_value_steps",
)
ASK_TRANSACTIONS: Final = frozenset({4, 10, 22, 24, 25, 26, 65, 66})
#: Of regular expressions in groups: a native library that few brokers ever need.
EXPRESSIONS: Final = "re2"

#: What this process has imported, to the end: a module that is being imported is among `sys.modules` already.
_LOADED: Final[set[int | str]] = set()


def is_loaded(key: int) -> bool:
    return key in _LOADED


def load_api(key: int) -> None:
    """Its handler, its messages, and those in steps."""
    info = api(key)
    for message in (info.request_type(), info.response_type()):
        if message.HAS_ARRAYS:
            import_module(f"{message.__module__}_steps")
    import_module(f"ottla.handlers.{ROUTES[key].module}")
    if key in ASK_GROUPS:
        import_module(_GROUPS)
    if key in ASK_TRANSACTIONS:
        for name in _TRANSACTIONS:
            import_module(name)
    _LOADED.add(key)


def load_module(name: str) -> None:
    import_module(name)
    _LOADED.add(name)


def load_all() -> None:
    """For simulations, which are to go the same way whatever their process has done before."""
    for key in ROUTES:
        load_api(key)
    load_module(EXPRESSIONS)


def api_loaded(workers: Workers, key: int) -> PausingSteps[None]:
    """Goes on when the API can be served."""
    if key not in _LOADED:
        yield _Import(workers, partial(load_api, key))


def module_loaded(workers: Workers, name: str) -> PausingSteps[None]:
    if name not in _LOADED:
        yield _Import(workers, partial(load_module, name))


class _Import:
    """A pause (`turns.Pause`). What keeps a module from being imported is raised again where it is asked for."""

    def __init__(self, workers: Workers, load: Callable[[], None]) -> None:
        self._workers = workers
        self._load = load

    def wait(self, resume: Callable[[], None]) -> None:
        self._workers.thread(self._load).add_done_callback(partial(_ended, resume))


def _ended(resume: Callable[[], None], future: asyncio.Future[None]) -> None:
    if not future.cancelled():
        future.exception()
    resume()
