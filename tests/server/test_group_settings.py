"""Settings of groups lie in the tree: a broker that starts again has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.server.conftest import BrokerThread, Peer

from ottla.model import ErrorCode
from ottla.protocol.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from ottla.protocol.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

GROUP = 32
SETTING = "consumer.session.timeout.ms"


def change(peer: Peer, group: str, operation: int, value: str | None) -> None:
    configs = [AlterableConfig(name=SETTING, config_operation=operation, value=value)]
    resource = AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource])
    (result,) = peer.ask(request, 1, IncrementalAlterConfigsResponse).responses
    assert result.error_code == ErrorCode.NONE, result


def told(peer: Peer, group: str) -> Any:
    asked = DescribeConfigsResource(resource_type=GROUP, resource_name=group, configuration_keys=[SETTING])
    (result,) = peer.ask(DescribeConfigsRequest(resources=[asked]), 4, DescribeConfigsResponse).results
    return result.configs[0].value


@pytest.mark.parametrize("group", ["g", "a/b c", "..", ".", "%2F", "~*", "\u00fc\n\U0001f600", "x" * 300])
def test_they_are_there_after_a_restart(make_broker: Callable[..., BrokerThread], group: str) -> None:
    with make_broker() as broker, broker.connect() as peer:
        change(peer, group, 0, "50000")
        assert told(peer, group) == "50000"
    with make_broker() as broker, broker.connect() as peer:
        assert told(peer, group) == "50000"
        assert told(peer, f"{group}-other") == "45000"
        change(peer, group, 1, None)
        assert told(peer, group) == "45000"
    with make_broker() as broker, broker.connect() as peer:
        assert told(peer, group) == "45000"
