"""Somebody who moves replicas and leaders of a cluster while it is under load, and remembers where they are to be."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from random import Random
from typing import Any, Final

from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from ottla.protocol.generated.elect_leaders import ElectLeadersRequest, TopicPartitions
from ottla.protocol.generated.metadata import MetadataRequest
from ottla.testing.sim.history import HistoryFault
from ottla.testing.sim.routing import METADATA_VERSION, ClusterClient
from ottla.testing.sim.trace import Trace
from ottla.testing.sim.wire import Unreachable

PREFERRED: Final = 0
UNCLEAN: Final = 1
#: Nobody knows what became of it; or the tree's disk is full.
_UNDECIDED: Final = frozenset(
    {
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
#: Fine where somebody asks for a leader.
_NOT_NOW: Final = frozenset(
    {
        ErrorCode.ELECTION_NOT_NEEDED,
        ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
        ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        *_UNDECIDED,
    }
)
#: A replica that is to take it does not live now; or nobody knows what became of it: it is asked again.
_LATER: Final = frozenset({ErrorCode.INVALID_REPLICA_ASSIGNMENT, *_UNDECIDED})


class Mover:
    def __init__(self, client: ClusterClient, random: Random, brokers: int, trace: Trace) -> None:
        self._client = client
        self._trace = trace
        self._random = random
        self._brokers = brokers
        #: Where replicas are to be, as acknowledged.
        self._placed: dict[TopicPartition, list[int]] = {}
        #: What nobody answered: it may have been on its way for long, and be carried out behind what came later.
        self._undecided: dict[TopicPartition, list[list[int]]] = defaultdict(list)
        #: How often what was done.
        self.events: Counter[str] = Counter()

    async def reassign(self, tp: TopicPartition, count: int) -> None:
        """Moves a partition to some brokers, as many as it has replicas; asks until it is taken."""
        while True:
            wanted = self._random.sample(range(1, self._brokers + 1), count)
            topic = ReassignableTopic(
                name=tp.topic, partitions=[ReassignablePartition(partition_index=tp.partition, replicas=wanted)]
            )
            request = AlterPartitionReassignmentsRequest(timeout_ms=5_000, topics=[topic])
            try:
                answer: Any = await self._client.ask_controller(request, 0)
                error = ErrorCode(answer.error_code or answer.responses[0].partitions[0].error_code)
            except Unreachable:
                error = ErrorCode.REQUEST_TIMED_OUT
            self._trace.say("mover", f"{tp} to {wanted}: {error.name}")
            if error == ErrorCode.NONE:
                self._placed[tp] = wanted
                self.events["reassignments"] += 1
                return
            if error in _UNDECIDED:
                self._undecided[tp].append(wanted)
            if error not in _LATER:
                raise HistoryFault(f"reassign {tp} to {wanted}: {error.name}")
            await asyncio.sleep(0.5)

    async def elect(self, tp: TopicPartition, kind: int) -> None:
        """Asks once: for the first assigned replica as the leader, or for anybody who lives where nobody leads."""
        request = ElectLeadersRequest(
            election_type=kind,
            topic_partitions=[TopicPartitions(topic=tp.topic, partitions=[tp.partition])],
            timeout_ms=2_000,
        )
        try:
            answer: Any = await self._client.ask_controller(request, 2)
        except Unreachable:
            return
        results = answer.replica_election_results
        error = ErrorCode(answer.error_code or (results[0].partition_result[0].error_code if results else 0))
        self._trace.say("mover", f"{tp} elects, kind {kind}: {error.name}")
        if error == ErrorCode.NONE:
            self.events["elections by request"] += 1
        elif error not in _NOT_NOW:
            raise HistoryFault(f"elect a leader of {tp}: {error.name}")

    async def check(self, client: ClusterClient) -> str | None:
        """Why replicas are not where they are to be, or not in sync; None where they are. Raises Unreachable."""
        answer: Any = await client.ask(MetadataRequest(topics=None), METADATA_VERSION)
        for topic in answer.topics:
            for one in topic.partitions:
                if set(one.isr_nodes) != set(one.replica_nodes):
                    # A replica that was refused its role is in no log that anybody compares.
                    at = f"{topic.name}-{one.partition_index}"
                    return f"{at} is on {sorted(one.replica_nodes)}, and in sync on {sorted(one.isr_nodes)}"
        found = {
            TopicPartition(topic.name, partition.partition_index): list(partition.replica_nodes)
            for topic in answer.topics
            for partition in topic.partitions
        }
        for tp, wanted in self._placed.items():
            if found.get(tp) not in [wanted, *self._undecided[tp]]:
                return f"{tp} is on {found.get(tp)} and is to be on {wanted}"
        return None
