"""What goes wrong on the way to a broker and in the client itself, under the codes that Kafka's own clients give it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar

from ottla.model import ErrorCode, TopicPartition


class KafkaError(Exception):
    """The root: `code` is Kafka's, `retriable` says whether the same request may be answered otherwise later."""

    default_code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR

    def __init__(self, message: str | None = None, *, code: ErrorCode | None = None) -> None:
        self.code = self.default_code if code is None else code
        super().__init__(message or sentence(self.code))

    @property
    def retriable(self) -> bool:
        return self.code.retriable

    def __reduce__(self) -> tuple[Any, ...]:
        """For pickle and copy, which make an exception of its message alone: some of these are made of more."""
        return _unmade, (type(self),), {**self.__dict__, "args": self.args}


def _unmade(kind: type[KafkaError]) -> KafkaError:
    return kind.__new__(kind)


def sentence(code: ErrorCode) -> str:
    return f"the broker answered {code.name} ({int(code)})"


# On the way to a broker and back.


class ConnectionLost(KafkaError):
    """The connection ended before the answer came: what was asked for may have happened or not."""

    default_code = ErrorCode.NETWORK_EXCEPTION


class ConnectFailed(ConnectionLost):
    """No connection could be made, so nothing was asked."""

    #: The machine answered that nobody listens there.
    refused = False


class BadAnswer(ConnectionLost):
    """The peer sent what is no answer to what was asked; the connection is closed, since nothing behind it counts."""


def said_nothing(about: str) -> BadAnswer:
    """The error of what an answer leaves out: nobody knows whether it was done."""
    return BadAnswer(f"{about}: the answer says nothing of it")


class RequestTimedOut(KafkaError):
    """No answer within the time-out; the connection is closed, since its answers come in order."""

    default_code = ErrorCode.REQUEST_TIMED_OUT


class NoBrokerReached(KafkaError):
    """None of the addresses answered; the message names each with its fault."""

    default_code = ErrorCode.BROKER_NOT_AVAILABLE

    def __init__(
        self, message: str | None = None, *, code: ErrorCode | None = None, faults: Sequence[KafkaError] = ()
    ) -> None:
        super().__init__(message, code=code)
        #: What was wrong with each address, where each was tried.
        self.faults = tuple(faults)

    @property
    def retriable(self) -> bool:
        return True


class UnknownBroker(KafkaError):
    """The cluster has no broker with this id now."""

    default_code = ErrorCode.BROKER_NOT_AVAILABLE


class UnsupportedVersion(KafkaError):
    """Broker and client have no version of an API in common, or a feature needs a newer broker."""

    default_code = ErrorCode.UNSUPPORTED_VERSION


# In the client itself.


class ClientFault(KafkaError):
    """A fault of the client's own: the cause is chained. Please report it."""


class ClientClosed(KafkaError):
    """The client was closed, before or while it was used."""


class SettingsError(KafkaError, ValueError):
    """A setting that is unknown, not there yet, or has a value that it cannot have."""

    default_code = ErrorCode.INVALID_CONFIG


class SerializationFailed(KafkaError):
    """A serializer or deserializer raised: the cause is chained."""

    default_code = ErrorCode.INVALID_RECORD


class SchemaUnavailable(SerializationFailed):
    """A schema that a key or value needs could not be fetched or registered: the cause is chained."""

    @property
    def retriable(self) -> bool:
        return True


class BadArgument(KafkaError, ValueError):
    """An argument that a call cannot mean: the message names it, and nothing was done."""

    default_code = ErrorCode.INVALID_REQUEST


class NotAssigned(KafkaError, ValueError):
    """A consumer was asked for what it does not read: it was given no topics and no partitions, or not this one."""

    default_code = ErrorCode.INVALID_REQUEST


class WrongConsumerState(KafkaError, ValueError):
    """A consumer cannot do this now: it reads by subscription or by assignment, and one at a time polls it."""

    default_code = ErrorCode.INVALID_REQUEST


class WrongThread(KafkaError):
    """A call-back, which the client's own thread runs, called what waits for that thread."""

    default_code = ErrorCode.INVALID_REQUEST


class PartitionerFailed(KafkaError):
    """A partitioner raised (the cause is chained), or returned what is no partition of the topic."""


class BufferExhausted(KafkaError, TimeoutError):
    """`buffer.memory` stayed full, or a topic unknown, for `max.block.ms`."""

    default_code = ErrorCode.REQUEST_TIMED_OUT


class DeliveryTimedOut(KafkaError, TimeoutError):
    """A record was not acknowledged within `delivery.timeout.ms`; it may have been written all the same."""

    default_code = ErrorCode.REQUEST_TIMED_OUT


class CorruptRecords(KafkaError):
    """Fetched bytes are no sound batch. The position stays before it: seek past it to go on."""

    default_code = ErrorCode.CORRUPT_MESSAGE

    def __init__(self, message: str, partition: TopicPartition, offset: int) -> None:
        super().__init__(message)
        self.partition = partition
        self.offset = offset


class NoOffset(KafkaError):
    """A partition has no position, and `auto.offset.reset` is none: seek first."""

    default_code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, message: str, partition: TopicPartition) -> None:
        super().__init__(message)
        self.partition = partition


class LogTruncated(KafkaError):
    """Records before the position were lost in a change of leader, and `auto.offset.reset` is none."""

    default_code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(self, message: str, partition: TopicPartition, offset: int, divergent_offset: int) -> None:
        super().__init__(message)
        self.partition = partition
        self.offset = offset
        #: Up to here the log is as it was.
        self.divergent_offset = divergent_offset


class TooManyCommits(KafkaError):
    """So many commits are unanswered that no more are taken."""

    default_code = ErrorCode.REQUEST_TIMED_OUT


class CommitFailed(KafkaError):
    """Offsets were not committed, and will not be: the partitions may belong to another member by now."""

    default_code = ErrorCode.ILLEGAL_GENERATION


class GroupRebalanceFailed(KafkaError):
    """A group of Kafka 0.8's kind found no agreement in all its tries; it goes on trying with the next poll."""

    default_code = ErrorCode.REBALANCE_IN_PROGRESS


class AssignorFailed(KafkaError):
    """An assignor raised, or gave out what it must not: the cause is chained."""

    default_code = ErrorCode.UNKNOWN_SERVER_ERROR


Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")


class SomeFailed(KafkaError):
    """Of several things asked for at once some failed: `errors` and `results` hold each by its name."""

    def __init__(self, errors: Mapping[Any, KafkaError], results: Mapping[Any, Any]) -> None:
        first = next(iter(errors.values()))
        total = len(errors) + len(results)
        listed = "; ".join(str(error) for error in list(errors.values())[:5])
        super().__init__(f"{len(errors)} of {total} failed: {listed}", code=first.code)
        self.errors = dict(errors)
        self.results = dict(results)

    @property
    def retriable(self) -> bool:
        return all(error.retriable for error in self.errors.values())


def settled(results: dict[Key, Result], errors: Mapping[Key, KafkaError]) -> dict[Key, Result]:
    """The results if nothing failed; otherwise raises the only error, or SomeFailed with everything."""
    if not errors:
        return results
    if len(errors) == 1 and not results:
        raise next(iter(errors.values()))
    raise SomeFailed(errors, results)


def all_settled(
    wanted: Iterable[Key],
    results: Mapping[Key, Result],
    errors: Mapping[Key, KafkaError],
    unheard: KafkaError | None = None,
) -> dict[Key, Result]:
    """The same of all that was wanted, in its order; `unheard` is the error of what nothing was heard of. One that
    befell everything is raised itself."""
    found: dict[Key, Result] = {}
    failed: dict[Key, KafkaError] = {}
    for one in wanted:
        if one in results:
            found[one] = results[one]
        elif (error := errors.get(one, unheard)) is not None:
            failed[one] = error
    if not found and len({id(error) for error in failed.values()}) == 1:
        raise next(iter(failed.values()))
    return settled(found, failed)
