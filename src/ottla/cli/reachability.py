"""Says on standard error when a broker does not answer any more, a partition has no leader, a group no coordinator or
a topic is gone, and when that is over.

A client tries again by itself, for ever and in silence: rightly so in a program, but a person would watch a command
that waits for what is gone. Work that has an end is given up when it stays away, other work is not.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.cli.faults import FAILED, NOT_FOUND, UNREACHABLE, CommandFault
from ottla.cli.numbers import GIVE_UP_MS
from ottla.cli.offsets import LATEST, offsets_of
from ottla.client.errors import BufferExhausted, ClientClosed, DeliveryTimedOut, KafkaError
from ottla.model import ZERO_TOPIC_ID, ErrorCode, TopicPartition

if TYPE_CHECKING:
    from ottla.client.consuming.consumer import Consumer
    from ottla.client.wire.cluster import Cluster

#: An address that nobody has tried for so long is not waited for any more: others have its partitions.
_TRIED_SECONDS_MAX: Final = 15.0
#: For the answer to a short question, before silence counts as the end.
_SILENCE_MS_MAX: Final = 3_000
#: A broker that has just been started may not know a topic yet, and a cluster's first group has its offsets topic made:
#: what is over after so long is not said.
_MOMENT_SECONDS: Final = 1.0
#: A topic that nobody knows for so long was deleted.
_GONE_MS_MAX: Final = 3_000


class _Away(NamedTuple):
    since: float
    tried: float
    reason: str


class _Leaderless(NamedTuple):
    since: float
    first: TopicPartition
    partitions: int

    def __str__(self) -> str:
        return str(self.first) if self.partitions == 1 else f"{self.first} (one of {self.partitions} partitions)"


class _Missing(NamedTuple):
    """A topic, or a group's coordinator."""

    since: float
    said: bool
    reason: str = ""


class BrokerWatch:
    def __init__(self, cluster: Cluster, give_up_ms: int = GIVE_UP_MS) -> None:
        self._cluster = cluster
        self._give_up_ms = give_up_ms
        #: By address.
        self._away: dict[str, _Away] = {}
        self._leaderless: _Leaderless | None = None
        #: By group.
        self._uncoordinated: dict[str, _Missing] = {}
        #: The topics that are read, by name, with their ids as far as they are known.
        self._topics: dict[str, bytes] = {}
        self._gone: dict[str, _Missing] = {}
        #: A topic that was another one when reading began.
        self._made_anew: str | None = None
        self._heard_at = 0.0
        #: Whose leader matters.
        self.concerns: Callable[[TopicPartition], bool] = lambda _: True
        #: Whether the command ends because a broker stayed away: nothing more is asked of it.
        self.has_given_up = False
        #: Takes a line; a bar, where there is one, has to step aside for it.
        self.say: Callable[[str], object] = _to_stderr

    def begin(self) -> None:
        """From now on: what is wrong at the beginning ends a command, and is said then."""
        self._cluster.connections.on_address = self._hear
        self._cluster.connections.on_unreached = lambda _: None  # what is heard is said here
        self._cluster.on_coordinator = self._hear_of_coordinator
        self._cluster.on_change.append(self._look)
        self._heard_at = _now()
        self._look()

    def reads(self, topics: Iterable[str]) -> None:
        """These topics are there, and what is read is theirs: not another's that gets the name."""
        self._topics = dict.fromkeys(topics, ZERO_TOPIC_ID)
        self._look()

    def _look(self) -> None:
        for name in self._topics:
            self._look_for_topic(name)
        self._look_for_leaders()

    def _look_for_topic(self, name: str) -> None:
        metadata, gone, now = self._cluster.metadata, self._gone.pop(name, None), _now()
        topic = metadata.topics.get(name)
        if topic is not None:
            known = self._topics[name]
            self._topics[name] = topic.topic_id
            if ZERO_TOPIC_ID != known != topic.topic_id:
                self._made_anew = name
                self.say(f"ottla: {name} was deleted, and another topic was made with its name: that one is read now")
            elif gone is not None and gone.said:
                self._heard_at = now
                self.say(f"ottla: {name} is there again")
        elif metadata.errors.get(name) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or gone is not None:
            gone = gone or _Missing(now, said=False)
            if not gone.said and now - gone.since >= _MOMENT_SECONDS:
                gone = gone._replace(said=True)
                self.say(f"ottla: {name} is not there any more (was it deleted?); waiting for it")
            self._gone[name] = gone
            # A group whose topic is gone has nothing to fetch, and would not look for a long time.
            asyncio.get_running_loop().call_later(_MOMENT_SECONDS, self._cluster.request_update)

    def _look_for_leaders(self) -> None:
        topics = self._cluster.metadata.topics
        leaderless = [
            TopicPartition(topic.name, one.partition)
            for topic in topics.values()
            for one in topic.partitions
            if one.leader < 0
        ]
        found, known = [tp for tp in leaderless if self.concerns(tp)], self._leaderless
        if not found:
            self._leaderless = None
            if known is not None and known.first not in leaderless and known.first.topic in topics:
                self._heard_at = _now()
                self.say(f"ottla: {known} has a leader again")
        elif known is None:
            self._leaderless = _Leaderless(_now(), found[0], len(found))
            self.say(f"ottla: {self._leaderless} has no leader (`ottla cluster health` says why); trying again")

    def _hear_of_coordinator(self, key: str, error: KafkaError | None) -> None:
        known, now = self._uncoordinated.pop(key, None), _now()
        if error is None:
            if known is not None and known.said:
                self._heard_at = now
                self.say(f"ottla: {key} has a coordinator again")
            return
        known = known or _Missing(now, said=False)
        reason = str(error).removeprefix(f"{key}: ")
        if not known.said and now - known.since >= _MOMENT_SECONDS and not self._away:
            known = known._replace(said=True)
            self.say(f"ottla: {key} has no coordinator ({reason}); trying again")
        self._uncoordinated[key] = known._replace(reason=reason)

    def _hear(self, address: str, error: KafkaError | None) -> None:
        now = _now()
        known = self._away.pop(address, None)
        if isinstance(error, ClientClosed):
            return
        if error is None:
            if known is not None:
                self._heard_at = now
                self.say(f"ottla: {address} is back")
            return
        reason = str(error).removeprefix(f"{address}: ").removeprefix(f"{address} ")
        self._away[address] = _Away(now if known is None else known.since, now, reason)
        if known is None:
            self.say(f"ottla: {address} is away ({reason}); trying again")

    def heard(self) -> None:
        """Records have come, or an answer."""
        self._heard_at = _now()

    def away(self) -> tuple[str, _Away] | None:
        """The address that has been away longest, if one is."""
        now = _now()
        tried = [(one.since, address) for address, one in self._away.items() if now - one.tried < _TRIED_SECONDS_MAX]
        if not tried:
            return None
        _, address = min(tried)
        return address, self._away[address]

    def check(self) -> None:
        """Raises where something that is needed has been away for too long, and nothing has come."""
        self.check_topics()
        since = self._away_since()
        if since is not None and (_now() - max(since, self._heard_at)) * 1000 >= self._give_up_ms:
            raise self.given_up()

    def check_topics(self) -> None:
        """Raises where what is read has an end that will never come: its topic was deleted."""
        longest_ms = min(_GONE_MS_MAX, self._give_up_ms)
        is_gone = any((_now() - one.since) * 1000 >= longest_ms for one in self._gone.values())
        if is_gone or self._made_anew is not None:
            raise self.given_up()

    def _away_since(self) -> float | None:
        found = self.away()
        if found is not None:
            return found[1].since
        self._look_for_leaders()  # perhaps a partition without one has been read to its end
        if self._leaderless is not None:
            return self._leaderless.since
        return min((one.since for one in self._uncoordinated.values() if one.said), default=None)

    def lacks_something(self) -> bool:
        """Whether the end may never be reached."""
        return self.lacks_topic() or self._away_since() is not None

    def lacks_topic(self) -> bool:
        return bool(self._gone) or self._made_anew is not None

    async def is_silent(self, consumer: Consumer, partitions: Collection[TopicPartition], idle_ms: int) -> bool:
        """Whether nothing is there that has not come yet: what a slow machine fetches may take longer than `idle_ms`.

        Raises where the leaders do not answer: one that hangs sends nothing either, and is no end.
        """
        isolation = int(consumer.settings.isolation_level == "read_committed")
        try:
            async with asyncio.timeout(_SILENCE_MS_MAX / 1000):
                ends = await offsets_of(self._cluster, dict.fromkeys(partitions, LATEST), isolation)
                behind = [tp for tp, end in ends.items() if await consumer.position(tp) < end]
        except (TimeoutError, KafkaError) as error:
            self.has_given_up = True
            raise CommandFault(
                f"nothing came for {idle_ms} ms, and the brokers did not answer within {_SILENCE_MS_MAX} ms either: "
                "nobody can tell whether there is more; `ottla cluster health` names those that hang",
                UNREACHABLE,
            ) from error
        if behind and (_now() - self._heard_at) * 1000 > max(idle_ms, self._give_up_ms):
            self.has_given_up = True
            raise CommandFault(
                f"{behind[0]} has records up to offset {ends[behind[0]]}, and none came for "
                f"{_now() - self._heard_at:.0f} s: given up before the end",
                UNREACHABLE,
            )
        return not behind

    def given_up(self) -> CommandFault:
        self.has_given_up = True
        if self.lacks_topic():
            name = self._made_anew or next(iter(self._gone))
            return CommandFault(f"{name} was deleted while it was read: given up before the end", NOT_FOUND)
        since, found = self._away_since(), self.away()
        assert since is not None
        if found is not None:
            what, why = f"{found[0]} has been away", found[1].reason
        elif self._leaderless is not None:
            what, why = f"{self._leaderless} has had no leader", ""
        else:
            key, one = next((key, one) for key, one in self._uncoordinated.items() if one.said)
            what, why = f"{key} has had no coordinator", one.reason
        shown = f" ({why})" if why else ""
        return CommandFault(f"{what} for {max(0.0, _now() - since):.0f} s{shown}: given up before the end", UNREACHABLE)

    def code_of(self, error: BaseException) -> int:
        """The exit code for a record that was not acknowledged: was it the broker's fault, or is it away, or hangs?"""
        from ottla.cli.connecting import exit_code

        lacks_broker = bool(self._away) or self._leaderless is not None
        if lacks_broker and isinstance(error, DeliveryTimedOut | BufferExhausted):
            return UNREACHABLE
        return exit_code(error) if isinstance(error, KafkaError) else FAILED


def _now() -> float:
    return asyncio.get_running_loop().time()


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
