"""A broker's sessions with its tree: the one that there is, and how another one is opened.

A start may outlast a session, since a recovery takes as long as it takes: what it does with the tree is tried again in
the next one. From the registration on `membership.py` sees to that, and says which session is the present one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ottla import logs
from ottla.broker.identity import coordination_directory
from ottla.broker.tree_signs import TreeSigns
from ottla.config import Config
from ottla.coordination.errors import ConnectionLoss, CoordinationError, SessionExpired
from ottla.coordination.providers import BrokersTree, Opening, open_tree
from ottla.metrics.times import Times
from ottla.ports import Ports

log_event = logs.logger("server")

T = TypeVar("T")


class TreeSessions:
    def __init__(self, config: Config, ports: Ports, times: Times) -> None:
        """Reads the signs of the log directories. Raises DirectoryError where the tree would begin anew. `times` are
        those of requests, of one session after the other."""
        self._config = config
        self._ports = ports
        self._times = times
        self._directory = coordination_directory(ports.disk, config.storage.log_dirs)
        self.signs = TreeSigns(ports, config.storage.log_dirs, self._directory)
        self._present: BrokersTree | None = None

    @property
    def present(self) -> BrokersTree:
        """The tree in the present session, or in the last one."""
        assert self._present is not None
        return self._present

    @property
    def is_open(self) -> bool:
        """From `begin` to `close`."""
        return self._present is not None

    async def begin(self) -> None:
        self._present = await self.open()

    async def open(self) -> BrokersTree:
        """The tree in a session of its own, which is the caller's until `go_on`."""
        try:
            return await open_tree(
                Opening(self._config.coordination, self._ports, self._directory, self.signs.check, self._times)
            )
        except OSError as error:
            if error.filename is None:  # writes do not know their file's name
                error.filename = self._directory
            raise

    def go_on(self, tree: BrokersTree) -> None:
        """This session is the present one from here on."""
        self._present = tree
        self.signs.go_on(tree)

    async def have(self, work: Callable[[BrokersTree], Awaitable[T]]) -> T:
        """Does it, in another session where the one that there was has ended, or where its connection took the answer
        to a write with it."""
        while True:
            try:
                return await work(self.present)
            except (SessionExpired, ConnectionLoss) as fault:
                if not self._config.coordination.zookeeper_connect:
                    raise
                log_event.warning("the start goes on in another session with the coordination tree", fault=str(fault))
                await self.present.close()
                self._present = await self.open()

    async def close(self) -> None:
        tree, self._present = self._present, None
        if tree is None:
            return
        try:
            await tree.close()
        except CoordinationError as fault:
            # The next start ends the session, and finds what is certain.
            log_event.error("the coordination tree was not left clean", reason=fault)
