"""Transactions that nobody ends, all of whose time is over in the same moment."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Final

from bench.attacks.attack import Attack, Attacker, Bound, Outcome, Victim
from bench.attacks.transactions import LIST_TRANSACTIONS, TIMEOUT_MS, aborts, adds, ask_all, initialised, writes
from bench.transactional_frames import Transaction
from bench.wire import Wire, create_topic, end_offsets
from ottla.model import ErrorCode
from ottla.protocol.generated.list_transactions import ListTransactionsRequest

TOPIC = "overdue"
TRANSACTIONS = 100_000
#: Brokers look for them at its multiples, by the monotonic clock: what has ended until then is ended together.
LOOK_SECONDS: Final = 10.0
#: Opened and ended before the others, to see how long these will take.
TRIED = 1_000
#: As other work may leave less of the machine meanwhile.
SLOWER = 2.5
#: Ended so long before the look.
EARLY_SECONDS = 3.0
ENDED_SECONDS_MAX = 120.0
#: Begun by one client together: within much less than a look.
A_STEP = 500
ABORTED = "CompleteAbort"
#: Ids that begin again afterwards.
AGAIN = 100


class Overdue(Attack):
    bound = Bound(memory_mb=64)
    seconds_max = 600.0

    def __init__(self, name: str, clients: int) -> None:
        self.name = name
        self.sends = (
            f"{TRANSACTIONS:,} transactions of {clients:,} client{'s' * (clients > 1)} whose time is over at once"
        )
        self._clients = clients

    def prepare(self, victim: Victim) -> None:
        Transaction(victim.port, "the-first")  # has the coordinator's topic made
        self._stack = ExitStack()
        clients = [self._stack.enter_context(victim.connect()) for _ in range(self._clients)]
        create_topic(victim.port, "tried")
        began = time.monotonic()
        tried = self._open(clients, "tried", TRIED, began + TIMEOUT_MS / 1000)
        took = (time.monotonic() - began) / TRIED * TRANSACTIONS
        for _ in ask_all(clients, map(aborts, tried)):
            pass
        create_topic(victim.port, TOPIC)
        soonest = time.monotonic() + took * SLOWER + EARLY_SECONDS
        self._look = (soonest // LOOK_SECONDS + 1) * LOOK_SECONDS
        self._open(clients, TOPIC, TRANSACTIONS, self._look - EARLY_SECONDS)
        assert time.monotonic() < self._look - EARLY_SECONDS, "the machine was too slow to open them in time"

    def _open(self, clients: list[Attacker], topic: str, count: int, ends: float) -> list[tuple[str, int, int]]:
        """Transactions whose time is over at `ends`, each with a record."""
        found = []
        for first in range(0, count, A_STEP):
            left_ms = max(1, int((ends - time.monotonic()) * 1000))
            begun = initialised(clients, [f"{topic}-{number:06}" for number in range(first, first + A_STEP)], left_ms)
            for frames in ([adds(each, topic, [0]) for each in begun], [writes(each, topic) for each in begun]):
                for _ in ask_all(clients, frames):
                    pass
            clients = [*clients[A_STEP:], *clients[:A_STEP]]
            found += begun
        return found

    def run(self, victim: Victim) -> Outcome:
        with self._stack:
            time.sleep(max(0.0, self._look - time.monotonic()))
            began = time.monotonic()
            wanted = 2 * TRANSACTIONS  # a record and a marker each
            while end_offsets(victim.port, TOPIC, 1) != [wanted] and time.monotonic() < began + ENDED_SECONDS_MAX:
                time.sleep(0.05)
            marked = time.monotonic() - began
            aborted = self._aborted(victim, began + ENDED_SECONDS_MAX) - TRIED
            outcome = Outcome(said=f"{aborted:,} aborted, all markers written in {marked:.1f} s", seconds=marked)
            if aborted != TRANSACTIONS:
                outcome.faults.append("some are not aborted")
            if not self._begin_again(victim):
                outcome.faults.append("an id cannot begin again")
            return outcome

    def _aborted(self, victim: Victim, deadline: float) -> int:
        """How many there are in the end."""
        with Wire(victim.port) as wire:
            while True:
                answer = wire.call(LIST_TRANSACTIONS, 0, ListTransactionsRequest(state_filters=[ABORTED]))
                found = len(answer.transaction_states)
                if (
                    answer.error_code == ErrorCode.NONE and found >= TRANSACTIONS + TRIED
                ) or time.monotonic() > deadline:
                    return found
                time.sleep(0.5)

    def _begin_again(self, victim: Victim) -> bool:
        with victim.connect() as client:
            names = [f"overdue-{number:06}" for number in range(0, TRANSACTIONS, TRANSACTIONS // AGAIN)]
            begun = initialised([client], names, TIMEOUT_MS)
        return len(begun) == AGAIN


def attacks() -> list[Attack]:
    return [Overdue("overdue-transactions", 1), Overdue("overdue-transactions-1000", 1_000)]
