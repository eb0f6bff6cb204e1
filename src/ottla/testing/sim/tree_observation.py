"""Reads a tree's transactions into the state that the invariants speak of: partitions' states, and who may write them.

A transaction is seen when it is durable and before anybody hears of it. What a start finds in the tree that was not
seen (a write whose process ended before it could answer) is taken over as it is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Sequence
from math import inf
from typing import Any, Final, cast

from ottla.coordination import znodes
from ottla.coordination.interface import Create, CreatedNode, Delete, SetData, Stat
from ottla.coordination.requests import WriteRequest
from ottla.coordination.served.session_life import SessionLife
from ottla.coordination.sessions import STORE_SESSION
from ottla.coordination.store import TreeStore
from ottla.coordination.tree import AppliedTransaction, CloseSession, TreeOp
from ottla.model import TopicPartition
from ottla.testing.sim.invariants.cluster import Cluster, Partition, TreeChange, TreeState
from ottla.testing.sim.trace import Trace

_STATE: Final = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
_BROKER: Final = re.compile(r"/brokers/ids/(\d+)")
_TOPIC: Final = re.compile(r"/brokers/topics/([^/]+)")
#: What somebody writes by hand in the place of what stood there.
DAMAGE: Final = b"{"
#: So long after it was put right a controller may not have looked there yet.
_MENDED_S: Final = 15.0


def is_damaged(data: bytes) -> bool:
    return data == DAMAGE


class TreeObserver:
    def __init__(self, cluster: Cluster, trace: Trace, unclean_topics: Container[str] = ()) -> None:
        self._cluster = cluster
        self._trace = trace
        #: Those whose leaders may be elected from outside of the ISR.
        self._unclean_topics = unclean_topics
        self._topic_ids: dict[str, bytes] = {}
        self._states: dict[str, TreeState] = {}
        #: When each broker's registration went that has not come again.
        self._gone: dict[int, float] = {}
        #: By session, as far as they were seen: the broker that is registered under it.
        self._registered: dict[int, int] = {}
        #: When states were damaged, or mended, by hand: what was due meanwhile is done later.
        self._touched: dict[str, float] = {}
        #: Sessions that the tree ends by itself.
        self._expiring: set[int] = set()
        #: Session of the owner of /controller; 0: nobody's.
        self.controller_session = 0
        self.controller_epoch = 0
        #: How often what happened.
        self.events: Counter[str] = Counter()

    def nobody_heard(self) -> None:
        """The tree was away, or stood still: nobody could hear before of those who are gone."""
        self._gone = dict.fromkeys(self._gone, self._trace.seconds)

    def watch(self, store: TreeStore) -> None:
        """A store that is open, from now on."""
        self._take_over(store)
        self.nobody_heard()
        hooked = cast("Any", store)
        answer = hooked._answer  # noqa: SLF001 - the moment between durable and known has no other name

        def observed(batch: Sequence[WriteRequest]) -> Any:
            for write in batch:
                if isinstance(write.outcome, AppliedTransaction):
                    self._transaction(write.session_id, write.ops, write.outcome)
            return answer(batch)

        hooked._answer = observed  # noqa: SLF001

    def watch_ends(self, life: SessionLife) -> None:
        """Of sessions that their owners have not ended."""
        self._expiring.clear()
        end = life.end

        def ended(session_id: int) -> None:
            self._expiring.add(session_id)
            end(session_id)

        cast("Any", life).end = ended

    def _take_over(self, store: TreeStore) -> None:
        tree = store._tree  # noqa: SLF001 - read as it lies there
        self.controller_session = 0
        self._topic_ids.clear()
        for path, node in sorted(tree.nodes.items()):
            if path == znodes.CONTROLLER:
                self.controller_session = node.stat().ephemeral_owner
            elif path == znodes.CONTROLLER_EPOCH:
                self.controller_epoch = znodes.decode_epoch(path, node.data)
            elif found := _TOPIC.fullmatch(path):
                self._topic_written(found[1], node.data)
            elif _STATE.fullmatch(path):
                stat = node.stat()
                if is_damaged(node.data):
                    continue
                if path not in self._states or self._states[path].partition_epoch != stat.version:
                    self._states.pop(path, None)
                    self._state_written(self.controller_session, path, node.data, stat.version)

    def _transaction(self, session: int, ops: Sequence[TreeOp], done: AppliedTransaction) -> None:
        self.events["transactions"] += 1
        # A broker that becomes the controller in a transaction may write in it; one that ceases to be it may not write
        # more.
        for op, result in zip(ops, done.results, strict=True):
            if isinstance(op, Create) and op.path == znodes.CONTROLLER and isinstance(result, CreatedNode):
                self.controller_session = session
                self.events["controllers elected"] += 1
                self._trace.say("tree", f"{session:#x} is the controller")
            elif isinstance(op, SetData | Create) and op.path == znodes.CONTROLLER_EPOCH:
                self.controller_epoch = znodes.decode_epoch(op.path, op.data)
        for op, result in zip(ops, done.results, strict=True):
            self._operation(session, op, result)

    def _operation(self, session: int, op: TreeOp, result: object) -> None:
        if isinstance(op, CloseSession):
            self._trace.say("tree", f"the session {op.session_id:#x} ends")
            self.events["sessions ended"] += 1
            self.events["sessions expired"] += op.session_id in self._expiring
            self._expiring.discard(op.session_id)
            if op.session_id == self.controller_session:
                self.controller_session = 0
            if (broker := self._registered.pop(op.session_id, None)) is not None:
                self._gone[broker] = self._trace.seconds
        elif isinstance(op, Delete):
            if op.path == znodes.CONTROLLER:
                self.controller_session = 0
            elif op.path in self._states:
                self._state_deleted(session, op.path)
            elif found := _TOPIC.fullmatch(op.path):
                self._topic_ids.pop(found[1], None)
                self.events["topics deleted"] += 1
        elif isinstance(op, Create | SetData):
            version = result.stat.version if isinstance(result, CreatedNode) else 0
            if isinstance(result, Stat):
                version = result.version
            if session == STORE_SESSION:
                self._vandalised(op.path, op.data, version)
            elif _STATE.fullmatch(op.path):
                self._state_written(session, op.path, op.data, version)
            elif found := _BROKER.fullmatch(op.path):
                self._gone.pop(int(found[1]), None)
                self._registered[session] = int(found[1])
            elif found := _TOPIC.fullmatch(op.path):
                self._topic_written(found[1], op.data)
                self.events["topics created" if isinstance(op, Create) else "assignments changed"] += 1

    def _topic_written(self, topic: str, data: bytes) -> None:
        if not is_damaged(data):
            self._topic_ids[topic] = bytes(znodes.decode_topic("", data).topic_id)

    def _vandalised(self, path: str, data: bytes, version: int) -> None:
        """By hand: what stood there is gone, or stands there again, of a later version."""
        self._trace.say("tree", f"{path} is {'damaged' if is_damaged(data) else 'mended'} by hand")
        self._touched[path] = self._trace.seconds
        state = self._states.get(path)
        if state is not None and not is_damaged(data):
            self._states[path] = mended = state._replace(partition_epoch=version)
            self._partition(path).tree = mended
            self.events["nodes damaged and mended"] += 1

    def _state_written(self, session: int, path: str, data: bytes, version: int) -> None:
        state = znodes.decode_state(path, data)
        after = TreeState(int(state.leader), int(state.leader_epoch), tuple(state.isr), version, state.controller_epoch)
        before = self._states.get(path)
        self._states[path] = after
        self._trace.say("tree", f"{path.removeprefix('/brokers/topics/')} {after}")
        self._say(session, path, before, after)

    def _state_deleted(self, session: int, path: str) -> None:
        self._say(session, path, self._states.pop(path), None)

    def _say(self, session: int, path: str, before: TreeState | None, after: TreeState | None) -> None:
        partition = self._partition(path)
        knows_deaths = self._trace.seconds - self._touched.get(path, -inf) > _MENDED_S
        gone_s = {broker: self._trace.seconds - at for broker, at in self._gone.items()} if knows_deaths else {}
        self._cluster.tree_changed(
            TreeChange(
                partition,
                before,
                after,
                session,
                self.controller_session,
                self.controller_epoch,
                partition.tp.topic in self._unclean_topics,
                gone_s,
                self._trace.seconds,
            )
        )

    def _partition(self, path: str) -> Partition:
        """Whose state stands there."""
        found = _STATE.fullmatch(path)
        assert found is not None
        topic = found[1]
        return self._cluster.partition(TopicPartition(topic, int(found[2])), self._topic_ids.get(topic, b""))
