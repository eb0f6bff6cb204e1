"""groups"""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
group.consumer.assignment.interval.ms  INT  1000  0..  MEDIUM  cluster-wide  unused
    DOC
group.consumer.assignors  LIST  uniform,range  some  MEDIUM  read-only  used
    DOC
group.consumer.heartbeat.interval.ms  INT  5000  1..  MEDIUM  read-only  used
    DOC
group.consumer.max.assignment.interval.ms  INT  15000  0..  MEDIUM  read-only  unused
    DOC
group.consumer.max.heartbeat.interval.ms  INT  15000  1..  MEDIUM  read-only  used
    DOC
group.consumer.max.session.timeout.ms  INT  60000  1..  MEDIUM  read-only  used
    DOC
group.consumer.max.size  INT  2147483647  1..  MEDIUM  read-only  used
    DOC
group.consumer.migration.policy  STRING  bidirectional  migration-policy  MEDIUM  read-only  used
    DOC
group.consumer.min.assignment.interval.ms  INT  0  0..  MEDIUM  read-only  unused
    DOC
group.consumer.min.heartbeat.interval.ms  INT  5000  1..  MEDIUM  read-only  used
    DOC
group.consumer.min.session.timeout.ms  INT  45000  1..  MEDIUM  read-only  used
    DOC
group.consumer.regex.refresh.interval.ms  INT  600000  10000..  MEDIUM  read-only  unused  internal
    DOC
group.consumer.session.timeout.ms  INT  45000  1..  MEDIUM  read-only  used
    DOC
group.coordinator.append.linger.ms  INT  -1  -1..  MEDIUM  read-only  unused
    DOC
group.coordinator.background.threads  INT  2  1..  HIGH  read-only  unused
    DOC
group.coordinator.cached.buffer.max.bytes  INT  1048588  524288..  MEDIUM  cluster-wide  unused
    DOC
group.coordinator.rebalance.protocols  LIST  \
classic,consumer,streams  {consumer,classic,share,streams}  MEDIUM  read-only  used
    DOC
group.coordinator.threads  INT  4  1..  HIGH  read-only  unused
    DOC
group.initial.rebalance.delay.ms  INT  3000  -  MEDIUM  read-only  used
    DOC
group.max.session.timeout.ms  INT  1800000  -  MEDIUM  read-only  used
    DOC
group.max.size  INT  2147483647  1..  MEDIUM  read-only  used
    DOC
group.min.session.timeout.ms  INT  6000  -  MEDIUM  read-only  used
    DOC
offset.metadata.max.bytes  INT  4096  -  HIGH  read-only  used
    DOC
offsets.commit.timeout.ms  INT  5000  1..  HIGH  read-only  used
    DOC
offsets.load.buffer.size  INT  5242880  1..  HIGH  read-only  used
    DOC
offsets.retention.check.interval.ms  LONG  600000  1..  HIGH  read-only  used
    DOC
offsets.retention.minutes  INT  10080  1..  HIGH  read-only  used
    DOC
offsets.topic.compression.codec  INT  0  codec-number  HIGH  read-only  used
    DOC
offsets.topic.num.partitions  INT  50  1..  HIGH  read-only  used
    DOC
offsets.topic.replication.factor  SHORT  3  1..  HIGH  read-only  used
    DOC
offsets.topic.segment.bytes  INT  104857600  1..  HIGH  read-only  used
    DOC
"""
