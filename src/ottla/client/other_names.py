"""Names of settings that people bring along: from Kafka's first years, from librdkafka, kafka-python and aiokafka.

They are refused with the name that the setting has here, which is that of Kafka's Java clients: a mere refusal would
send people to a search engine, and a silent omission to a debugger. Loaded when there is such a name.
"""

from __future__ import annotations

from typing import Final

#: By the name with dots: what to set instead.
RENAMED: Final[dict[str, str]] = {
    # Where brokers are.
    "metadata.broker.list": "bootstrap.servers",
    "broker.list": "bootstrap.servers",
    "brokers": "bootstrap.servers",
    "bootstrap.server": "bootstrap.servers",
    "zookeeper.connect": "bootstrap.servers: clients talk to brokers",
    "zk.connect": "bootstrap.servers: clients talk to brokers",
    # Producers.
    "request.required.acks": "acks",
    "required.acks": "acks",
    "message.send.max.retries": "retries",
    "partition.class": "partitioner: a name or a callable",
    "partitioner.class": "partitioner: a name or a callable",
    "serializer.class": "value.serializer",
    "key.serializer.class": "key.serializer",
    "compression.codec": "compression.type",
    "compressed.topics": "compression.type",
    "compression": "compression.type",
    "compression.level": "compression.gzip.level, compression.lz4.level or compression.zstd.level",
    "queue.buffering.max.ms": "linger.ms",
    "queue.time": "linger.ms",
    "queue.buffering.max.messages": "buffer.memory, in bytes",
    "queue.buffering.max.kbytes": "buffer.memory, in bytes",
    "queue.size": "buffer.memory, in bytes",
    "queue.enqueue.timeout.ms": "max.block.ms",
    "block.on.buffer.full": "max.block.ms",
    "metadata.fetch.timeout.ms": "max.block.ms",
    "batch.num.messages": "batch.size, in bytes",
    "max.batch.size": "batch.size",
    "message.max.bytes": "max.request.size",
    "max.message.size": "max.request.size",
    "message.timeout.ms": "delivery.timeout.ms",
    "delivery.report.only.error": "on_delivery of send, whose call-back asks for exception()",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "idempotence": "enable.idempotence",
    "sticky.partitioning.linger.ms": "batch.size: a partition has its turn for a batch's worth of bytes",
    "producer.type": "nothing: send does not wait for the acknowledgement, send_and_wait does",
    # Consumers.
    "groupid": "group.id",
    "group.name": "group.id",
    "autocommit.enable": "enable.auto.commit",
    "auto.commit.enable": "enable.auto.commit",
    "autocommit.interval.ms": "auto.commit.interval.ms",
    "auto.commit.interval": "auto.commit.interval.ms",
    "autooffset.reset": "auto.offset.reset",
    "auto.offset.commit": "enable.auto.commit",
    "enable.auto.offset.store": "enable.auto.commit=False, and commit what you have done",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "fetch.size": "max.partition.fetch.bytes",
    "queued.min.messages": "fetch.max.bytes, which bounds what is read ahead",
    "queued.max.messages.kbytes": "fetch.max.bytes, in bytes, which bounds what is read ahead",
    "queued.max.message.chunks": "fetch.max.bytes, which bounds what is read ahead",
    "consumer.timeout.ms": "timeout_ms of poll",
    "rebalance.timeout.ms": "max.poll.interval.ms",
    "rebalance.backoff.ms": "retry.backoff.ms",
    "refresh.leader.backoff.ms": "retry.backoff.ms",
    "fetch.error.backoff.ms": "retry.backoff.ms",
    "zookeeper.session.timeout.ms": "session.timeout.ms",
    "enable.partition.eof": "end_offsets, and compare with position",
    "consumer.id": "group.instance.id, or client.id",
    "offsets.storage": "nothing: offsets are kept by the brokers",
    "dual.commit.enabled": "nothing: offsets are kept by the brokers",
    "offset.store.method": "nothing: offsets are kept by the brokers",
    # All clients.
    "socket.timeout.ms": "request.timeout.ms",
    "timeout.ms": "request.timeout.ms",
    "topic.metadata.refresh.interval.ms": "metadata.max.age.ms",
    "metadata.refresh.interval.ms": "metadata.max.age.ms",
    "topic.metadata.propagation.max.ms": "max.block.ms",
    "reconnect.backoff.jitter.ms": "reconnect.backoff.ms, which is jittered",
    "socket.connection.timeout.ms": "socket.connection.setup.timeout.ms",
    "default.topic.config": "the same settings beside the others",
    "api.version": "nothing: versions are agreed on with each broker",
    "api.version.request": "nothing: versions are agreed on with each broker",
    "api.version.fallback.ms": "nothing: versions are agreed on with each broker",
    "broker.version.fallback": "nothing: versions are agreed on with each broker",
}

#: What this client does not have, by how the names begin.
NOT_THERE: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    (("ssl.", "sasl.", "security.providers"), "encryption and authentication are not there yet"),
    (("group.remote.assignor",), "this client's groups assign by themselves (group.protocol=classic)"),
    (("share.",), "share groups are not there yet"),
    (("transaction.two.phase",), "detach() and finish() hand a transaction over to another process"),
    (
        (
            *("interceptor.classes", "metric.reporters", "metrics.", "auto.include.jmx", "enable.metrics.push"),
            *("receive.buffer.bytes", "send.buffer.bytes", "client.dns.lookup", "config.providers"),
            *("partitioner.adaptive", "partitioner.availability", "enable.explicit"),
            *("metadata.recovery.", "socket.connection.setup.timeout.max.ms", "bootstrap.controllers"),
            # librdkafka's and its bindings'
            *("socket.keepalive", "socket.nagle", "socket.send", "socket.receive", "socket.max", "socket.blocking"),
            *("broker.address.", "topic.metadata.refresh.", "statistics.interval.ms", "debug"),
            *("log.level", "log.queue", "log.thread", "log.connection", "error.cb", "stats.cb", "throttle.cb"),
            *("dr.cb", "on.commit", "rebalance.cb", "socket.cb", "connect.cb", "oauth.cb", "logger", "opaque"),
            *("enable.random.seed", "enable.gapless.guarantee", "topic.blacklist", "allow.create.topics"),
            *("queue.buffering.backpressure", "go.", "consume.callback", "offset.store.", "queuing.strategy"),
            *("message.copy.max.bytes", "plugin.", "internal.termination", "coordinator.query"),
            # of Kafka's first years, and other Python clients'
            *("zookeeper.", "zk.", "rebalance.", "num.consumer.fetchers", "mirror.", "selector", "sock.chunk"),
            *("bootstrap.topics.filter", "loop", "kafka.client", "state.change.callback"),
        ),
        "this client has no such thing",
    ),
)

#: Values of `auto.offset.reset` in other clients and years.
OFFSET_RESETS: Final = {
    "smallest": "earliest",
    "beginning": "earliest",
    "start": "earliest",
    "largest": "latest",
    "end": "latest",
    "newest": "latest",
    "oldest": "earliest",
    "error": "none",
}

#: Partitioners of librdkafka and Java; those without a counterpart hash otherwise than any of ours.
PARTITIONERS: Final = {
    "random": "sticky",
    "default": "murmur2",
    "defaultpartitioner": "murmur2",
    "murmur2_random": "murmur2",
    "roundrobin": "round_robin",
    "roundrobinpartitioner": "round_robin",
    "uniformstickypartitioner": "sticky",
    "stickypartitioner": "sticky",
}


def of_another_client(name: str) -> str | None:
    """What to say of a name, with dots, that this client does not have; None where nobody knows it."""
    instead = RENAMED.get(name)
    if instead is not None:
        what, _, why = instead.partition("nothing: ")
        return f"is not needed here: {why}" if why and not what else f"is called otherwise here: set {instead}"
    for prefixes, reason in NOT_THERE:
        if name.startswith(prefixes):
            return f"cannot be set: {reason}"
    return None
