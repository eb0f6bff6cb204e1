"""A fetch's reader where an authorizer has a say. It is asked at each read: its mind may change while a fetch waits."""

from __future__ import annotations

from ottla.handlers.calls.call import Services
from ottla.handlers.calls.peer import Peer
from ottla.handlers.fetch.asked import AskedPartition
from ottla.handlers.fetch.reading import FetchReader
from ottla.model import ErrorCode
from ottla.replication.leader import Leader
from ottla.security.authorizer import CLUSTER_NAME, Operation, Resource


class CheckedReader(FetchReader):
    """Consumers may read topics; followers act for the cluster."""

    __slots__ = ("_peer",)

    def __init__(self, services: Services, replica_id: int, isolation_level: int, peer: Peer) -> None:
        super().__init__(services, replica_id, isolation_level)
        self._peer = peer

    def leader(self, asked: AskedPartition) -> Leader | ErrorCode:
        name = self._services.metadata.topic_name(asked.topic) if isinstance(asked.topic, bytes) else asked.topic
        if name is not None and not self._may_read(name):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return super().leader(asked)

    def _may_read(self, topic: str) -> bool:
        peer, allowed = self._peer, self._services.authorizer.allowed
        if self.replica_id >= 0:
            return allowed(peer.principal, peer.host, Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME)
        return allowed(peer.principal, peer.host, Operation.READ, Resource.TOPIC, topic)
