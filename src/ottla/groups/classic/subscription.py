"""What consumers say in their protocol metadata, as far as the coordinator needs it: the topics they read.

All versions of that format begin like version 0, so that nothing later needs to be known.
"""

from __future__ import annotations

from typing import Final

from ottla.protocol.errors import DecodeError
from ottla.protocol.generated.consumer_protocol_subscription import ConsumerProtocolSubscription

#: The protocol type of consumers; others (Connect's workers, schema registries) keep their own formats.
CONSUMER: Final = "consumer"
_VERSION_BYTES: Final = 2


def subscribed_topics(metadata: bytes) -> list[str] | None:
    """None where the bytes are no subscription: some clients put there what they like."""
    if len(metadata) < _VERSION_BYTES:
        return None
    try:
        subscription, _ = ConsumerProtocolSubscription.decode(metadata, 0, _VERSION_BYTES)
    except DecodeError:
        return None
    return subscription.topics
