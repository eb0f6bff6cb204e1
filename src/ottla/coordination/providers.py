"""Where a broker's tree is, as its configuration says: one table, and what a broker needs of any of them.

A provider is a module that implements `BrokersTree`, and a line here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, Protocol

from ottla.config.slices import CoordinationConfig
from ottla.coordination.interface import Coordination
from ottla.coordination.loading import TreeCheck, nothing_to_check
from ottla.metrics.times import Times
from ottla.ports import Ports


class BrokersTree(Coordination, Protocol):
    """A broker's session, and what becomes of its tree.

    It is one session: after an expiry `open_tree` gives the next, with nodes and watches of its own.
    """

    @property
    def place(self) -> str:
        """What the tree is called in messages: a directory, or addresses."""
        ...

    @property
    def fault(self) -> str | None:
        """Why the tree is lost to this process; None while it is not."""
        ...

    @property
    def is_connected(self) -> bool:
        """Whether the tree can be asked now, as far as is known."""
        ...

    @property
    def durable_zxid(self) -> int:
        """The last transaction that certainly stays."""
        ...

    def start_ends(self) -> None:
        """From here on what cannot be made durable is refused. Until then it may be held back (`is_behind`)."""
        ...

    @property
    def is_behind(self) -> bool:
        """Whether something is in the tree that is not durable yet."""
        ...

    def when_caught_up(self, call: Callable[[], None]) -> None:
        """Calls once everything is durable. Only while it is behind."""
        ...


class Opening(NamedTuple):
    """What a provider is given at a start."""

    config: CoordinationConfig
    ports: Ports
    #: Where a tree in this process has its files.
    directory: str
    #: Looks at the tree as it is found, before anything is written. What it raises ends the start.
    check: TreeCheck = nothing_to_check
    #: How long requests take is added there; a tree in this process is asked for nothing.
    times: Times | None = None


class Provider(NamedTuple):
    is_chosen: Callable[[CoordinationConfig], bool]
    #: Raises CoordinationError or OSError.
    open: Callable[[Opening], Awaitable[BrokersTree]]


async def _local(opening: Opening) -> BrokersTree:
    from ottla.coordination.local import open_local
    from ottla.coordination.store import StoreOptions

    ports = opening.ports
    return await open_local(
        disk=ports.disk,
        workers=ports.workers,
        clock=ports.clock,
        entropy=ports.entropy,
        directory=opening.directory,
        options=StoreOptions(hold_back=True),
        check=opening.check,
    )


async def _zookeeper(opening: Opening) -> BrokersTree:
    from ottla.coordination.zookeeper.client import open_remote

    return await open_remote(opening.config, opening.ports, check=opening.check, times=opening.times)


#: The first that is chosen. The last one is what a broker has that names no other.
PROVIDERS: Final[Sequence[Provider]] = (
    Provider(lambda config: bool(config.zookeeper_connect), _zookeeper),
    Provider(lambda config: True, _local),
)


async def open_tree(opening: Opening, providers: Sequence[Provider] = PROVIDERS) -> BrokersTree:
    chosen = next(provider for provider in providers if provider.is_chosen(opening.config))
    return await chosen.open(opening)
