"""Properties of consumer groups and of the topic that holds their offsets."""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
group.consumer.assignment.interval.ms  INT  1000  0..  MEDIUM  cluster-wide  unused
    The least time between two assignments of one consumer group.
group.consumer.assignors  LIST  uniform,range  some  MEDIUM  read-only  used
    The server's own ways to share partitions among a group's members; the first is the default.
group.consumer.heartbeat.interval.ms  INT  5000  1..  MEDIUM  read-only  used
    How often members of a consumer group of the new protocol are to send heartbeats.
group.consumer.max.assignment.interval.ms  INT  15000  0..  MEDIUM  read-only  unused
    The most that a group may set for its assignment interval.
group.consumer.max.heartbeat.interval.ms  INT  15000  1..  MEDIUM  read-only  used
    The most that a group may set for its heartbeat interval.
group.consumer.max.session.timeout.ms  INT  60000  1..  MEDIUM  read-only  used
    The most that a group may set for its session time-out.
group.consumer.max.size  INT  2147483647  1..  MEDIUM  read-only  used
    How many members a consumer group of the new protocol may have.
group.consumer.migration.policy  STRING  bidirectional  migration-policy  MEDIUM  read-only  used
    Which way a group may go between the classic and the new protocol while it has members.
group.consumer.min.assignment.interval.ms  INT  0  0..  MEDIUM  read-only  unused
    The least that a group may set for its assignment interval.
group.consumer.min.heartbeat.interval.ms  INT  5000  1..  MEDIUM  read-only  used
    The least that a group may set for its heartbeat interval.
group.consumer.min.session.timeout.ms  INT  45000  1..  MEDIUM  read-only  used
    The least that a group may set for its session time-out.
group.consumer.regex.refresh.interval.ms  INT  600000  10000..  MEDIUM  read-only  unused  internal
    How often the topics that match a group's regular expression are looked up again.
group.consumer.session.timeout.ms  INT  45000  1..  MEDIUM  read-only  used
    A member of the new protocol that is silent for so long is taken out of its group.
group.coordinator.append.linger.ms  INT  -1  -1..  MEDIUM  read-only  unused
    How long the coordinator gathers writes before it appends them; -1 lets it decide.
group.coordinator.background.threads  INT  2  1..  HIGH  read-only  unused
    How many of Kafka's threads do the coordinator's slow work.
group.coordinator.cached.buffer.max.bytes  INT  1048588  524288..  MEDIUM  cluster-wide  unused
    The largest write buffer that the coordinator keeps for reuse.
group.coordinator.rebalance.protocols  LIST  \
classic,consumer,streams  some{consumer,classic,share,streams}  MEDIUM  read-only  used
    The group protocols that are served.
group.coordinator.threads  INT  4  1..  HIGH  read-only  unused
    How many of Kafka's threads run group coordinators.
group.initial.rebalance.delay.ms  INT  3000  -  MEDIUM  read-only  used
    How long the first rebalance of an empty group waits for more members to come.
group.max.session.timeout.ms  INT  1800000  -  MEDIUM  read-only  used
    The longest session time-out that a member may ask for.
group.max.size  INT  2147483647  1..  MEDIUM  read-only  used
    How many members a classic group may have.
group.min.session.timeout.ms  INT  6000  -  MEDIUM  read-only  used
    The shortest session time-out that a member may ask for.
offset.metadata.max.bytes  INT  4096  -  HIGH  read-only  used
    The longest text that a client may store with an offset.
offsets.commit.timeout.ms  INT  5000  1..  HIGH  read-only  used
    How long an offset commit waits for the offsets topic's replicas.
offsets.load.buffer.size  INT  5242880  1..  HIGH  read-only  used
    How much of the offsets topic is read at a time when a coordinator loads it.
offsets.retention.check.interval.ms  LONG  600000  1..  HIGH  read-only  used
    How often expired offsets are looked for.
offsets.retention.minutes  INT  10080  1..  HIGH  read-only  used
    Offsets are dropped when their group has been empty, or their topic unused, for so long.
offsets.topic.compression.codec  INT  0  codec-number  HIGH  read-only  used
    How the offsets topic is compressed: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
offsets.topic.num.partitions  INT  50  1..  HIGH  read-only  used
    How many partitions the offsets topic gets; do not change it later.
offsets.topic.replication.factor  SHORT  3  1..  HIGH  read-only  used
    How many copies the offsets topic gets; it is not created while there are fewer brokers.
offsets.topic.segment.bytes  INT  104857600  1..  HIGH  read-only  used
    Segment size of the offsets topic, small so that compaction and loading stay quick.
"""
