"""Properties of followers, in-sync replicas, throttles and leaders' places."""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
alter.log.dirs.replication.quota.window.num  INT  11  1..  LOW  read-only  used
    How many samples are kept for the throttle of moves between directories.
alter.log.dirs.replication.quota.window.size.seconds  INT  1  1..  LOW  read-only  used
    How long one sample for the throttle of moves between directories lasts.
auto.leader.rebalance.enable  BOOLEAN  true  -  HIGH  read-only  used
    Whether leadership goes back to the preferred replicas by itself.
controlled.shutdown.enable  BOOLEAN  true  -  MEDIUM  read-only  used
    Whether a broker hands over its leaderships before it stops.
controller.socket.timeout.ms  INT  30000  -  MEDIUM  read-only  used
    How long a controller waits for a broker to do what it was announced.
default.replication.factor  INT  1  -  MEDIUM  read-only  used
    How many copies a topic gets when its creation does not say.
follower.replication.throttled.rate  LONG  9223372036854775807  0..  MEDIUM  cluster-wide  used
    Bytes a second that throttled replicas may fetch on this broker.
leader.imbalance.check.interval.seconds  LONG  300  1..  HIGH  read-only  used
    How often it is checked whether leaderships are where they should be.
leader.replication.throttled.rate  LONG  9223372036854775807  0..  MEDIUM  cluster-wide  used
    Bytes a second that throttled replicas may read from this broker.
num.replica.alter.log.dirs.threads  INT  -  -  HIGH  read-only  unused
    How many of Kafka's threads move replicas between directories.
num.replica.fetchers  INT  1  1..  HIGH  cluster-wide  used
    How many connections a follower fetches through, for each broker it follows.
replica.alter.log.dirs.io.max.bytes.per.second  LONG  9223372036854775807  0..  MEDIUM  cluster-wide  used
    Bytes a second that moves between directories may take.
replica.fetch.backoff.ms  INT  1000  0..  MEDIUM  read-only  used
    How long a follower waits after a failed fetch.
replica.fetch.max.bytes  INT  1048576  0..  MEDIUM  read-only  used
    How much a follower asks for of each partition; a larger first batch still comes whole.
replica.fetch.min.bytes  INT  1  -  HIGH  read-only  used
    How much must be there before a follower's fetch is answered.
replica.fetch.response.max.bytes  INT  10485760  0..  MEDIUM  read-only  used
    How much a follower asks for in one fetch.
replica.fetch.wait.max.ms  INT  500  -  HIGH  read-only  used
    How long a follower's fetch may wait for data; not more than replica.lag.time.max.ms.
replica.high.watermark.checkpoint.interval.ms  LONG  5000  -  HIGH  read-only  used
    How often high watermarks are written to disk.
replica.lag.time.max.ms  LONG  30000  -  HIGH  read-only  used
    A follower that has not caught up for so long leaves the in-sync replicas.
replica.selector.class  STRING  -  -  MEDIUM  read-only  used
    Kafka's RackAwareReplicaSelector lets consumers read from replicas in their own rack; others do nothing here.
replica.socket.receive.buffer.bytes  INT  65536  -  HIGH  read-only  used
    The receive buffer of the sockets that followers fetch through, where it is set; otherwise the system chooses.
replica.socket.timeout.ms  INT  30000  -  HIGH  read-only  used
    How long a follower waits for an answer; at least replica.fetch.wait.max.ms.
replication.quota.window.num  INT  11  1..  LOW  read-only  used
    How many samples are kept for the throttle of replication.
replication.quota.window.size.seconds  INT  1  1..  LOW  read-only  used
    How long one sample for the throttle of replication lasts.
unclean.leader.election.interval.ms  LONG  300000  1..  MEDIUM  read-only  unused  internal
    How often partitions without a leader are looked at for an unclean election.
"""
