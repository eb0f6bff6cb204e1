"""One member of a classic group."""

from __future__ import annotations

from ottla.groups.state import Reply
from ottla.protocol.generated.join_group import JoinGroupResponse
from ottla.protocol.generated.sync_group import SyncGroupResponse

#: Names of protocols with the member's metadata for each, the one it likes best first.
Protocols = tuple[tuple[str, bytes], ...]


class ClassicMember:
    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "id",
        "instance_id",
        "is_new",
        "join_reply",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_reply",
    )

    def __init__(
        self,
        *,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        self.id = member_id
        #: A static member's name, under which it comes back with another id; None for a dynamic member.
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        #: Until the end of its first rebalance: such a member may be given up while it waits.
        self.is_new = False
        #: Set while it waits for all to join. Only with it does a member take part in the next generation.
        self.join_reply: Reply[JoinGroupResponse] | None = None
        #: Set while it waits for the leader's assignment.
        self.sync_reply: Reply[SyncGroupResponse] | None = None

    def metadata(self, protocol: str | None) -> bytes:
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        return b""

    def vote(self, candidates: set[str]) -> str:
        return next(name for name, _ in self.protocols if name in candidates)

    @property
    def may_be_silent(self) -> bool:
        """A member that waits for an answer of ours is alive, as far as one can know."""
        return not self.is_new and (self.join_reply is not None or self.sync_reply is not None)
