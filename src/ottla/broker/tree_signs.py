"""That there is a coordination tree, and how far it has been, stands in every log directory as well.

The tree's own folder can be emptied, lost with its disk, or put back from an older copy, while the logs stay. Without a
word in the log directories the first two pass for a first start, and the last for the truth: settings that were to keep
records are gone, and retention deletes what they kept. So each directory has a sign (`storage/formats/tree_sign.py`):

    no tree, no sign           a first start, or logs that Kafka wrote
    no tree, a sign            the tree is lost: topics are taken over again, and keep everything (`adopting.py`)
    a tree behind its sign     its journal was cut, or it is an older copy: the start is refused
    a tree of another time     said, and the sign is written anew

A sign is written before the first request is served, and again soon after the tree has changed. What a cut takes of the
seconds between is not noticed.
"""

from __future__ import annotations

import asyncio
import os.path
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from ottla import logs
from ottla.coordination.errors import StorageDamaged
from ottla.coordination.interface import TreeAge
from ottla.coordination.providers import BrokersTree
from ottla.coordination.znodes import CLUSTER_ID, decode_cluster_id
from ottla.ports import Ports
from ottla.storage.formats import tree_sign
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.tree_sign import TreeSign

log_event = logs.logger("server")

#: How soon after a change of the tree the signs say so: each is two fsyncs a directory, in a worker.
_INTERVAL_S: Final = 5.0


class TreeSigns:
    """The signs of one broker's log directories: as they were found, and then as they are kept."""

    def __init__(self, ports: Ports, directories: Sequence[str], tree: str) -> None:
        """Reads them. Directories that cannot be read say nothing here: the step that takes them finds out why."""
        self._ports = ports
        self.tree = tree
        #: By directory; None where there is one that nobody can read.
        self.found: dict[str, TreeSign | None] = {}
        #: Log directories that are there and have none.
        self.unsigned: list[str] = []
        #: As all directories have it.
        self._last: TreeSign | None = None
        self._session: BrokersTree | None = None
        self._online: Callable[[], Sequence[str]] = list
        self._timer: asyncio.TimerHandle | None = None
        self._writing: asyncio.Future[None] | None = None
        for path in directories:
            self._read(path)

    def _read(self, directory: str) -> None:
        disk, path = self._ports.disk, _path_in(directory)
        try:
            sign = tree_sign.read(disk, path)
            if sign is not None:
                self.found[directory] = sign
            else:
                self.unsigned.append(directory)
        except FormatError as error:
            log_event.warning("a sign of the coordination tree is damaged", path=path, fault=str(error))
            self.found[directory] = None
        except OSError:
            pass

    # -- at the start

    def check(self, age: TreeAge) -> None:
        """Raises StorageDamaged where the tree, as it was found, is behind its sign. Nothing was written yet."""
        if age.created_ms is None:
            return  # nobody ever finished a start with it: `adopting.py` says what that means
        for directory, sign in self.found.items():
            if sign is None:
                continue
            if sign.created_ms != age.created_ms:
                log_event.warning(
                    "a log directory was used with another coordination tree: settings may differ from that one's",
                    directory=directory,
                    tree=self.tree,
                    was=sign.tree,
                )
            elif sign.zxid > age.zxid:
                raise StorageDamaged(
                    f"{self.tree} can be read up to transaction {age.zxid} only, and has been at {sign.zxid} at "
                    f"least, as {_path_in(directory)} says: its journal was cut, or it is an older copy, and "
                    f"acknowledged changes of topics and settings are missing. Restore its files; or remove "
                    f"{tree_sign.FILE_NAME} from every log directory to go on without these changes; or move "
                    f"{self.tree} away, and the topics are taken over from their logs, which then keep everything"
                )

    # -- from then on

    async def keep(self, session: BrokersTree, online: Callable[[], Sequence[str]]) -> None:
        """Writes the signs of the directories that work, and again after each change of the tree, until `close`."""
        data, stat = await session.get(CLUSTER_ID)
        cluster_id = decode_cluster_id(CLUSTER_ID, data)
        self._session, self._online = session, online
        self._last = TreeSign(self.tree, cluster_id, stat.ctime_ms, -1)
        await self._write()
        self._timer = asyncio.get_running_loop().call_later(_INTERVAL_S, self._look)

    def go_on(self, session: BrokersTree) -> None:
        """The broker has another session with its tree."""
        self._session = session

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._writing is not None:
            self._writing.cancel()

    def _look(self) -> None:
        # A disk that hangs has one worker, and not one more with each look.
        if self._writing is None or self._writing.done():
            self._writing = asyncio.ensure_future(self._write())
        self._timer = asyncio.get_running_loop().call_later(_INTERVAL_S, self._look)

    async def _write(self) -> None:
        """A directory that refuses is tried again the next time."""
        assert self._session is not None
        assert self._last is not None
        sign = self._last._replace(zxid=self._session.durable_zxid)
        if sign == self._last or self._session.fault is not None:
            return
        whole = True
        for directory in self._online():
            try:
                await self._ports.workers.thread(partial(tree_sign.write, self._ports.disk, _path_in(directory), sign))
            except OSError as error:
                whole = False
                log_event.warning_limited(
                    "the sign of the coordination tree cannot be written yet",
                    key=directory,
                    directory=directory,
                    fault=error.strerror or str(error),
                )
        if whole:
            self._last = sign


def _path_in(directory: str) -> str:
    return os.path.join(directory, tree_sign.FILE_NAME)
