"""What the ledger says of a query's name: which micro-batch is finished, and which one is on its way.

    DONE       the micro-batch is finished, and with it all before
    PREPARED   all of its tasks have written, each in a transaction that is named here: all of them are to be committed
    PARTIAL    some of them could not be, since their time was over; the tasks that are named here are committed

PREPARED and PARTIAL are of queries that write exactly once. Either says as well that the micro-batches before are done.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from ottla.client.producing.transactions.core import TransactionIdentity
from ottla.spark.sink.errors import LedgerFault, QueryNameTaken

LEDGER_TOPIC: Final = "__ottla_spark"
VERSION: Final = 1
DONE: Final = "DONE"
PREPARED: Final = "PREPARED"
PARTIAL: Final = "PARTIAL"
#: A record has to fit into a batch of what topics take by default (`max.message.bytes`, 1,048,588): some 5,000 tasks.
_VALUE_BYTES_MAX: Final = 1_000_000


class RecordPlace(NamedTuple):
    """Where one record of a task is, by which its log shows whether the task was committed."""

    topic: str
    partition: int
    offset: int


class TaskAttempt(NamedTuple):
    """One of those that Spark begins, of all its tasks and of all attempts at them."""

    run: str
    #: Within a run each has a greater one than those before.
    attempt_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerTask:
    """A task of a micro-batch, as the ledger has it."""

    task: int
    rows: int
    #: Of its rows, in whatever order.
    checksum: int
    #: None where nothing is to be committed any more: it is, or there were no rows.
    transaction: TransactionIdentity | None = None
    #: None where no broker has said it.
    place: RecordPlace | None = None

    def plain(self) -> list[Any]:
        fields: list[Any] = [self.task, self.rows, self.checksum]
        if self.transaction is not None:
            fields += [list(self.transaction), None if self.place is None else list(self.place)]
        return fields

    @classmethod
    def parsed(cls, fields: Any) -> Self:
        """Raises ValueError or TypeError."""
        task, rows, checksum, *more = fields
        _check_numbers(task, rows, checksum)
        if not more:
            return cls(task=task, rows=rows, checksum=checksum)
        transaction, place = TransactionIdentity(*more[0]), None if more[1] is None else RecordPlace(*more[1])
        _check_texts(transaction.transactional_id)
        _check_numbers(*transaction[1:])
        if place is not None:
            _check_texts(place.topic)
            _check_numbers(*place[1:])
        return cls(task=task, rows=rows, checksum=checksum, transaction=transaction, place=place)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """What is known of a name."""

    #: The query's id, which its checkpoint keeps over restarts.
    query_id: str
    #: The micro-batch that the state is of.
    batch: int
    #: Of that micro-batch.
    rows: int
    state: str = DONE
    #: PREPARED: all of them. PARTIAL: those that are committed.
    tasks: tuple[LedgerTask, ...] = ()
    #: DONE: the last of the micro-batch's attempts at tasks. Says nothing of what is written.
    last_attempt: TaskAttempt | None = field(default=None, compare=False)

    @property
    def finished(self) -> int:
        """The last micro-batch that is finished, and with it all before."""
        return self.batch if self.state == DONE else self.batch - 1

    def committed(self, batch: int) -> Mapping[int, LedgerTask]:
        """The tasks of a micro-batch that are committed while others are not."""
        if self.state != PARTIAL or self.batch != batch:
            return {}
        return {one.task: one for one in self.tasks}

    def value(self) -> bytes:
        """Raises LedgerFault where it does not fit into a record."""
        known: dict[str, Any] = {
            "version": VERSION,
            "query": self.query_id,
            "batch": self.batch,
            "state": self.state,
            "rows": self.rows,
        }
        if self.state != DONE:
            known["tasks"] = [one.plain() for one in self.tasks]
        elif self.last_attempt is not None:
            known["attempt"] = list(self.last_attempt)
        value = json.dumps(known).encode()
        if len(value) > _VALUE_BYTES_MAX:
            raise LedgerFault(
                f"batch {self.batch} has {len(self.tasks)} tasks, more than one record of {LEDGER_TOPIC} can name: "
                "write fewer at once, with coalesce() or repartition() before the sink"
            )
        return value

    @classmethod
    def parsed(cls, value: bytes) -> Self:
        """Raises LedgerFault for what this version did not write: to take it for nothing would write rows twice."""
        try:
            fields = json.loads(value)
            version, state, rows = fields["version"], fields["state"], fields.get("rows", 0)
            query_id, batch, tasks = fields["query"], fields["batch"], fields.get("tasks", [])
            attempt = fields.get("attempt")
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LedgerFault(f"{LEDGER_TOPIC} has a record that is none of the ledger's: {value[:200]!r}") from error
        try:
            _check_numbers(version, batch, rows)
            _check_texts(query_id)
            _check_known(version, state)
            listed = tuple(LedgerTask.parsed(one) for one in _checked_list(tasks))
            last_attempt = None if attempt is None else TaskAttempt(*_checked_list(attempt))
            if last_attempt is not None:
                _check_texts(last_attempt.run)
                _check_numbers(last_attempt.attempt_id)
        except (ValueError, TypeError) as error:
            raise LedgerFault(
                f"{LEDGER_TOPIC} has a record of version {version!r} in state {state!r}, which this version of Ottla "
                "does not know: a newer one wrote it"
            ) from error
        return cls(query_id=query_id, batch=batch, rows=rows, state=state, tasks=listed, last_attempt=last_attempt)


def check_name(entry: LedgerEntry | None, name: str, query_id: str) -> None:
    """Raises QueryNameTaken where the name is another query's."""
    if entry is not None and entry.query_id != query_id:
        raise QueryNameTaken(
            f"ottla.query={name} is the name of another query: its checkpoint has the id {entry.query_id}, this one's "
            f"{query_id}. Give this query another name; or, if it takes the other's place and that one will not "
            f"run again, free the name with ottla.spark.free_query_name({name!r}, ...)"
        )


def is_finished(entry: LedgerEntry | None, name: str, query_id: str, batch: int) -> bool:
    """Whether this batch was written in full. Raises QueryNameTaken where the name is another query's."""
    check_name(entry, name, query_id)
    return entry is not None and batch <= entry.finished


def check_nothing_prepared(entry: LedgerEntry | None, name: str) -> None:
    """For a sink that writes once at least. Raises LedgerFault where transactions are listed that are to be committed,
    or tasks that are: DONE over them would leave the transactions open, with all readers of committed records before
    them, and rows that are committed already would be written again."""
    if entry is not None and entry.state != DONE:
        raise LedgerFault(
            f"batch {entry.batch} of ottla.query={name} is {entry.state}: a driver with ottla.exactlyOnce=true has "
            "begun to commit it. Start the query with ottla.exactlyOnce=true until that batch is finished, and leave "
            "the option out from then on"
        )


def _checked_list(given: Any) -> Sequence[Any]:
    if not isinstance(given, list):
        raise TypeError
    return given


def _check_known(version: int, state: Any) -> None:
    if version != VERSION or state not in {DONE, PREPARED, PARTIAL}:
        raise ValueError


def _check_numbers(*given: Any) -> None:
    if any(one.__class__ is not int for one in given):
        raise TypeError


def _check_texts(*given: Any) -> None:
    if any(not isinstance(one, str) for one in given):
        raise TypeError
