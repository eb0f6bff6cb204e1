"""Properties of share groups and streams groups."""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
group.share.assignment.interval.ms  INT  1000  0..  MEDIUM  cluster-wide  unused
    The least time between two assignments of one share group.
group.share.assignors  LIST  simple  some  MEDIUM  read-only  unused
    How partitions are shared among a share group's members.
group.share.delivery.count.limit  INT  5  2..10  MEDIUM  read-only  unused
    How often a record is delivered to a share group before it is given up.
group.share.heartbeat.interval.ms  INT  5000  1..  MEDIUM  read-only  unused
    How often members of a share group are to send heartbeats.
group.share.initialize.retry.interval.ms  INT  30000  1..  LOW  read-only  unused  internal
    How long a failed set-up of a share partition waits before it is tried again.
group.share.max.assignment.interval.ms  INT  15000  0..  MEDIUM  read-only  unused
    The most that a share group may set for its assignment interval.
group.share.max.delivery.count.limit  INT  10  5..25  MEDIUM  read-only  unused
    The most that a share group may set for its delivery limit.
group.share.max.heartbeat.interval.ms  INT  15000  1..  MEDIUM  read-only  unused
    The most that a share group may set for its heartbeat interval.
group.share.max.partition.max.record.locks  INT  4000  2000..10000  MEDIUM  read-only  unused
    The most that a share group may set for its record locks.
group.share.max.record.lock.duration.ms  INT  60000  30000..3600000  MEDIUM  read-only  unused
    The most that a share group may set for the time of a lock.
group.share.max.session.timeout.ms  INT  60000  1..  MEDIUM  read-only  unused
    The most that a share group may set for its session time-out.
group.share.max.share.sessions  INT  2000  1..  MEDIUM  read-only  unused
    How many sessions of share consumers are kept.
group.share.max.size  INT  200  1..1000  MEDIUM  read-only  unused
    How many members a share group may have.
group.share.min.assignment.interval.ms  INT  0  0..  MEDIUM  read-only  unused
    The least that a share group may set for its assignment interval.
group.share.min.delivery.count.limit  INT  2  2..5  MEDIUM  read-only  unused
    The least that a share group may set for its delivery limit.
group.share.min.heartbeat.interval.ms  INT  5000  1..  MEDIUM  read-only  unused
    The least that a share group may set for its heartbeat interval.
group.share.min.partition.max.record.locks  INT  100  100..2000  MEDIUM  read-only  unused
    The least that a share group may set for its record locks.
group.share.min.record.lock.duration.ms  INT  15000  1000..30000  MEDIUM  read-only  unused
    The least that a share group may set for the time of a lock.
group.share.min.session.timeout.ms  INT  45000  1..  MEDIUM  read-only  unused
    The least that a share group may set for its session time-out.
group.share.partition.max.record.locks  INT  2000  100..10000  MEDIUM  read-only  unused
    How many records of a partition a share group may hold at a time.
group.share.persister.class.name  STRING  \
org.apache.kafka.server.share.persister.DefaultStatePersister  -  MEDIUM  read-only  unused  internal
    The Java class that stores share groups' state.
group.share.record.lock.duration.ms  INT  30000  1000..3600000  MEDIUM  read-only  unused
    How long a member of a share group may hold a record.
group.share.session.timeout.ms  INT  45000  1..  MEDIUM  read-only  unused
    A member of a share group that is silent for so long is taken out.
group.streams.assignment.interval.ms  INT  1000  0..  MEDIUM  cluster-wide  unused
    The least time between two assignments of one streams group.
group.streams.heartbeat.interval.ms  INT  5000  1..  MEDIUM  read-only  unused
    How often members of a streams group are to send heartbeats.
group.streams.initial.rebalance.delay.ms  INT  3000  0..  MEDIUM  read-only  unused
    How long the first assignment of an empty streams group waits for more members.
group.streams.max.assignment.interval.ms  INT  15000  0..  MEDIUM  read-only  unused
    The most that a streams group may set for its assignment interval.
group.streams.max.heartbeat.interval.ms  INT  15000  1..  MEDIUM  read-only  unused
    The most that a streams group may set for its heartbeat interval.
group.streams.max.session.timeout.ms  INT  60000  1..  MEDIUM  read-only  unused
    The most that a streams group may set for its session time-out.
group.streams.max.size  INT  2147483647  1..  MEDIUM  read-only  unused
    How many members a streams group may have.
group.streams.max.standby.replicas  INT  2  0..  MEDIUM  read-only  unused
    The most that a streams group may set for its standby replicas.
group.streams.min.assignment.interval.ms  INT  0  0..  MEDIUM  read-only  unused
    The least that a streams group may set for its assignment interval.
group.streams.min.heartbeat.interval.ms  INT  5000  1..  MEDIUM  read-only  unused
    The least that a streams group may set for its heartbeat interval.
group.streams.min.session.timeout.ms  INT  45000  1..  MEDIUM  read-only  unused
    The least that a streams group may set for its session time-out.
group.streams.num.standby.replicas  INT  0  0..  MEDIUM  read-only  unused
    How many standby replicas each task of a streams group gets.
group.streams.session.timeout.ms  INT  45000  1..  MEDIUM  read-only  unused
    A member of a streams group that is silent for so long is taken out.
share.coordinator.append.linger.ms  INT  -1  -1..  MEDIUM  read-only  unused
    How long the share coordinator gathers writes before it appends them.
share.coordinator.cached.buffer.max.bytes  INT  1048588  524288..  MEDIUM  cluster-wide  unused
    The largest write buffer that the share coordinator keeps for reuse.
share.coordinator.cold.partition.snapshot.interval.ms  INT  300000  1..  LOW  read-only  unused  internal
    How often a share partition without traffic gets a snapshot.
share.coordinator.load.buffer.size  INT  5242880  1..  HIGH  read-only  unused
    How much share state is read at a time when a coordinator loads it.
share.coordinator.snapshot.update.records.per.snapshot  INT  500  0..500  MEDIUM  read-only  unused
    After how many updates share state gets a snapshot.
share.coordinator.state.topic.compression.codec  INT  0  codec-number  HIGH  read-only  unused
    How the share state topic is compressed.
share.coordinator.state.topic.min.isr  SHORT  2  1..  HIGH  read-only  unused
    How many replicas of the share state topic must be in sync for a write.
share.coordinator.state.topic.num.partitions  INT  50  1..  HIGH  read-only  unused
    How many partitions the share state topic gets.
share.coordinator.state.topic.prune.interval.ms  INT  300000  1..  LOW  read-only  unused  internal
    How often the share state topic is pruned.
share.coordinator.state.topic.replication.factor  SHORT  3  1..  HIGH  read-only  unused
    How many copies the share state topic gets.
share.coordinator.state.topic.segment.bytes  INT  104857600  1..  HIGH  read-only  unused
    Segment size of the share state topic.
share.coordinator.threads  INT  1  1..  MEDIUM  read-only  unused
    How many of Kafka's threads run share coordinators.
share.coordinator.write.timeout.ms  INT  5000  1..  HIGH  read-only  unused
    How long a write of share state waits for replicas.
share.fetch.purgatory.purge.interval.requests  INT  1000  -  MEDIUM  read-only  unused
    After how many requests Kafka purges its list of waiting share fetches.
"""
