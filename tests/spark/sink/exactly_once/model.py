"""A model of the brokers: a ledger's entry and the transactions of one micro-batch, and drivers, step by step.

A run takes a list of choices, and what is done at each step is taken from it (a fault, or which of two drivers goes
on); `tried` goes through all lists up to a number of choices that are not the usual one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count

from ottla.client.producing.transactions.core import TransactionIdentity
from ottla.spark.sink.entries import LedgerEntry, TaskAttempt
from ottla.spark.sink.exactly_once import effects as do
from ottla.spark.sink.exactly_once.core import BatchCommit
from ottla.spark.sink.exactly_once.naming import task_id
from ottla.spark.sink.exactly_once.replayed import work_of
from ottla.spark.sink.messages import TransactionReport, Work

BATCH = 7
RUN = "a" * 32
#: By task; the second has none.
ROWS = {0: 30, 1: 0, 2: 50}
OPEN, COMMITTED, ABORTED = "open", "committed", "aborted"


class Crash(Exception):
    """The driver dies."""


@dataclass
class Brokers:
    """What outlives drivers."""

    entry: LedgerEntry | None = None
    transactions: dict[TransactionIdentity, str] = field(default_factory=dict)
    #: Of each transaction, whose rows it has.
    task_of: dict[TransactionIdentity, int] = field(default_factory=dict)
    #: Their ids were used again, and their topic does not have what they wrote any more.
    forgotten: set[TransactionIdentity] = field(default_factory=set)
    #: The ledger does not let a driver write that is not the last.
    driver: int = 0

    def seen(self) -> dict[int, int]:
        """How often a reader of committed records sees each task's rows."""
        found = dict.fromkeys([task for task, rows in ROWS.items() if rows], 0)
        for transaction, state in self.transactions.items():
            found[self.task_of[transaction]] += state == COMMITTED
        return found

    def let_time_pass(self) -> None:
        for one, state in self.transactions.items():
            if state == OPEN:
                self.transactions[one] = ABORTED

    def fence(self, task: int) -> TransactionIdentity | None:
        """Somebody begins under the id of the task's last transaction, if it has one: what is open is aborted.

        Its coordinator says PRODUCER_FENCED from then on, and the log what has become of it."""
        of_task = [one for one in self.transactions if self.task_of[one] == task]
        if not of_task:
            return None
        if self.transactions[of_task[-1]] == OPEN:
            self.transactions[of_task[-1]] = ABORTED
        return of_task[-1]

    def fence_and_forget(self, task: int) -> None:
        if (fenced := self.fence(task)) is not None:
            self.forgotten.add(fenced)

    def ended(self, transaction: TransactionIdentity) -> do.Outcome:
        """What a driver finds that commits it."""
        if transaction in self.forgotten:
            return do.Outcome.UNKNOWN
        if self.transactions[transaction] == OPEN:
            self.transactions[transaction] = COMMITTED
        return do.Outcome.COMMITTED if self.transactions[transaction] == COMMITTED else do.Outcome.ABORTED


#: What a driver does next, and what it has found then; it stops where another one may go on or a fault may come.
Steps = Iterator[None]


def driven(brokers: Brokers, driver: int) -> Steps:
    """One driver plans the micro-batch, has it written and commits it. Raises Crash, or why it is not committed."""
    entry = brokers.entry
    yield
    reports = reports_of(brokers, entry)
    yield
    core = BatchCommit("name", BATCH, reports)
    effect = core.begin()
    while not isinstance(effect, do.Finish):
        if isinstance(effect, do.Fail):
            raise effect.error
        if isinstance(effect, do.Commit):
            outcomes = {}
            for one in effect.tasks:
                assert one.transaction is not None
                outcomes[one.task] = brokers.ended(one.transaction)
                yield
            event: do.Event = do.Committed(outcomes)
        else:
            event = performed(effect, brokers, driver)
        yield
        effect = core.step(event)


def performed(effect: do.Effect, brokers: Brokers, driver: int) -> do.Event:
    """All but `Commit`, which has a step for each task."""
    match effect:
        case do.Fence():
            brokers.driver = driver
            return do.Fenced()
        case do.ReadLedger():
            return do.LedgerRead(brokers.entry)
        case do.Describe(wanted):
            return do.Described(frozenset(one for one in wanted if brokers.transactions[one] == OPEN))
        case do.Write(entry):
            if brokers.driver != driver:
                raise Crash
            assert entry == LedgerEntry.parsed(entry.value())
            brokers.entry = entry
            return do.Written()
        case do.FindStrays(known):
            strays = [one for one, state in brokers.transactions.items() if state == OPEN]
            return do.StraysFound(tuple(one for one in strays if one.transactional_id not in known))
        case do.Abort(unwanted):
            for one in unwanted:
                if brokers.transactions[one] == OPEN:
                    brokers.transactions[one] = ABORTED
            return do.Aborted()
    raise AssertionError(effect)


_numbers = count(1)


def reports_of(brokers: Brokers, entry: LedgerEntry | None) -> list[TransactionReport]:
    """What tasks do with their rows, by what the planner has read. One runs twice, and the first attempt is a stray."""
    reports = []
    for task, rows in ROWS.items():
        work = work_of(entry, "name", "q", BATCH, task)
        transaction = None
        if work is Work.WROTE and rows:
            for attempt in range(1 + (task == 0)):
                number = next(_numbers)
                transaction = TransactionIdentity(task_id("name", f"{number:032x}", 10 * attempt + task), number, 0, 2)
                brokers.transactions[transaction] = OPEN
                brokers.task_of[transaction] = task
        known = work is not Work.NONE
        reports.append(
            TransactionReport(
                query_id="q",
                task=task,
                work=work,
                attempt=TaskAttempt(RUN, task),
                rows=rows if known else 0,
                checksum=rows * 3 if known else 0,
                transaction=transaction,
            )
        )
    return reports


class Choices:
    """What is chosen where: `picked` says it for the first steps, and at all others it is the usual, 0."""

    def __init__(self, picked: tuple[int, ...]) -> None:
        self._picked = picked
        #: How many there were to choose from, at each step.
        self.asked: list[int] = []

    def of(self, options: int) -> int:
        at = len(self.asked)
        self.asked.append(options)
        return self._picked[at] if at < len(self._picked) else 0


def tried(run: Callable[[Choices], None], unusual_max: int) -> int:
    """Runs each list of choices with so many unusual ones at most; how many. A run tells what there was to choose
    behind its list."""
    waiting: list[tuple[int, ...]] = [()]
    number = 0
    while waiting:
        picked = waiting.pop()
        choices = Choices(picked)
        try:
            run(choices)
        except BaseException as error:
            error.add_note(f"choices: {picked}")
            raise
        number += 1
        if sum(map(bool, picked)) == unusual_max:
            continue
        for at in range(len(picked), len(choices.asked)):
            waiting += [(*picked, *[0] * (at - len(picked)), chosen) for chosen in range(1, choices.asked[at])]
    return number
