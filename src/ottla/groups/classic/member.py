"""One member of a classic group."""

from __future__ import annotations

from typing import Final

#: Names of protocols with the member's metadata for each, the one it likes best first.
Protocols = tuple[tuple[str, bytes], ...]

#: Of a member that was loaded, or came from a consumer group: no generation.
_KNOWN: Final = -1


class ClassicMember:
    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "id",
        "instance_id",
        "new_in",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
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
        #: The group's generation when it came, if it came by a request: while that is the group's generation it is new,
        #: and may be given up while it waits for its first one.
        self.new_in = _KNOWN

    def metadata(self, protocol: str | None) -> bytes:
        return metadata_of(self.protocols, protocol)


def metadata_of(protocols: Protocols, wanted: str | None) -> bytes:
    for name, metadata in protocols:
        if name == wanted:
            return metadata
    return b""
