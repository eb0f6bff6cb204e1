"""100,000 transactional ids: what they take in memory, and how long a restart takes until they are all there."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bench import machine
from bench.lifecycle import CLEAN, IDLE, KILLED, LOADED, MORE, brokers, remembered, restarts
from bench.results import Figures, Goal, Measure, Results
from bench.scenario import Context
from bench.servers import started
from bench.transactional_frames import INIT_PRODUCER_ID, Transaction
from bench.wire import Wire, WireError
from ottla.model import ErrorCode
from ottla.protocol.generated.init_producer_id import InitProducerIdRequest
from ottla.protocol.generated.list_transactions import ListTransactionsRequest

LIST_TRANSACTIONS = 66
UP_SECONDS_MAX = 120.0
CONNECTIONS = 16
#: Requests that a connection sends before it reads the answers.
AT_ONCE = 50


@dataclass(frozen=True, kw_only=True)
class ManyIds:
    """None of them has a transaction open."""

    name: str = "transactions-ids"
    title: str = "100,000 transactional ids"
    ids: int = 100_000
    measures: Sequence[Measure] = (
        MORE,
        LOADED,
        CLEAN,
        KILLED,
        IDLE,
    )
    goals: Sequence[Goal] = (
        Goal(measure="more", at_most=150),
        Goal(measure="loaded", at_most=150),
        Goal(measure="clean", at_most=3),
        Goal(measure="killed", at_most=3),
    )

    def run(self, context: Context) -> Results:
        results = Results(title=self.title, measures=self.measures, goals=self.goals)
        count = restarts(context)

        def take(kind: str) -> Figures:
            with started(kind, f"{self.name}-{kind}", context.places) as running:
                Transaction(running.port, "id-000000")  # has the topic made
                found = remembered(running, lambda: self._begin_all(running.port), self._are_there)
                idle = machine.idle_cpu_share(running.pid, context.effort.idle_seconds) * 100
                return {**found, "idle": idle}

        context.measure_in_turns(results, brokers(context), take, lambda kind: int(count[kind]))
        return results

    def _begin_all(self, port: int) -> None:
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(lambda first: self._begin(port, first), range(CONNECTIONS)))

    def _begin(self, port: int, first: int) -> None:
        """A share of the ids; the one that is there already gets another epoch."""
        names = [f"id-{number:06}" for number in range(first, self.ids, CONNECTIONS)]
        with Wire(port) as wire:
            for start in range(0, len(names), AT_ONCE):
                left = names[start : start + AT_ONCE]
                while left:
                    asked = [
                        InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000) for name in left
                    ]
                    answers = wire.call_all(INIT_PRODUCER_ID, 3, asked)
                    errors = {answer.error_code for answer in answers} - {ErrorCode.NONE, *_COMES}
                    if errors:
                        raise WireError(f"InitProducerId: errors {errors}")
                    left = [name for name, answer in zip(left, answers, strict=True) if answer.error_code]

    def _are_there(self, wire: Wire) -> bool:
        answer = wire.call(LIST_TRANSACTIONS, 0, ListTransactionsRequest())
        return answer.error_code == ErrorCode.NONE and len(answer.transaction_states) == self.ids


#: Of Kafka, whose producer ids come from its controller in blocks.
_COMES = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.CONCURRENT_TRANSACTIONS)
