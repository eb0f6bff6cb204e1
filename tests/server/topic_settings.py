"""A topic's settings, changed through the broker as a client does it."""

from __future__ import annotations

from tests.server.conftest import Peer

from ottla.model import ErrorCode
from ottla.protocol.generated.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
)


def alter(peer: Peer, **configs: str) -> None:
    """All of the topic `t`; those that are not named are Kafka's own again."""
    changed = [AlterableConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()]
    resource = AlterConfigsResource(resource_type=2, resource_name="t", configs=changed)
    answer = peer.ask(AlterConfigsRequest(resources=[resource], validate_only=False), 1, AlterConfigsResponse)
    assert answer.responses[0].error_code == ErrorCode.NONE, answer
