"""A way to the broker on which its clients speak one generation of the protocol, whatever the cluster has."""

from __future__ import annotations

from typing import Any

from tests.client.proxy import Action, Pass, Proxy, Request, Rule
from tests.client.reading import eventually

from ottla.client.admin.admin import Admin
from ottla.client.consuming.consumer import Consumer
from ottla.protocol.apis import ApiKey

#: `transaction.version`, as it is said to the clients.
GENERATIONS = (1, 2)


def speaking(bootstrap: str, generation: int, rule: Rule | None = None) -> Proxy:
    """A proxy whose ApiVersions says so; `rule` sees all other requests."""

    def change(answer: Any) -> None:
        for feature in answer.finalized_features:
            if feature.name == "transaction.version":
                feature.max_version_level = generation

    def of_versions(request: Request) -> Action:
        if request.key == ApiKey.API_VERSIONS:
            return Pass(change)
        return Pass() if rule is None else rule(request)

    return Proxy(bootstrap, of_versions)


async def committed(bootstrap: str, topic: str) -> list[bytes]:
    """The values that a reader of committed records sees, sorted; what is behind the last of them may be aborted."""
    async with Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        partitions = await consumer.partitions_for(topic)
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends = await consumer.end_offsets(partitions)
        found: list[bytes] = []
        while any([await consumer.position(tp) < end for tp, end in ends.items()]):
            found += [one.value for one in await consumer.poll(timeout_ms=20)]
        return sorted(found)


async def until_state(bootstrap: str, transactional_id: str, *states: str) -> None:
    async def reached() -> bool:
        return await state_of(bootstrap, transactional_id) in states

    await eventually(reached)


async def state_of(bootstrap: str, transactional_id: str) -> str:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        return (await admin.describe_transactions([transactional_id]))[transactional_id].state
