"""A whole cluster on this host: the tree first, then the brokers; and all of it backwards.

What dies is started again on its old port. Without the tree the brokers go on: leaders stay what they are, and nobody
is elected until it is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from ottla import logs
from ottla.local_cluster.free_ports import free_port
from ottla.local_cluster.layout import BrokerPlan, Wishes, cluster_directory, locked, planned, tree_directory, write
from ottla.local_cluster.member import Member, StartFailed, ottla
from ottla.ports.disk import Lock

log_event = logs.logger("up")

#: Where the tree is served: this host's brokers alone ask for it.
_TREE_HOST: Final = "127.0.0.1"


class LocalCluster:
    def __init__(
        self,
        wishes: Wishes,
        passed_on: Callable[[str, bytes], None],
        zookeeper: str | None = None,
        arranged: Callable[[BrokerPlan], Awaitable[BrokerPlan]] | None = None,
    ) -> None:
        """`zookeeper`: a tree that is there, in place of one of our own. `arranged` may change how a broker starts."""
        self._wishes = wishes
        self._passed_on = passed_on
        self._arranged = arranged
        #: HOST:PORT of the tree, once that is known.
        self.zookeeper = zookeeper
        self.tree: Member | None = None
        #: By broker id, in order.
        self.brokers: dict[int, Member] = {}
        #: While anything runs.
        self._lock: Lock | None = None

    async def start(self) -> list[str]:
        """The addresses of the brokers, once clients can connect to each. Raises StartFailed; nothing runs then."""
        try:
            own_tree = self.zookeeper is None
            if self.zookeeper is None:
                self.zookeeper = await self._start_tree()
            self._lock = self._locked()
            for plan in planned(self._wishes, self.zookeeper, own_tree=own_tree):
                if self._arranged is not None:
                    plan = await self._arranged(plan)  # noqa: PLW2901 - the one that is started
                self._check_own_id(plan)
                write(plan)
                self.brokers[plan.id] = Member(f"broker {plan.id}", ottla(*plan.command_words()), self._passed_on)
            for broker in self.brokers.values():
                broker.start()
            return list(await asyncio.gather(*(broker.address for broker in self.brokers.values())))
        except BaseException:
            await self.stop()
            raise

    def _locked(self) -> Lock:
        first_log_dir = self._wishes.first_log_dir
        try:
            return locked(first_log_dir)
        except BlockingIOError as error:
            where = cluster_directory(first_log_dir)
            raise StartFailed(f"{where} is in use by another process: stop that one first") from error

    def _check_own_id(self, plan: BrokerPlan) -> None:
        if plan.id in self.brokers:
            raise StartFailed(
                f"two of the log directories are broker {plan.id}'s, by their meta.properties: {plan.own['log.dirs']} "
                "and one before it; is one a copy?"
            )

    async def _start_tree(self) -> str:
        form = ["--json-logs"] if self._wishes.json_logs else []
        ends = ("--begin-with-input", "--end-with-input")
        words = ("tree", *form, "--dir", tree_directory(self._wishes.first_log_dir), *ends, "--listen")
        # Brokers look for it where it was.
        address = f"{_TREE_HOST}:{free_port(_TREE_HOST)}"
        tree = self.tree = Member("tree", ottla(*words, address), self._passed_on, has_spare=True)
        tree.start()
        return await tree.address

    async def kill(self) -> None:
        """Everything at once, as when the host dies."""
        for member in (*self.brokers.values(), *([self.tree] if self.tree is not None else [])):
            member.kill()
        await self.stop()

    async def stop(self) -> None:
        """The brokers hand their partitions to one another for as long as there are two, and the tree ends last."""
        await asyncio.gather(*(broker.stop() for broker in self.brokers.values()))
        if self.tree is not None:
            await self.tree.stop()
        if self._lock is not None:
            self._lock.release()
            self._lock = None
