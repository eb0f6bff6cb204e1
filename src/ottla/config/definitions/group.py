"""Properties of single groups, over the broker's `group.*` ones."""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
consumer.assignment.interval.ms  INT  1000  0..  MEDIUM  group  unused
    The least time between two assignments of the group.
consumer.heartbeat.interval.ms  INT  5000  1..  MEDIUM  group  used
    How often the members of the group are to send heartbeats, where it has the new protocol.
consumer.session.timeout.ms  INT  45000  1..  MEDIUM  group  used
    A member of the group that is silent for so long is taken out of it, where it has the new protocol.
share.assignment.interval.ms  INT  1000  0..  MEDIUM  group  unused
    The least time between two assignments of the share group.
share.auto.offset.reset  STRING  latest  offset-reset  MEDIUM  group  unused
    Where a share group without a position begins: earliest, latest, or by_duration: and how long back.
share.delivery.count.limit  INT  5  2..  MEDIUM  group  unused
    How often a record is delivered to the share group at the most.
share.heartbeat.interval.ms  INT  5000  1..  MEDIUM  group  unused
    How often the members of the share group are to send heartbeats.
share.isolation.level  STRING  read_uncommitted  {read_committed,read_uncommitted}  MEDIUM  group  unused
    Whether the share group reads records of transactions that have not ended.
share.partition.max.record.locks  INT  2000  100..  MEDIUM  group  unused
    How many records of one partition may be out with members of the share group.
share.record.lock.duration.ms  INT  30000  1000..  MEDIUM  group  unused
    How long a record stays with the member of the share group that got it.
share.renew.acknowledge.enable  BOOLEAN  true  -  MEDIUM  group  unused
    Whether members of the share group may ask for more time with a record.
share.session.timeout.ms  INT  45000  1..  MEDIUM  group  unused
    A member of the share group that is silent for so long is taken out of it.
streams.assignment.interval.ms  INT  1000  0..  MEDIUM  group  unused
    The least time between two assignments of the streams group.
streams.heartbeat.interval.ms  INT  5000  1..  MEDIUM  group  unused
    How often the members of the streams group are to send heartbeats.
streams.initial.rebalance.delay.ms  INT  3000  0..  MEDIUM  group  unused
    How long the first rebalance of an empty streams group waits for more members to come.
streams.num.standby.replicas  INT  0  0..  MEDIUM  group  unused
    How many standby copies each task of the streams group has.
streams.session.timeout.ms  INT  45000  1..  MEDIUM  group  unused
    A member of the streams group that is silent for so long is taken out of it.
"""
