"""What can go wrong, as exceptions: every one is a KafkaError with Kafka's code and whether trying again may help.

What a broker says becomes the class of its code where callers are likely to ask for it by name, and a plain
KafkaError with the code otherwise. What happens on the way (a lost connection, a time-out, bytes that are no answer)
has classes of its own, under the code that Kafka's own clients give it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeVar

from ottla.model import ErrorCode, TopicPartition


class KafkaError(Exception):
    """The root: `code` is Kafka's, `retriable` says whether the same request may be answered otherwise later."""

    default_code: ClassVar[ErrorCode] = ErrorCode.UNKNOWN_SERVER_ERROR

    def __init__(self, message: str | None = None, *, code: ErrorCode | None = None) -> None:
        self.code = self.default_code if code is None else code
        super().__init__(message or _sentence(self.code))

    @property
    def retriable(self) -> bool:
        return self.code.retriable


def _sentence(code: ErrorCode) -> str:
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


class UnsupportedVersion(KafkaError):
    """Broker and client have no version of an API in common, or a feature needs a newer broker."""

    default_code = ErrorCode.UNSUPPORTED_VERSION


# In the client itself.


class ClientClosed(KafkaError):
    """The client was closed, before or while it was used."""


class SettingsError(KafkaError, ValueError):
    """A setting that is unknown, not there yet, or has a value that it cannot have."""

    default_code = ErrorCode.INVALID_CONFIG


class SerializationFailed(KafkaError):
    """A serializer or deserializer raised: the cause is chained."""

    default_code = ErrorCode.INVALID_RECORD


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


class CommitFailed(KafkaError):
    """Offsets were not committed, and will not be: the partitions may belong to another member by now."""

    default_code = ErrorCode.ILLEGAL_GENERATION


class AssignorFailed(KafkaError):
    """An assignor raised, or gave out what it must not: the cause is chained."""

    default_code = ErrorCode.UNKNOWN_SERVER_ERROR


# What brokers say.


class OffsetOutOfRange(KafkaError):
    """The partition has no such offset (any more); without `auto.offset.reset` the caller decides where to go on."""

    default_code = ErrorCode.OFFSET_OUT_OF_RANGE

    def __init__(
        self,
        message: str | None = None,
        *,
        code: ErrorCode | None = None,
        partition: TopicPartition | None = None,
        offset: int | None = None,
    ) -> None:
        super().__init__(message, code=code)
        self.partition = partition
        self.offset = offset


class UnknownTopicOrPartition(KafkaError):
    default_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class UnknownTopicId(KafkaError):
    default_code = ErrorCode.UNKNOWN_TOPIC_ID


class LeaderNotAvailable(KafkaError):
    default_code = ErrorCode.LEADER_NOT_AVAILABLE


class NotLeaderOrFollower(KafkaError):
    default_code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class RecordTooLarge(KafkaError):
    default_code = ErrorCode.MESSAGE_TOO_LARGE


class InvalidTopic(KafkaError):
    default_code = ErrorCode.INVALID_TOPIC_EXCEPTION


class NotEnoughReplicas(KafkaError):
    default_code = ErrorCode.NOT_ENOUGH_REPLICAS


class TopicAuthorizationFailed(KafkaError):
    default_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class ClusterAuthorizationFailed(KafkaError):
    default_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class InvalidTimestamp(KafkaError):
    default_code = ErrorCode.INVALID_TIMESTAMP


class TopicAlreadyExists(KafkaError):
    default_code = ErrorCode.TOPIC_ALREADY_EXISTS


class InvalidPartitions(KafkaError):
    default_code = ErrorCode.INVALID_PARTITIONS


class InvalidReplicationFactor(KafkaError):
    default_code = ErrorCode.INVALID_REPLICATION_FACTOR


class InvalidReplicaAssignment(KafkaError):
    default_code = ErrorCode.INVALID_REPLICA_ASSIGNMENT


class InvalidConfig(KafkaError):
    default_code = ErrorCode.INVALID_CONFIG


class InvalidRequest(KafkaError):
    default_code = ErrorCode.INVALID_REQUEST


class InvalidRecord(KafkaError):
    default_code = ErrorCode.INVALID_RECORD


class PolicyViolation(KafkaError):
    default_code = ErrorCode.POLICY_VIOLATION


class TopicDeletionDisabled(KafkaError):
    default_code = ErrorCode.TOPIC_DELETION_DISABLED


class StorageError(KafkaError):
    default_code = ErrorCode.KAFKA_STORAGE_ERROR


class LogDirNotFound(KafkaError):
    default_code = ErrorCode.LOG_DIR_NOT_FOUND


class OutOfOrderSequence(KafkaError):
    default_code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class RebalanceInProgress(KafkaError):
    """The group rebalances: poll, and do then what is still to be done."""

    default_code = ErrorCode.REBALANCE_IN_PROGRESS


class IllegalGeneration(KafkaError):
    default_code = ErrorCode.ILLEGAL_GENERATION


class UnknownMember(KafkaError):
    default_code = ErrorCode.UNKNOWN_MEMBER_ID


class FencedInstanceId(KafkaError):
    """Another consumer has joined with the same `group.instance.id`: this one is out for good."""

    default_code = ErrorCode.FENCED_INSTANCE_ID


class InconsistentGroupProtocol(KafkaError):
    default_code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


class InvalidGroupId(KafkaError):
    default_code = ErrorCode.INVALID_GROUP_ID


class InvalidSessionTimeout(KafkaError):
    default_code = ErrorCode.INVALID_SESSION_TIMEOUT


class GroupAuthorizationFailed(KafkaError):
    default_code = ErrorCode.GROUP_AUTHORIZATION_FAILED


class GroupMaxSizeReached(KafkaError):
    default_code = ErrorCode.GROUP_MAX_SIZE_REACHED


class OffsetMetadataTooLarge(KafkaError):
    default_code = ErrorCode.OFFSET_METADATA_TOO_LARGE


_BY_CODE: Final[dict[ErrorCode, type[KafkaError]]] = {
    kind.default_code: kind
    for kind in (
        OffsetOutOfRange,
        UnknownTopicOrPartition,
        UnknownTopicId,
        LeaderNotAvailable,
        NotLeaderOrFollower,
        RecordTooLarge,
        InvalidTopic,
        NotEnoughReplicas,
        TopicAuthorizationFailed,
        ClusterAuthorizationFailed,
        InvalidTimestamp,
        TopicAlreadyExists,
        InvalidPartitions,
        InvalidReplicationFactor,
        InvalidReplicaAssignment,
        InvalidConfig,
        InvalidRequest,
        InvalidRecord,
        PolicyViolation,
        TopicDeletionDisabled,
        StorageError,
        LogDirNotFound,
        OutOfOrderSequence,
        UnsupportedVersion,
        RebalanceInProgress,
        IllegalGeneration,
        UnknownMember,
        FencedInstanceId,
        InconsistentGroupProtocol,
        InvalidGroupId,
        InvalidSessionTimeout,
        GroupAuthorizationFailed,
        GroupMaxSizeReached,
        OffsetMetadataTooLarge,
    )
}
_BY_CODE[ErrorCode.RECORD_LIST_TOO_LARGE] = RecordTooLarge


def error_of(code: int, message: str | None = None, *, about: str = "") -> KafkaError:
    """The exception for an answered code. `about` (a topic, a partition) stands before what the broker said."""
    try:
        known = ErrorCode(code)
    except ValueError:
        return KafkaError(f"{about}: the broker answered an unknown error code {code}" if about else None)
    text = message or _sentence(known)
    return _BY_CODE.get(known, KafkaError)(f"{about}: {text}" if about else text, code=known)


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
