"""Says on standard error when a broker does not answer any more or a partition has no leader, and when that is over.

A client tries again by itself, for ever and in silence: rightly so in a program, but a person would watch a command
that waits for a broker that is gone. Work that has an end is given up when a broker stays away, other work is not.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.cli.faults import UNREACHABLE, CommandFault
from ottla.cli.numbers import GIVE_UP_MS
from ottla.cli.offsets import LATEST, offsets_of
from ottla.client.errors import ClientClosed, DeliveryTimedOut, KafkaError

if TYPE_CHECKING:
    from ottla.client.wire.cluster import Cluster
    from ottla.model import TopicPartition

#: An address that nobody has tried for so long is not waited for any more: others have its partitions.
_TRIED_SECONDS_MAX: Final = 15.0
#: For the answer to a short question, before silence counts as the end.
_SILENCE_MS_MAX: Final = 3_000


class _Away(NamedTuple):
    since: float
    tried: float
    reason: str


class _Leaderless(NamedTuple):
    since: float
    first: str
    partitions: int

    def __str__(self) -> str:
        return self.first if self.partitions == 1 else f"{self.first} (one of {self.partitions} partitions)"


class BrokerWatch:
    def __init__(self, cluster: Cluster, give_up_ms: int = GIVE_UP_MS) -> None:
        self._cluster = cluster
        self._give_up_ms = give_up_ms
        #: By address.
        self._away: dict[str, _Away] = {}
        self._leaderless: _Leaderless | None = None
        self._heard_at = 0.0
        #: Whether the command ends because a broker stayed away: nothing more is asked of it.
        self.has_given_up = False
        #: Takes a line; a bar, where there is one, has to step aside for it.
        self.say: Callable[[str], object] = _to_stderr

    def begin(self) -> None:
        """From now on: what is wrong at the beginning ends a command, and is said then."""
        self._cluster.connections.on_address = self._hear
        self._cluster.connections.on_unreached = lambda _: None  # what is heard is said here
        self._cluster.on_change.append(self._look_for_leaders)
        self._heard_at = _now()
        self._look_for_leaders()

    def _look_for_leaders(self) -> None:
        topics = self._cluster.metadata.topics.values()
        names = [f"{topic.name}-{one.partition}" for topic in topics for one in topic.partitions if one.leader < 0]
        known = self._leaderless
        if not names:
            self._leaderless = None
            if known is not None:
                self._heard_at = _now()
                self.say(f"ottla: {known} has a leader again")
        elif known is None:
            self._leaderless = _Leaderless(_now(), names[0], len(names))
            self.say(f"ottla: {self._leaderless} has no leader (`ottla cluster health` says why); trying again")

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
        """Raises where a broker or a leader has been away for too long, and nothing has come from any."""
        since = self._away_since()
        if since is not None and (_now() - max(since, self._heard_at)) * 1000 >= self._give_up_ms:
            raise self.given_up()

    def _away_since(self) -> float | None:
        found = self.away()
        if found is not None:
            return found[1].since
        return None if self._leaderless is None else self._leaderless.since

    def lacks_something(self) -> bool:
        """Whether the end may never be reached."""
        return self._away_since() is not None

    async def confirm_silence(self, partitions: Iterable[TopicPartition], idle_ms: int) -> None:
        """Raises where their leaders do not answer: one that hangs sends nothing either, and is no end."""
        try:
            async with asyncio.timeout(_SILENCE_MS_MAX / 1000):
                await offsets_of(self._cluster, dict.fromkeys(partitions, LATEST))
        except (TimeoutError, KafkaError) as error:
            self.has_given_up = True
            raise CommandFault(
                f"nothing came for {idle_ms} ms, and the brokers did not answer within {_SILENCE_MS_MAX} ms either: "
                "nobody can tell whether there is more; `ottla cluster health` names those that hang",
                UNREACHABLE,
            ) from error

    def given_up(self) -> CommandFault:
        since, found = self._away_since(), self.away()
        assert since is not None
        self.has_given_up = True
        what = f"{self._leaderless} has had no leader" if found is None else f"{found[0]} has been away"
        why = "" if found is None else f" ({found[1].reason})"
        return CommandFault(f"{what} for {max(0.0, _now() - since):.0f} s{why}: given up before the end", UNREACHABLE)

    def code_of(self, error: BaseException, code: int) -> int:
        """The exit code for a record that was not acknowledged in time: was it the broker's fault, or is it away?"""
        return UNREACHABLE if isinstance(error, DeliveryTimedOut) and self._away else code


def _now() -> float:
    return asyncio.get_running_loop().time()


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
