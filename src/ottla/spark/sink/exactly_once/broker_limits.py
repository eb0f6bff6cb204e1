"""How long brokers let a transaction be open (`transaction.max.timeout.ms`): a task's may be open for as long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.client.admin.admin import TRANSACTION_TIMEOUT_MS_MAX, Admin
from ottla.client.admin.results import ConfigResource
from ottla.client.errors import ClusterAuthorizationFailed

_NAME: Final = "transaction.max.timeout.ms"


async def transaction_ms_max(settings: Mapping[str, str]) -> int:
    """The least of all brokers': any of them may become a coordinator."""
    async with Admin(dict(settings)) as admin:
        brokers = (await admin.describe_cluster()).brokers
        resources = [ConfigResource.broker(one.id) for one in brokers]
        try:
            configs = await admin.describe_configs(resources, names=[_NAME])
        except ClusterAuthorizationFailed:  # who may not ask has Kafka's default
            return TRANSACTION_TIMEOUT_MS_MAX
        found = [one[_NAME].value for one in configs.values() if _NAME in one]
        return min((int(one) for one in found if one is not None), default=TRANSACTION_TIMEOUT_MS_MAX)
