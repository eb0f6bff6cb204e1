"""What the driver's decisions ask for, and what has become of it: plain values between `core` and `committing`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from ottla.client.producing.transactions.core import TransactionIdentity
from ottla.spark.sink.entries import LedgerEntry, LedgerTask
from ottla.spark.sink.errors import SinkError


class Outcome(Enum):
    """Of a transaction that was to be committed."""

    COMMITTED = "committed"
    ABORTED = "aborted"
    #: Its id was used again, and its rows' log does not tell either.
    UNKNOWN = "unknown"


# To be done


@dataclass(frozen=True, slots=True)
class Fence:
    """Answered with Fenced."""


@dataclass(frozen=True, slots=True)
class ReadLedger:
    """Answered with LedgerRead."""


@dataclass(frozen=True, slots=True)
class Describe:
    """Answered with Described."""

    transactions: tuple[TransactionIdentity, ...]


@dataclass(frozen=True, slots=True)
class Write:
    """Answered with Written."""

    entry: LedgerEntry


@dataclass(frozen=True, slots=True)
class Commit:
    """Answered with Committed."""

    tasks: tuple[LedgerTask, ...]


@dataclass(frozen=True, slots=True)
class FindStrays:
    """Answered with StraysFound: of this name's tasks what is open and not `known`."""

    known: frozenset[str]


@dataclass(frozen=True, slots=True)
class Abort:
    """Answered with Aborted, whatever has become of it: what stays open ends when its time is over."""

    transactions: tuple[TransactionIdentity, ...]


@dataclass(frozen=True, slots=True)
class Finish:
    """The micro-batch is committed."""


@dataclass(frozen=True, slots=True)
class Fail:
    error: SinkError


Effect = Fence | ReadLedger | Describe | Write | Commit | FindStrays | Abort | Finish | Fail


# What has happened


@dataclass(frozen=True, slots=True)
class Fenced:
    pass


@dataclass(frozen=True, slots=True)
class LedgerRead:
    entry: LedgerEntry | None


@dataclass(frozen=True, slots=True)
class Described:
    """Those that are open, under the epoch that was asked for."""

    open: frozenset[TransactionIdentity]


@dataclass(frozen=True, slots=True)
class Written:
    pass


@dataclass(frozen=True, slots=True)
class Committed:
    """By task."""

    outcomes: Mapping[int, Outcome]


@dataclass(frozen=True, slots=True)
class StraysFound:
    strays: tuple[TransactionIdentity, ...]


@dataclass(frozen=True, slots=True)
class Aborted:
    pass


Event = Fenced | LedgerRead | Described | Written | Committed | StraysFound | Aborted
