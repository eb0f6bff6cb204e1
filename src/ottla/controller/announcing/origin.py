"""Who announces something to which life of a broker: what each request of a controller says of itself.

A broker obeys no controller that it has seen a later one of, and nothing that was meant for an earlier life of its own.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.model import BrokerId, Epoch

#: In a request of a version that does not say which registration of the broker is meant.
UNKNOWN_BROKER_EPOCH: Final = -1


class Origin(NamedTuple):
    controller_id: BrokerId
    controller_epoch: Epoch
    #: The registration of the broker that is meant.
    broker_epoch: int = UNKNOWN_BROKER_EPOCH


class NotAnnounced(Exception):
    """What happens in every cluster, and comes again: it is no fault of ours."""


class BrokerNotReached(NotAnnounced):
    """Whether the broker has carried it out is not known."""


class AnnouncementRefused(NotAnnounced):
    """The broker carried nothing out: it knows a later controller, or is another process than the one that is meant."""
