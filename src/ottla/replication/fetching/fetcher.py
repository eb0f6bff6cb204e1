"""One fetcher: a connection to a leader, and one fetch at a time for all of its partitions.

                 ┌────────────── nothing is to be asked ◀──────────────┐
                 ▼                                                     │
    dialling ──▶ resting ──send──▶ asked ──the answer──▶ taking, in turns of the loop
       ▲                             │
       └─────── the connection is lost, or hung up ─────── (the next request is a full one)

A request is sent as soon as the answer before it was taken over, since its offsets vouch for what was appended. Its
leader keeps it until there is something new, for `replica.fetch.wait.max.ms` at most. A partition that comes meanwhile,
with a role from the controller, does not wait for that: acks=all at its new leader waits for this very fetch. The
fetcher then hangs up and asks anew, but not more often than four times a second.
"""

from __future__ import annotations

import asyncio
import traceback
from typing import Final

from ottla import logs
from ottla.client.errors import BadAnswer, KafkaError, UnsupportedVersion
from ottla.client.wire.connection import BrokerConnection
from ottla.config.slices import ReplicationConfig
from ottla.interbroker.links import BrokerLink
from ottla.model import BrokerId, ErrorCode, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.errors import DecodeError
from ottla.protocol.hot.follower_fetch import BY_ID, CORRELATION_AT, DIVERGING, NEWEST, FetchRequests
from ottla.replication.fetching.asked_partitions import AskedPartitions
from ottla.replication.fetching.lookups import Lookups
from ottla.replication.fetching.older_leaders import OLDEST, OlderFetchRequests
from ottla.replication.fetching.partition import FetchedPartition, FetchState
from ottla.replication.fetching.rate import MinuteRate
from ottla.replication.fetching.session import FULL, FollowerSession
from ottla.replication.fetching.surroundings import Surroundings
from ottla.replication.fetching.taking import TakenAnswer
from ottla.replication.isr_progress import NEVER
from ottla.steps import Steps

log_event = logs.logger("replication")

#: A fetch that was sent so long ago is taken for one that its leader keeps.
PARKED_MS: Final = 5
#: Between two hang-ups: each costs a full request, of some microseconds for each partition at both ends.
HANG_UP_MS: Final = 250
#: How long the next request waits for the flushes of what the last answer brought: few milliseconds, nearly always.
#: What takes longer is left out of it, and asked for again with the first request behind its flush.
FLUSH_MS: Final = 20
#: How long a leader may keep a request while something here is due at a time that is not known.
SHORT_WAIT_MS: Final = 20
#: How long an answer is taken over in one turn of the loop: by a clock of milliseconds, between one and this.
TURN_MS: Final = 2
#: Pieces in one turn; the clock of a simulation stands still meanwhile.
PIECES_A_TURN: Final = 256

_SESSION_GONE: Final = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


class Fetcher:
    def __init__(self, leader: BrokerId, number: int, around: Surroundings) -> None:
        self.leader = leader
        self.number = number
        self.client_id = f"broker-{around.broker_id}-fetcher-{number}"
        self._around = around
        self._now_ms = around.ports.clock.monotonic_ms
        self._waiters = around.replicas.waiters
        self._loop = asyncio.get_running_loop()
        self.partitions = AskedPartitions(around)
        self._link = BrokerLink(leader, around.address_of, around.ports, self.client_id)
        self._link.on_open = self._opened
        self._link.on_closed = self._lost
        self._link.on_hung_up = lambda: around.doubts.lost(leader)
        self._lookups = Lookups(leader, self.partitions, around, self.wake)
        self._session = FollowerSession()
        self._requests: FetchRequests | OlderFetchRequests | None = None
        #: When the request that is under way was sent, by the monotonic clock; None where none is.
        self._asked_ms: int | None = None
        self._hung_up_ms = -HANG_UP_MS
        #: The answer that is being taken over.
        self._taking: Steps[None] | None = None
        self._answer: TakenAnswer | None = None
        #: When the leader last answered as one that has heard of nothing which this broker has not.
        self.agreed_ms = NEVER
        #: Answers in a row that refused all.
        self._refusals = 0
        self._turn: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        #: Until then, by the monotonic clock, the next request waits for flushes.
        self._flush_until_ms = 0
        self.rate = MinuteRate(around.ports.clock)
        self._closed = False

    # -- what it fetches

    def add(self, partition: FetchedPartition) -> None:
        self.partitions.add(partition, self.wake)
        if isinstance(self._requests, OlderFetchRequests):
            self._lookups.ask_epoch(partition)
        elif self._requests is not None and self._requests.by_id and not any(partition.follower.log.topic_id):
            self._hang_up("a partition has no topic id")
        self._link.want()
        self.wake()

    def remove(self, tp: TopicPartition) -> None:
        partition = self.partitions.remove(tp)
        if partition is not None:
            self._lookups.forget(partition)

    def look(self) -> None:
        """Brokers have registered or gone."""
        self._link.look()

    def wake(self) -> None:
        """Something may have to be asked: it is looked at in the loop's next turn, with all that comes in this one."""
        if self._turn is None and not self._closed:
            self._turn = self._loop.call_soon(self._woken)

    def close(self) -> None:
        self._closed = True
        self._taking = None
        for handle in (self._turn, self._timer):
            if handle is not None:
                handle.cancel()
        self._lookups.close()
        self._link.close()

    # -- asking

    def _woken(self) -> None:
        self._turn = None
        try:
            if self._taking is not None:
                self._take_on()
            elif self._asked_ms is None:
                self._ask()
            else:
                self._look_for_newcomers()
        except Exception as fault:
            self._broke(fault)

    def _ask(self) -> None:
        """Sends the next request, unless nothing is to be asked or something is to be waited for."""
        connection, requests = self._link.connection, self._requests
        if connection is None or requests is None or self._closed:
            return
        now_ms = self._now_ms()
        partitions, session = self.partitions, self._session
        partitions.revive(now_ms)
        if partitions.flushing and now_ms < self._flush_until_ms:
            self._call_at(self._flush_until_ms)
            return
        if requests.replica_epoch != self._around.broker_epoch():
            # Registered anew: the leader has to hear it of each partition, or would vouch for the former registration.
            requests = self._requests = self._requests_of(requests.version)
            session.restart()
        elif session.untaken and session.has_missed(partitions.row):
            session.restart()
        full = session.epoch == FULL
        if full:
            session.restart()
            partitions.changed = partitions.all_keys()
        rows, forgotten = session.take(partitions.take_changed(), partitions.row)
        if not session.known and (full or not forgotten):
            self._rest(now_ms)
            return
        config = self._around.config
        limits = (self._wait_ms(now_ms, config), config.fetch_bytes_min, config.fetch_response_bytes_max)
        if rows or forgotten or full:
            frame = requests.with_changes(*limits, session.id, session.epoch, rows, forgotten)
        else:
            frame = requests.nothing_new(*limits, session.id, session.epoch)
        timeout_ms = max(config.socket_timeout_ms, config.fetch_wait_ms_max)
        try:
            connection.send_frame(frame, requests.version, CORRELATION_AT, self._answered, timeout_ms)
        except KafkaError:
            return  # the link is called for that as well
        self._asked_ms = now_ms
        self.rate.count()

    def _wait_ms(self, now_ms: int, config: ReplicationConfig) -> int:
        """How long the leader may keep the request: until the first of the others here is due."""
        wait_ms = config.fetch_wait_ms_max
        due_ms = self.partitions.due_ms()
        if due_ms is not None:
            wait_ms = max(0, min(wait_ms, due_ms - now_ms))
        if self.partitions.flushing or self.partitions.has_throttled:
            wait_ms = min(wait_ms, SHORT_WAIT_MS)
        return wait_ms

    def _rest(self, now_ms: int) -> None:
        """Nothing can be asked now: until something is due, or comes."""
        due_ms = self.partitions.due_ms()
        if self.partitions.has_throttled or self.partitions.flushing:
            due_ms = now_ms + SHORT_WAIT_MS if due_ms is None else min(now_ms + SHORT_WAIT_MS, due_ms)
        if due_ms is not None:
            self._call_at(due_ms)

    def _call_at(self, at_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        pause_ms = max(1, at_ms - self._around.now_ms())
        self._timer = self._loop.call_later(pause_ms / 1000, self._timed)

    def _timed(self) -> None:
        self._timer = None
        self.wake()

    def _look_for_newcomers(self) -> None:
        """A request is under way. Where its leader keeps it and there are partitions that it does not name, it is given
        up for one that does."""
        partitions = self.partitions
        assert self._asked_ms is not None
        if not any(key not in self._session.known and _is_new(partitions.of(key)) for key in partitions.changed):
            return
        at_ms = max(self._asked_ms + PARKED_MS, self._hung_up_ms + HANG_UP_MS)
        if self._around.now_ms() < at_ms:
            self._call_at(at_ms)
        else:
            self._hung_up_ms = self._around.now_ms()
            self._hang_up("other partitions are to be asked for")

    # -- the connection

    def _opened(self, connection: BrokerConnection) -> None:
        self._around.doubts.reached(self.leader)
        try:
            newest = NEWEST if self.partitions.have_ids else BY_ID - 1
            version = connection.version(ApiKey.FETCH, at_most=newest, at_least=OLDEST)
        except UnsupportedVersion as fault:
            log_event.warning_limited("a leader cannot be fetched from", key=str(self.leader), why=fault)
            connection.abandon(fault)
            return
        size = self._around.config.socket_receive_buffer_bytes
        if size is not None and size > 0:  # -1: the system's choice
            connection.set_receive_buffer(size)
        self._requests = self._requests_of(version)
        self.partitions.name(by_id=self._requests.by_id)
        if version < DIVERGING:
            for partition in self.partitions.by_partition.values():
                self._lookups.ask_epoch(partition)
        self.wake()

    def _requests_of(self, version: int) -> FetchRequests | OlderFetchRequests:
        around = self._around
        if version < DIVERGING:
            return OlderFetchRequests(version, self.client_id, around.broker_id, around.broker_epoch())
        return FetchRequests(version, self.client_id, around.broker_id, around.broker_epoch())

    def _lost(self) -> None:
        """There is no connection any more: what was asked is asked anew on the next one."""
        self._asked_ms = None
        self._requests = None
        self._session.restart()

    def _hang_up(self, why: str) -> None:
        self._link.hang_up(why)

    # -- answers

    def _answered(self, frame: bytes | memoryview) -> None:
        """Called out of the connection: nothing may be raised there."""
        try:
            self._asked_ms = None
            self._take(memoryview(frame))
        except DecodeError as error:
            self._bad_answer(error)
        except Exception as fault:
            self._broke(fault)

    def _take(self, frame: memoryview) -> None:
        requests = self._requests
        if requests is None or self._closed:
            return
        error, session_id, rows = requests.read(frame)
        if error != ErrorCode.NONE:
            self._refused(error)
            return
        self._refusals = 0
        self._link.answered()
        self._session.answered(session_id)
        self._answer = TakenAnswer(self.partitions, self._session, self._lookups, self._around)
        self._taking = self._answer.steps(rows)
        self._take_on()

    def _take_on(self) -> None:
        """Takes over what an answer brought, for a few milliseconds; the rest follows in the loop's next turns."""
        taking = self._taking
        assert taking is not None
        now_ms = self._now_ms
        began_ms = now_ms()
        try:
            for step in range(PIECES_A_TURN):
                next(taking)
                # The first step, with which most answers end, is followed by another without a look at the clock.
                if (step and now_ms() >= began_ms + TURN_MS) or self._taking is not taking:
                    break
        except StopIteration:
            self._taking = None
            at_ms = now_ms()
            if self._answer is not None and not self._answer.is_fenced:
                self.agreed_ms = at_ms
            self._waiters.settle(at_ms)
            self._flush_until_ms = at_ms + FLUSH_MS
            self._ask()
            return
        except DecodeError as error:
            self._bad_answer(error)
            return
        self._waiters.settle(now_ms())
        self.wake()

    def _refused(self, error: int) -> None:
        """The leader refused the request as a whole."""
        self._refusals += 1
        if error in _SESSION_GONE:
            self._session.forget()
            if self._refusals == 1:
                self._ask()
                return
        else:
            self._session.restart()
            log_event.warning_limited(
                "a leader refuses to be fetched from",
                key=f"{self.leader} {error}",
                leader=self.leader,
                error=ErrorCode(error).name if error in ErrorCode.__members__.values() else error,
            )
        for partition in self.partitions.by_partition.values():
            if partition.state is FetchState.FETCHING:
                self.partitions.back_off(partition)
        self._rest(self._around.now_ms())

    def _bad_answer(self, error: DecodeError) -> None:
        self._taking = None
        connection = self._link.connection
        log_event.warning_limited("a leader's answer cannot be read", key=str(self.leader), why=error)
        if connection is not None:
            connection.abandon(BadAnswer(f"broker {self.leader} answered Fetch with what is none: {error}"))

    def _broke(self, fault: Exception) -> None:
        """A fault of ours outside of any partition: all is asked anew, behind a pause."""
        log_event.error(
            "a fetcher failed",
            key=self.client_id,
            leader=self.leader,
            error="".join(traceback.format_exception(fault)),
        )
        self._taking = None
        connection = self._link.connection
        if connection is not None:
            connection.abandon(BadAnswer(f"the fetcher failed: {fault!r}"))


def _is_new(partition: FetchedPartition | None) -> bool:
    return partition is not None and partition.state is FetchState.FETCHING and partition.follower.may_ask
