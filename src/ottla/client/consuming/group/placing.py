"""Where reading begins: at the group's committed offset, or at what `auto.offset.reset` says where there is none.

A new partition has neither position nor reset until that is known. An offset that a transaction may still change
(UNSTABLE_OFFSET_COMMIT) is asked for again until it has settled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from ottla.client.admin.group_results import CommittedOffset
from ottla.client.consuming.assignment import AssignedPartition
from ottla.client.consuming.reading import RecordReading
from ottla.client.consuming.resets import Resets
from ottla.client.errors import BadAnswer, ClientClosed, KafkaError, NoOffset, RequestTimedOut, error_of
from ottla.client.settings import ConsumerSettings
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.connection import BrokerConnection
from ottla.client.wire.coordinator import Coordinator
from ottla.client.wire.leaders import by_topic
from ottla.model import ZERO_TOPIC_ID, ErrorCode, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)

_BY_ID: Final = 10
_GROUPS_SINCE: Final = 8
_STABLE_SINCE: Final = 7

GroupPositions = dict[TopicPartition, CommittedOffset | None]


class Placing:
    def __init__(
        self,
        settings: ConsumerSettings,
        cluster: Cluster,
        coordinator: Coordinator,
        backoff: Backoff,
        resets: Resets,
        reading: RecordReading,
        on_placed: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._coordinator = coordinator
        self._backoff = backoff
        self._resets = resets
        self._reading = reading
        self._on_placed = on_placed
        self._waiting: dict[TopicPartition, AssignedPartition] = {}
        self._task: asyncio.Task[None] | None = None

    def fresh(self, tp: TopicPartition) -> AssignedPartition:
        """A partition that waits for its place; `begin` looks it up."""
        one = AssignedPartition(tp)
        self._waiting[tp] = one
        return one

    def begin(self) -> None:
        """Looks up all places that are wanted; one look-up at a time."""
        if self._task is None and self._open():
            self._task = asyncio.get_running_loop().create_task(self._place())

    def _open(self) -> dict[TopicPartition, AssignedPartition]:
        """Those that wait still: nobody sought, nobody took them away, and no error waits to be raised first."""
        self._waiting = {
            tp: one
            for tp, one in self._waiting.items()
            if one.position is None and one.reset is None and self._reading.assigned.get(tp) is one
        }
        return {tp: one for tp, one in self._waiting.items() if one.error is None}

    async def _place(self) -> None:
        failures = 0
        try:
            while wanted := self._open():
                generations = {tp: one.generation for tp, one in wanted.items()}
                try:
                    found, errors = await self._ask(list(wanted))
                except ClientClosed:
                    return
                except KafkaError as error:
                    found, errors = {}, dict.fromkeys(wanted, error)
                for tp, one in wanted.items():
                    if one.generation != generations[tp]:
                        continue
                    if tp in found:
                        self._put(one, found[tp])
                    elif not errors[tp].retriable:
                        one.error = errors[tp]
                for refusal in set(errors.values()):
                    self._coordinator.blame(refusal)
                if any(refusal.retriable for refusal in errors.values()):
                    if found:
                        self._on_placed()  # those need not wait for the others
                    failures += 1
                    await asyncio.sleep(self._backoff.pause_ms(failures) / 1000)
                else:
                    failures = 0
        finally:
            self._task = None
            self._on_placed()

    def _put(self, one: AssignedPartition, committed: CommittedOffset | None) -> None:
        if committed is not None:
            self._reading.place(one, committed)
            return
        strategy = self._resets.strategy()
        if strategy is None:
            one.error = NoOffset(
                f"{one.tp}: group {self._settings.group_id} has committed nothing here, and auto.offset.reset is none: "
                "seek first",
                one.tp,
            )
        else:
            one.reset_to(strategy)

    async def committed(self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None) -> GroupPositions:
        """What the group has committed of these; None where it has nothing."""
        wanted = list(dict.fromkeys(partitions))
        allowed_ms = self._settings.default_api_timeout_ms if timeout_ms is None else timeout_ms
        last: KafkaError | None = None
        failures = 0
        try:
            async with asyncio.timeout(allowed_ms / 1000):
                while wanted:
                    try:
                        found, errors = await self._ask(wanted)
                        if not errors:
                            return found
                        raise min(errors.values(), key=lambda error: error.retriable)
                    except KafkaError as error:
                        if not error.retriable:
                            raise
                        self._coordinator.blame(error)
                        last = error
                    failures += 1
                    await asyncio.sleep(self._backoff.pause_ms(failures) / 1000)
        except TimeoutError:
            raise last or RequestTimedOut(f"no answer within {allowed_ms} ms") from None
        return {}

    async def _ask(self, wanted: list[TopicPartition]) -> tuple[GroupPositions, dict[TopicPartition, KafkaError]]:
        """Asked once: what is committed, and of which partitions that cannot be said now; raises what befell all."""
        connection = await self._coordinator.connection()
        request, version, names = self._request(wanted, connection)
        answer = await connection.ask(
            request, OffsetFetchResponse, timeout_ms=self._settings.request_timeout_ms, at_most=version
        )
        rows: list[tuple[str, OffsetFetchResponsePartition | OffsetFetchResponsePartitions]] = []
        code = answer.error_code
        if version >= _GROUPS_SINCE:
            for group in answer.groups:
                if group.group_id == self._settings.group_id:
                    code = group.error_code
                    for topic in group.topics:
                        name = names.get(bytes(topic.topic_id), "") if version >= _BY_ID else topic.name
                        rows += [(name, one) for one in topic.partitions]
        else:
            rows = [(topic.name, one) for topic in answer.topics for one in topic.partitions]
        if code:
            raise error_of(code, about=f"group {self._settings.group_id}")
        found: GroupPositions = {}
        # Where nobody says that nothing is committed, records would be passed over.
        errors: dict[TopicPartition, KafkaError] = {
            tp: BadAnswer(f"group {self._settings.group_id}: the coordinator said nothing about {tp}") for tp in wanted
        }
        for name, one in rows:
            tp = TopicPartition(name, one.partition_index)
            if errors.pop(tp, None) is None:
                continue
            if one.error_code:
                if one.error_code == ErrorCode.UNKNOWN_TOPIC_ID:
                    self._cluster.request_update()
                errors[tp] = error_of(one.error_code, about=str(tp))
                continue
            found[tp] = (
                CommittedOffset(one.committed_offset, one.metadata or "", one.committed_leader_epoch)
                if one.committed_offset >= 0
                else None
            )
        return found, errors

    def _request(
        self, wanted: list[TopicPartition], connection: BrokerConnection
    ) -> tuple[OffsetFetchRequest, int, dict[bytes, str]]:
        topics = self._cluster.metadata.topics
        version = connection.version(ApiKey.OFFSET_FETCH)
        if any(tp.topic not in topics or topics[tp.topic].topic_id == ZERO_TOPIC_ID for tp in wanted):
            version = min(version, _BY_ID - 1)
        request = OffsetFetchRequest(require_stable=version >= _STABLE_SINCE)
        group_id = self._settings.group_id
        assert group_id is not None
        if version < _GROUPS_SINCE:
            request.group_id = group_id
            request.topics = [
                OffsetFetchRequestTopic(name=name, partition_indexes=numbers)
                for name, numbers in by_topic(wanted).items()
            ]
            return request, version, {}
        names: dict[bytes, str] = {}
        asked = []
        for name, numbers in by_topic(wanted).items():
            topic = OffsetFetchRequestTopics(name=name, partition_indexes=numbers)
            if version >= _BY_ID:
                topic.topic_id = topics[name].topic_id
                names[topic.topic_id] = name
            asked.append(topic)
        request.groups = [OffsetFetchRequestGroup(group_id=group_id, topics=asked)]
        return request, version, names

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
