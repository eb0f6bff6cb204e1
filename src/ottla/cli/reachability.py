"""Says on standard error when a broker does not answer any more, and when it does again.

A client tries again by itself, for ever and in silence: rightly so in a program, but a person would watch a command
that waits for a broker that is gone. Work that has an end is given up when a broker stays away, other work is not.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.cli.faults import UNREACHABLE, CommandFault
from ottla.cli.numbers import GIVE_UP_MS
from ottla.client.errors import ClientClosed, DeliveryTimedOut, KafkaError

if TYPE_CHECKING:
    from ottla.client.wire.cluster import Cluster

#: An address that nobody has tried for so long is not waited for any more: others have its partitions.
_TRIED_SECONDS_MAX: Final = 15.0


class _Away(NamedTuple):
    since: float
    tried: float
    reason: str


class BrokerWatch:
    def __init__(self, cluster: Cluster, give_up_ms: int = GIVE_UP_MS) -> None:
        self._cluster = cluster
        self._give_up_ms = give_up_ms
        self._away: dict[str, _Away] = {}
        self._heard_at = 0.0
        #: Whether the command ends because a broker stayed away: nothing more is asked of it.
        self.has_given_up = False
        #: Takes a line; a bar, where there is one, has to step aside for it.
        self.say: Callable[[str], object] = _to_stderr

    def begin(self) -> None:
        """From now on: what is wrong at the beginning ends a command, and is said then."""
        self._cluster.connections.on_address = self._hear
        self._cluster.connections.on_unreached = lambda _: None  # what is heard is said here
        self._heard_at = _now()

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
        """Raises where a broker has been away for too long, and nothing has come from any."""
        found = self.away()
        if found is not None and (_now() - max(found[1].since, self._heard_at)) * 1000 >= self._give_up_ms:
            raise self.given_up()

    def given_up(self) -> CommandFault:
        found = self.away()
        assert found is not None
        address, one = found
        self.has_given_up = True
        seconds = max(0.0, _now() - one.since)
        return CommandFault(
            f"{address} has been away for {seconds:.0f} s ({one.reason}): given up before the end", UNREACHABLE
        )

    def code_of(self, error: BaseException, code: int) -> int:
        """The exit code for a record that was not acknowledged in time: was it the broker's fault, or is it away?"""
        return UNREACHABLE if isinstance(error, DeliveryTimedOut) and self._away else code


def _now() -> float:
    return asyncio.get_running_loop().time()


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
