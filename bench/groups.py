"""Consumer groups: the first record of a new one, a large one's rebalance, many groups' memory and load, commits."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from bench import machine, native
from bench.client_programs import REPOSITORY, figures_of
from bench.frames import METADATA_VERSION, Frame, batch, first_difference, metadata_question, produce
from bench.lifecycle import CLEAN, KILLED, LOADED, MORE, brokers, remembered, restarts
from bench.load import Outcome, Work, run
from bench.results import Figures, Goal, Measure, Results
from bench.scenario import Context
from bench.servers import KAFKA, Places, Running, load_core, server_cores, started
from bench.throughput import CPU_REQUEST, P50, P99, RATE, figures
from bench.wire import Wire, WireError, create_topic
from ottla.model import ErrorCode
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest
from ottla.protocol.generated.list_groups import ListGroupsRequest
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from ottla.protocol.header import RequestHeader, encode_request, encode_response

OFFSET_COMMIT, FIND_COORDINATOR, LIST_GROUPS = 8, 10, 16
#: What librdkafka and kafka-python send.
COMMIT_VERSION = 8
TOPIC = "consumed"
CLIENT_SECONDS_MAX = 120.0
COORDINATOR_SECONDS_MAX = 30.0


def wait_for_coordinator(port: int, group: str) -> None:
    """Until the group's coordinator is there, for which its topic may have to be made."""
    deadline = time.monotonic() + COORDINATOR_SECONDS_MAX
    with Wire(port) as wire:
        while True:
            found = wire.call(FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=[group])).coordinators[0]
            # The one that was found may still be loading; a commit that asks for nothing shows that.
            if found.error_code == ErrorCode.NONE:
                answer = wire.call(OFFSET_COMMIT, COMMIT_VERSION, commit_request(group, TOPIC, [0]))
                if answer.topics[0].partitions[0].error_code == ErrorCode.NONE:
                    return
            if time.monotonic() > deadline:
                raise WireError(f"no coordinator: error {found.error_code}")
            time.sleep(0.05)


def commit_request(group: str, topic: str, partitions: Sequence[int], offset: int = 1) -> OffsetCommitRequest:
    """As a consumer without membership sends it."""
    parts = [
        OffsetCommitRequestPartition(partition_index=number, committed_offset=offset, committed_metadata="")
        for number in partitions
    ]
    return OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=parts)])


def commit_frame(group: str, topic: str) -> Frame:
    """One partition's offset."""

    def answer(error: int) -> bytes:
        part = OffsetCommitResponsePartition(partition_index=0, error_code=error)
        message = OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name=topic, partitions=[part])])
        return encode_response(OFFSET_COMMIT, COMMIT_VERSION, 0, message)

    header = RequestHeader(api_key=OFFSET_COMMIT, api_version=COMMIT_VERSION, correlation_id=7, client_id="bench")
    return Frame(
        request=encode_request(header, commit_request(group, topic, [0])),
        error_position=first_difference(answer(0), answer(1)) - 1,
    )


def _prepare_topic(port: int, partitions: int = 1) -> None:
    create_topic(port, TOPIC, partitions)
    with Wire(port) as wire:
        wire.exchange(produce(batch(1), topic=TOPIC).request)


@dataclass(frozen=True, kw_only=True)
class FirstRecord:
    """From making a consumer of a group that nobody has heard of to its first record; no rebalance delay anywhere."""

    name: str = "group-first-record"
    title: str = "a new consumer group's first record"
    groups: int = 5
    measures: Sequence[Measure] = (
        Measure(name="first", label="librdkafka, the cluster's first group", unit="ms"),
        Measure(name="librdkafka", label="librdkafka, a later one", unit="ms"),
        Measure(name="ottla", label="our client", unit="ms"),
    )
    goals: Sequence[Goal] = (
        Goal(measure="librdkafka", at_most=1.0, against=KAFKA),
        Goal(measure="first", at_most=1.0, against=KAFKA),
    )

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)

        def take(kind: str) -> Figures:
            with started(kind, f"{self.name}-{kind}", context.places) as running:
                _prepare_topic(running.port)
                first, *later = self._times(running, "librdkafka", 1 + self.groups)
                return {
                    "first": first * 1000,
                    "librdkafka": median(later) * 1000,
                    "ottla": median(self._times(running, "ottla", 1 + self.groups)[1:]) * 1000,
                }

        context.measure_in_turns(results, brokers(context), take, lambda _: context.effort.rounds)
        return results

    @staticmethod
    def _times(running: Running, client: str, count: int) -> list[float]:
        return figures_of("bench.first_record", running.port, TOPIC, client, count)


@dataclass(frozen=True, kw_only=True)
class LargeGroup:
    """A thousand members join at once, and again; meanwhile somebody else asks for metadata, one request at a time."""

    name: str = "group-1000"
    title: str = "1,000 members rebalance"
    members: int = 1000
    rebalances: int = 4
    seconds: float = 12.0
    measures: Sequence[Measure] = (
        Measure(name="longest", label="another request's longest wait", unit="ms", digits=1),
        Measure(name="p99", label="another request's p99", unit="ms", digits=2),
        Measure(name="rebalance", label="a rebalance", unit="s", digits=2),
    )
    goals: Sequence[Goal] = (Goal(measure="longest", at_most=20),)

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)

        def take(kind: str) -> Figures:
            with started(kind, f"{self.name}-{kind}", context.places) as running:
                _prepare_topic(running.port)
                wait_for_coordinator(running.port, "large")
                machine.pin(running.pid, server_cores(kind))
                return self._rebalance(running, context.places)

        context.measure_in_turns(results, brokers(context), take, lambda _: context.effort.rounds)
        return results

    def _rebalance(self, running: Running, places: Places) -> Figures:
        words = [str(running.port), "large", str(self.members), str(self.rebalances)]
        crowd = subprocess.Popen(
            # The members shall not keep the one who asks from its answers: that would be measured as the server's.
            ["nice", "-n", "19", sys.executable, "-m", "bench.group_members", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=REPOSITORY,
        )
        assert crowd.stdin is not None
        assert crowd.stdout is not None
        machine.pin(crowd.pid, load_core())
        try:
            if crowd.stdout.readline() != "ready\n":
                raise RuntimeError("the members could not connect")
            with tempfile.NamedTemporaryFile(dir=places.scratch, suffix=".frame") as file:
                file.write(metadata_question(METADATA_VERSION))
                file.flush()
                asking = subprocess.Popen(self._question(running, file.name, places), stdout=subprocess.PIPE, text=True)
                machine.pin(asking.pid, load_core())
                crowd.stdin.write("go\n")
                crowd.stdin.flush()
                seconds = [float(crowd.stdout.readline()) for _ in range(self.rebalances)]
                found = json.loads(asking.communicate(timeout=CLIENT_SECONDS_MAX)[0])
        finally:
            crowd.kill()
            crowd.communicate()
        return {
            "longest": found["longest"] / 1000,
            "p99": found["p99"] / 1000,
            "rebalance": median(seconds[1:]),
        }

    def _question(self, running: Running, frame: str, places: Places) -> list[str]:
        program = native.command("load", places.cache)
        return [*program, f"port={running.port}", f"frame={frame}", "warm=0", f"seconds={self.seconds}"]


@dataclass(frozen=True, kw_only=True)
class ManyGroups:
    """What groups take in memory, and how long a restart takes until all of them are there again."""

    name: str = "group-load"
    title: str = "10,000 groups of 10 offsets"
    groups: int = 10_000
    offsets: int = 10
    measures: Sequence[Measure] = (
        MORE,
        LOADED,
        CLEAN,
        KILLED,
    )
    goals: Sequence[Goal] = (
        Goal(measure="more", at_most=100),
        Goal(measure="loaded", at_most=100),
        Goal(measure="clean", at_most=2),
        Goal(measure="killed", at_most=2),
    )

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        count = restarts(context)

        def take(kind: str) -> Figures:
            with started(kind, f"{self.name}-{kind}", context.places) as running:
                _prepare_topic(running.port, self.offsets)
                wait_for_coordinator(running.port, "first")
                return remembered(running, lambda: self._commit(running.port), self._are_there)

        context.measure_in_turns(results, brokers(context), take, lambda kind: int(count[kind]))
        return results

    def _commit(self, port: int) -> None:
        with Wire(port) as wire:
            for number in range(self.groups - 1):
                request = commit_request(f"group-{number:05}", TOPIC, range(self.offsets), number)
                answer = wire.call(OFFSET_COMMIT, COMMIT_VERSION, request)
                errors = {partition.error_code for partition in answer.topics[0].partitions}
                if errors != {ErrorCode.NONE}:
                    raise WireError(f"OffsetCommit: errors {errors}")

    def _are_there(self, wire: Wire) -> bool:
        answer = wire.call(LIST_GROUPS, 4, ListGroupsRequest())
        return answer.error_code == ErrorCode.NONE and len(answer.groups) == self.groups


@dataclass(frozen=True, kw_only=True)
class Commits:
    """One partition's offset over and over, from many connections."""

    name: str = "group-commits"
    title: str = "offset commits, one partition each, 50 connections"
    connections: int = 50
    measures: Sequence[Measure] = (RATE, CPU_REQUEST, P50, P99)
    goals: Sequence[Goal] = (
        Goal(measure="rate", at_least=0.75, against=KAFKA),
        Goal(measure="cpu", at_most=1.0, against=KAFKA),
    )

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)

        def warm(kind: str) -> None:
            self.prepare(context.shared(kind))
            self.once(context.shared(kind), context.effort.warm_seconds, context.places)

        def take(kind: str) -> Figures:
            return figures(self.once(context.shared(kind), context.effort.seconds, context.places))

        context.measure_in_turns(results, brokers(context), take, lambda _: context.effort.rounds, warm=warm)
        return results

    def prepare(self, running: Running) -> None:
        _prepare_topic(running.port)
        wait_for_coordinator(running.port, "commits")

    def once(self, running: Running, seconds: float, places: Places) -> Outcome:
        work = Work(frame=commit_frame("commits", TOPIC), connections=self.connections, seconds=seconds)
        return run(work, running, places)


def shared_scenarios() -> list[Commits]:
    """Those that use the servers of others."""
    return [Commits()]


def scenarios() -> list[FirstRecord | LargeGroup | ManyGroups]:
    return [FirstRecord(), LargeGroup(), ManyGroups()]
