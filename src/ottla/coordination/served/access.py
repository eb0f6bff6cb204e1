"""Access lists: there is one, and it is open to all.

A client that reaches a served tree may do everything in it, as with a ZooKeeper whose clients leave every node open:
Kafka does so unless `zookeeper.set.acl` says otherwise. A list that would keep somebody out is refused rather than
taken and not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.coordination.errors import InvalidAccessList
from ottla.coordination.zookeeper.messages import ALL_PERMISSIONS, AclEntry

#: Entries that are looked at. A list with more is none that a client means.
_ENTRIES_MAX: Final = 64
#: Schemes of ZooKeeper's own servers that take whatever they are shown: the identity opens nothing here, where all is
#: open.
ACCEPTED_SCHEMES: Final = frozenset({"digest", "ip"})


def check_access(acl: Sequence[AclEntry]) -> None:
    """Raises InvalidAccessList unless the list lets everybody do everything."""
    for entry in acl[:_ENTRIES_MAX]:
        if (entry.scheme, entry.id) != ("world", "anyone"):
            raise InvalidAccessList(f"an entry for {entry.scheme}:{entry.id}: only world:anyone is known here")
    if len(acl) > _ENTRIES_MAX or not any(entry.permissions == ALL_PERMISSIONS for entry in acl):
        raise InvalidAccessList("an access list has to let world:anyone do everything")
