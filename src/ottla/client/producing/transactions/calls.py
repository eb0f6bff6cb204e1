"""Questions to a coordinator in a transaction, put again until it says more than that it cannot answer now.

A transaction that has just ended is not over before its markers are written, a few milliseconds later: until then the
coordinator answers CONCURRENT_TRANSACTIONS, and is asked again soon.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from ottla.client.errors import BadAnswer, KafkaError, RequestTimedOut, error_of
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.connection import Answer, BrokerConnection
from ottla.client.wire.coordinator import MOVED, Coordinator
from ottla.client.wire.metadata import error_code
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.message import Message

#: The first pause after CONCURRENT_TRANSACTIONS: markers take a millisecond or two on a broker that is near.
_SOON_MS: Final = 2


def soon(cluster: Cluster) -> Backoff:
    """Pauses for what is over in milliseconds."""
    settings = cluster.settings
    return Backoff(min(_SOON_MS, settings.retry_backoff_ms), settings.retry_backoff_ms, cluster.world.entropy)


def worst(codes: Iterable[int]) -> int:
    """Of several partitions' codes the one that decides: one that no waiting changes, before one that passes."""
    found = {code for code in codes if code}
    by_weight = sorted(found, key=lambda code: (error_code(code).retriable, code == ErrorCode.OPERATION_NOT_ATTEMPTED))
    return by_weight[0] if by_weight else 0


def code_of_all(asked: Iterable[TopicPartition], answered: Iterable[tuple[str, int, int]]) -> int:
    """The code that decides of (topic, partition, code); raises BadAnswer where nothing is said of one that was
    asked."""
    codes = {TopicPartition(topic, number): code for topic, number, code in answered}
    if code := worst(codes.values()):
        return code
    for tp in asked:
        if tp not in codes:
            raise BadAnswer(f"the coordinator said nothing about {tp}")
    return 0


class CoordinatorCalls:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        settings = cluster.settings
        self._soon = soon(cluster)
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, cluster.world.entropy)

    async def ask(
        self,
        coordinator: Coordinator,
        request: Message,
        response_type: type[Answer],
        code_of: Callable[[Answer], int],
        *,
        about: str,
        timeout_ms: int,
        at_most: int | None = None,
        at_least: int = 0,
        on_connection: Callable[[BrokerConnection], None] | None = None,
    ) -> Answer:
        """The answer without an error; raises the first error that does not pass, or what was last heard in time."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        last: KafkaError | None = None
        failures = 0
        try:
            async with asyncio.timeout_at(deadline):
                while True:
                    try:
                        connection = await coordinator.connection()
                        answer = await connection.ask(
                            request,
                            response_type,
                            timeout_ms=self._cluster.settings.request_timeout_ms,
                            at_most=at_most,
                            at_least=at_least,
                        )
                        code = code_of(answer)
                        if not code:
                            if on_connection is not None:
                                on_connection(connection)
                            return answer
                        last = error_of(code, about=about)
                    except KafkaError as error:
                        last = error
                    if not last.retriable:
                        raise last
                    if last.code in MOVED:
                        coordinator.forget()
                    else:
                        coordinator.blame(last)
                    failures += 1
                    pauses = self._soon if last.code is ErrorCode.CONCURRENT_TRANSACTIONS else self._backoff
                    await asyncio.sleep(pauses.pause_ms(failures) / 1000)
        except TimeoutError:
            because = "" if last is None else f"; the last fault was: {last}"
            raise RequestTimedOut(f"{about}: no answer within {timeout_ms} ms{because}") from last
