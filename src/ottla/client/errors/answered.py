"""What brokers answer: the class of its code where callers may ask for it by name, and BrokerError otherwise."""

from __future__ import annotations

from typing import Final

from ottla.client.errors.own import KafkaError, UnsupportedVersion, sentence
from ottla.client.errors.transactional import ProducerFenced, TransactionAbortable
from ottla.model import ErrorCode, TopicPartition


class BrokerError(KafkaError):
    """A broker refused; `code` says why."""


class OffsetOutOfRange(BrokerError):
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


class UnknownTopicOrPartition(BrokerError):
    default_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class UnknownTopicId(BrokerError):
    default_code = ErrorCode.UNKNOWN_TOPIC_ID


class LeaderNotAvailable(BrokerError):
    default_code = ErrorCode.LEADER_NOT_AVAILABLE


class NotLeaderOrFollower(BrokerError):
    default_code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class RecordTooLarge(BrokerError):
    default_code = ErrorCode.MESSAGE_TOO_LARGE


class InvalidTopic(BrokerError):
    default_code = ErrorCode.INVALID_TOPIC_EXCEPTION


class NotEnoughReplicas(BrokerError):
    default_code = ErrorCode.NOT_ENOUGH_REPLICAS


class TopicAuthorizationFailed(BrokerError):
    default_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED


class ClusterAuthorizationFailed(BrokerError):
    default_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class InvalidTimestamp(BrokerError):
    default_code = ErrorCode.INVALID_TIMESTAMP


class TopicAlreadyExists(BrokerError):
    default_code = ErrorCode.TOPIC_ALREADY_EXISTS


class InvalidPartitions(BrokerError):
    default_code = ErrorCode.INVALID_PARTITIONS


class InvalidReplicationFactor(BrokerError):
    default_code = ErrorCode.INVALID_REPLICATION_FACTOR


class InvalidReplicaAssignment(BrokerError):
    default_code = ErrorCode.INVALID_REPLICA_ASSIGNMENT


class InvalidConfig(BrokerError):
    default_code = ErrorCode.INVALID_CONFIG


class InvalidRequest(BrokerError):
    default_code = ErrorCode.INVALID_REQUEST


class InvalidRecord(BrokerError):
    default_code = ErrorCode.INVALID_RECORD


class PolicyViolation(BrokerError):
    default_code = ErrorCode.POLICY_VIOLATION


class TopicDeletionDisabled(BrokerError):
    default_code = ErrorCode.TOPIC_DELETION_DISABLED


class StorageError(BrokerError):
    default_code = ErrorCode.KAFKA_STORAGE_ERROR


class LogDirNotFound(BrokerError):
    default_code = ErrorCode.LOG_DIR_NOT_FOUND


class OutOfOrderSequence(BrokerError):
    default_code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


class RebalanceInProgress(BrokerError):
    """The group rebalances: poll, and do then what is still to be done."""

    default_code = ErrorCode.REBALANCE_IN_PROGRESS


class IllegalGeneration(BrokerError):
    default_code = ErrorCode.ILLEGAL_GENERATION


class UnknownMember(BrokerError):
    default_code = ErrorCode.UNKNOWN_MEMBER_ID


class FencedInstanceId(BrokerError):
    """Another consumer has joined with the same `group.instance.id`: this one is out for good."""

    default_code = ErrorCode.FENCED_INSTANCE_ID


class InconsistentGroupProtocol(BrokerError):
    default_code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL


class InvalidGroupId(BrokerError):
    default_code = ErrorCode.INVALID_GROUP_ID


class InvalidSessionTimeout(BrokerError):
    default_code = ErrorCode.INVALID_SESSION_TIMEOUT


class GroupAuthorizationFailed(BrokerError):
    default_code = ErrorCode.GROUP_AUTHORIZATION_FAILED


class GroupMaxSizeReached(BrokerError):
    default_code = ErrorCode.GROUP_MAX_SIZE_REACHED


class OffsetMetadataTooLarge(BrokerError):
    default_code = ErrorCode.OFFSET_METADATA_TOO_LARGE


class CoordinatorLoadInProgress(BrokerError):
    default_code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class CoordinatorNotAvailable(BrokerError):
    default_code = ErrorCode.COORDINATOR_NOT_AVAILABLE


class NotCoordinator(BrokerError):
    default_code = ErrorCode.NOT_COORDINATOR


class NotController(BrokerError):
    default_code = ErrorCode.NOT_CONTROLLER


class NotEnoughReplicasAfterAppend(BrokerError):
    default_code = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


class InvalidRequiredAcks(BrokerError):
    default_code = ErrorCode.INVALID_REQUIRED_ACKS


class InvalidCommitOffsetSize(BrokerError):
    default_code = ErrorCode.INVALID_COMMIT_OFFSET_SIZE


class ReplicaNotAvailable(BrokerError):
    default_code = ErrorCode.REPLICA_NOT_AVAILABLE


class InvalidProducerEpoch(BrokerError):
    default_code = ErrorCode.INVALID_PRODUCER_EPOCH


class UnknownProducerId(BrokerError):
    default_code = ErrorCode.UNKNOWN_PRODUCER_ID


class UnsupportedCompressionType(BrokerError):
    default_code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


class UnsupportedForMessageFormat(BrokerError):
    default_code = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


class SecurityDisabled(BrokerError):
    default_code = ErrorCode.SECURITY_DISABLED


class ReassignmentInProgress(BrokerError):
    default_code = ErrorCode.REASSIGNMENT_IN_PROGRESS


class ThrottlingQuotaExceeded(BrokerError):
    default_code = ErrorCode.THROTTLING_QUOTA_EXCEEDED


class NonEmptyGroup(BrokerError):
    default_code = ErrorCode.NON_EMPTY_GROUP


class GroupIdNotFound(BrokerError):
    default_code = ErrorCode.GROUP_ID_NOT_FOUND


class GroupSubscribedToTopic(BrokerError):
    default_code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


class FencedLeaderEpoch(BrokerError):
    default_code = ErrorCode.FENCED_LEADER_EPOCH


class UnknownLeaderEpoch(BrokerError):
    default_code = ErrorCode.UNKNOWN_LEADER_EPOCH


class OffsetNotAvailable(BrokerError):
    default_code = ErrorCode.OFFSET_NOT_AVAILABLE


class UnstableOffsetCommit(BrokerError):
    default_code = ErrorCode.UNSTABLE_OFFSET_COMMIT


class MemberIdRequired(BrokerError):
    default_code = ErrorCode.MEMBER_ID_REQUIRED


class FencedMemberEpoch(BrokerError):
    default_code = ErrorCode.FENCED_MEMBER_EPOCH


class StaleMemberEpoch(BrokerError):
    default_code = ErrorCode.STALE_MEMBER_EPOCH


class UnreleasedInstanceId(BrokerError):
    default_code = ErrorCode.UNRELEASED_INSTANCE_ID


class UnsupportedAssignor(BrokerError):
    default_code = ErrorCode.UNSUPPORTED_ASSIGNOR


class InvalidRegularExpression(BrokerError):
    default_code = ErrorCode.INVALID_REGULAR_EXPRESSION


class InvalidPrincipalType(BrokerError):
    default_code = ErrorCode.INVALID_PRINCIPAL_TYPE


class UnsupportedSaslMechanism(BrokerError):
    default_code = ErrorCode.UNSUPPORTED_SASL_MECHANISM


class IllegalSaslState(BrokerError):
    default_code = ErrorCode.ILLEGAL_SASL_STATE


class SaslAuthenticationFailed(BrokerError):
    default_code = ErrorCode.SASL_AUTHENTICATION_FAILED


class ConcurrentTransactions(BrokerError):
    default_code = ErrorCode.CONCURRENT_TRANSACTIONS


class InvalidProducerIdMapping(BrokerError):
    default_code = ErrorCode.INVALID_PRODUCER_ID_MAPPING


class InvalidTransactionTimeout(BrokerError):
    default_code = ErrorCode.INVALID_TRANSACTION_TIMEOUT


class InvalidTxnState(BrokerError):
    """The transaction is not in a state in which this can be: it has ended, or the other way."""

    default_code = ErrorCode.INVALID_TXN_STATE


class TransactionalIdAuthorizationFailed(BrokerError):
    default_code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


class TransactionalIdNotFound(BrokerError):
    default_code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


class TransactionCoordinatorFenced(BrokerError):
    default_code = ErrorCode.TRANSACTION_COORDINATOR_FENCED


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
        CoordinatorLoadInProgress,
        CoordinatorNotAvailable,
        NotCoordinator,
        NotController,
        NotEnoughReplicasAfterAppend,
        InvalidRequiredAcks,
        InvalidCommitOffsetSize,
        ReplicaNotAvailable,
        InvalidProducerEpoch,
        UnknownProducerId,
        UnsupportedCompressionType,
        UnsupportedForMessageFormat,
        SecurityDisabled,
        ReassignmentInProgress,
        ThrottlingQuotaExceeded,
        NonEmptyGroup,
        GroupIdNotFound,
        GroupSubscribedToTopic,
        FencedLeaderEpoch,
        UnknownLeaderEpoch,
        OffsetNotAvailable,
        UnstableOffsetCommit,
        MemberIdRequired,
        FencedMemberEpoch,
        StaleMemberEpoch,
        UnreleasedInstanceId,
        UnsupportedAssignor,
        InvalidRegularExpression,
        InvalidPrincipalType,
        UnsupportedSaslMechanism,
        IllegalSaslState,
        SaslAuthenticationFailed,
        ConcurrentTransactions,
        InvalidProducerIdMapping,
        InvalidTransactionTimeout,
        InvalidTxnState,
        TransactionalIdAuthorizationFailed,
        TransactionalIdNotFound,
        TransactionCoordinatorFenced,
        ProducerFenced,
        TransactionAbortable,
    )
}
_BY_CODE[ErrorCode.RECORD_LIST_TOO_LARGE] = RecordTooLarge


def error_of(code: int, message: str | None = None, *, about: str = "") -> KafkaError:
    """The exception for an answered code. `about` (a topic, a partition) stands before what the broker said."""
    try:
        known = ErrorCode(code)
    except ValueError:
        return BrokerError(f"{about}: " * bool(about) + f"the broker answered an unknown error code {code}")
    text = message or sentence(known)
    return _BY_CODE.get(known, BrokerError)(f"{about}: {text}" if about else text, code=known)
