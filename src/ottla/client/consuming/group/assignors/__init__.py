"""Who reads what: the leader of a group gives its members' partitions out with one of these.

`partition.assignment.strategy` takes them by name (`range`, `roundrobin`, `sticky`, `cooperative-sticky`, or Java's
class names), as classes and as instances; anything that derives from `Assignor` will do. All members of a group must
have one in common.
"""

from ottla.client.consuming.group.assignors.assignor import Assignor, Topics
from ottla.client.consuming.group.assignors.cooperative import CooperativeStickyAssignor
from ottla.client.consuming.group.assignors.range import RangeAssignor
from ottla.client.consuming.group.assignors.round_robin import RoundRobinAssignor
from ottla.client.consuming.group.assignors.sticky import StickyAssignor

__all__ = [
    "Assignor",
    "CooperativeStickyAssignor",
    "RangeAssignor",
    "RoundRobinAssignor",
    "StickyAssignor",
    "Topics",
]
