"""What the sink raises. Spark shows the text in the driver, whatever process it comes from: it says what to change."""

from __future__ import annotations

from ottla.client.errors import (
    BufferExhausted,
    DeliveryTimedOut,
    InvalidTopic,
    KafkaError,
    NoBrokerReached,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    RecordTooLarge,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from ottla.spark.options import BROKERS_AWAY


class SinkError(Exception):
    """The root."""


class BadSinkColumns(SinkError, ValueError):
    """A frame that has not the columns of records."""


class RowsNotWritten(SinkError):
    """Rows that no broker has taken, or that can be no records: the cause is chained."""


class QueryNameTaken(SinkError):
    """The ledger has another query under this name."""


class LedgerFault(SinkError):
    """The ledger's topic is not what it must be, or holds what this version does not know."""


class BatchNotCommitted(SinkError):
    """A micro-batch of a query that writes exactly once: nothing of it is seen, or the ledger says what."""


class DriverFenced(BatchNotCommitted):
    """A younger driver of the same query has begun."""


class RowsMoved(BatchNotCommitted):
    """A task that is committed would have other rows when its micro-batch is planned again."""


def what_to_change(error: KafkaError) -> str:
    """The option or the topic's setting that a writer's error is about, or nothing."""
    if isinstance(error, RecordTooLarge):
        if "max.request.size" in str(error):
            return ": raise the option kafka.max.request.size, and with it the topic's max.message.bytes"
        if "buffer.memory" in str(error):
            return ": raise the option kafka.buffer.memory"
        return ": raise the topic's max.message.bytes"
    if isinstance(error, UnknownTopicOrPartition):
        return ": create it, or name another in the option topic or the column topic"
    if isinstance(error, NoBrokerReached):
        return f": {BROKERS_AWAY}"
    if isinstance(error, InvalidTopic):
        return ": no topic can have this name; it comes from the option topic or the column topic"
    if isinstance(error, NotEnoughReplicas | NotEnoughReplicasAfterAppend):
        return ": start brokers, or lower the topic's min.insync.replicas"
    if isinstance(error, TopicAuthorizationFailed):
        return ": this user may not write there"
    if isinstance(error, DeliveryTimedOut):
        return "; the option kafka.delivery.timeout.ms says how long brokers may take"
    if isinstance(error, BufferExhausted):
        return "; the option kafka.max.block.ms says how long to wait"
    return ""
