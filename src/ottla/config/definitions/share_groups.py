"""share_groups"""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
group.share.assignment.interval.ms  INT  1000  0..  MEDIUM  cluster-wide  unused
    DOC
group.share.assignors  LIST  simple  some  MEDIUM  read-only  unused
    DOC
group.share.delivery.count.limit  INT  5  2..10  MEDIUM  read-only  unused
    DOC
group.share.heartbeat.interval.ms  INT  5000  1..  MEDIUM  read-only  unused
    DOC
group.share.initialize.retry.interval.ms  INT  30000  1..  LOW  read-only  unused  internal
    DOC
group.share.max.assignment.interval.ms  INT  15000  0..  MEDIUM  read-only  unused
    DOC
group.share.max.delivery.count.limit  INT  10  5..25  MEDIUM  read-only  unused
    DOC
group.share.max.heartbeat.interval.ms  INT  15000  1..  MEDIUM  read-only  unused
    DOC
group.share.max.partition.max.record.locks  INT  4000  2000..10000  MEDIUM  read-only  unused
    DOC
group.share.max.record.lock.duration.ms  INT  60000  30000..3600000  MEDIUM  read-only  unused
    DOC
group.share.max.session.timeout.ms  INT  60000  1..  MEDIUM  read-only  unused
    DOC
group.share.max.share.sessions  INT  2000  1..  MEDIUM  read-only  unused
    DOC
group.share.max.size  INT  200  1..1000  MEDIUM  read-only  unused
    DOC
group.share.min.assignment.interval.ms  INT  0  0..  MEDIUM  read-only  unused
    DOC
group.share.min.delivery.count.limit  INT  2  2..5  MEDIUM  read-only  unused
    DOC
group.share.min.heartbeat.interval.ms  INT  5000  1..  MEDIUM  read-only  unused
    DOC
group.share.min.partition.max.record.locks  INT  100  100..2000  MEDIUM  read-only  unused
    DOC
group.share.min.record.lock.duration.ms  INT  15000  1000..30000  MEDIUM  read-only  unused
    DOC
group.share.min.session.timeout.ms  INT  45000  1..  MEDIUM  read-only  unused
    DOC
group.share.partition.max.record.locks  INT  2000  100..10000  MEDIUM  read-only  unused
    DOC
group.share.persister.class.name  STRING  \
org.apache.kafka.server.share.persister.DefaultStatePersister  -  MEDIUM  read-only  unused  internal
    DOC
group.share.record.lock.duration.ms  INT  30000  1000..3600000  MEDIUM  read-only  unused
    DOC
group.share.session.timeout.ms  INT  45000  1..  MEDIUM  read-only  unused
    DOC
group.streams.assignment.interval.ms  INT  1000  0..  MEDIUM  cluster-wide  unused
    DOC
group.streams.heartbeat.interval.ms  INT  5000  1..  MEDIUM  read-only  unused
    DOC
group.streams.initial.rebalance.delay.ms  INT  3000  0..  MEDIUM  read-only  unused
    DOC
group.streams.max.assignment.interval.ms  INT  15000  0..  MEDIUM  read-only  unused
    DOC
group.streams.max.heartbeat.interval.ms  INT  15000  1..  MEDIUM  read-only  unused
    DOC
group.streams.max.session.timeout.ms  INT  60000  1..  MEDIUM  read-only  unused
    DOC
group.streams.max.size  INT  2147483647  1..  MEDIUM  read-only  unused
    DOC
group.streams.max.standby.replicas  INT  2  0..  MEDIUM  read-only  unused
    DOC
group.streams.min.assignment.interval.ms  INT  0  0..  MEDIUM  read-only  unused
    DOC
group.streams.min.heartbeat.interval.ms  INT  5000  1..  MEDIUM  read-only  unused
    DOC
group.streams.min.session.timeout.ms  INT  45000  1..  MEDIUM  read-only  unused
    DOC
group.streams.num.standby.replicas  INT  0  0..  MEDIUM  read-only  unused
    DOC
group.streams.session.timeout.ms  INT  45000  1..  MEDIUM  read-only  unused
    DOC
share.coordinator.append.linger.ms  INT  -1  -1..  MEDIUM  read-only  unused
    DOC
share.coordinator.cached.buffer.max.bytes  INT  1048588  524288..  MEDIUM  cluster-wide  unused
    DOC
share.coordinator.cold.partition.snapshot.interval.ms  INT  300000  1..  LOW  read-only  unused  internal
    DOC
share.coordinator.load.buffer.size  INT  5242880  1..  HIGH  read-only  unused
    DOC
share.coordinator.snapshot.update.records.per.snapshot  INT  500  0..500  MEDIUM  read-only  unused
    DOC
share.coordinator.state.topic.compression.codec  INT  0  codec-number  HIGH  read-only  unused
    DOC
share.coordinator.state.topic.min.isr  SHORT  2  1..  HIGH  read-only  unused
    DOC
share.coordinator.state.topic.num.partitions  INT  50  1..  HIGH  read-only  unused
    DOC
share.coordinator.state.topic.prune.interval.ms  INT  300000  1..  LOW  read-only  unused  internal
    DOC
share.coordinator.state.topic.replication.factor  SHORT  3  1..  HIGH  read-only  unused
    DOC
share.coordinator.state.topic.segment.bytes  INT  104857600  1..  HIGH  read-only  unused
    DOC
share.coordinator.threads  INT  1  1..  MEDIUM  read-only  unused
    DOC
share.coordinator.write.timeout.ms  INT  5000  1..  HIGH  read-only  unused
    DOC
share.fetch.purgatory.purge.interval.requests  INT  1000  -  MEDIUM  read-only  unused
    DOC
"""
