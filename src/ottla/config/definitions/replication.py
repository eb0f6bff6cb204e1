"""replication"""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
alter.log.dirs.replication.quota.window.num  INT  11  1..  LOW  read-only  unused
    DOC
alter.log.dirs.replication.quota.window.size.seconds  INT  1  1..  LOW  read-only  unused
    DOC
auto.leader.rebalance.enable  BOOLEAN  true  -  HIGH  read-only  used
    DOC
controlled.shutdown.enable  BOOLEAN  true  -  MEDIUM  read-only  used
    DOC
controller.socket.timeout.ms  INT  30000  -  MEDIUM  read-only  unused
    DOC
default.replication.factor  INT  1  -  MEDIUM  read-only  used
    DOC
follower.replication.throttled.rate  LONG  9223372036854775807  0..  MEDIUM  cluster-wide  used
    DOC
leader.imbalance.check.interval.seconds  LONG  300  1..  HIGH  read-only  used
    DOC
leader.replication.throttled.rate  LONG  9223372036854775807  0..  MEDIUM  cluster-wide  used
    DOC
num.replica.alter.log.dirs.threads  INT  -  -  HIGH  read-only  unused
    DOC
num.replica.fetchers  INT  1  1..  HIGH  cluster-wide  used
    DOC
replica.alter.log.dirs.io.max.bytes.per.second  LONG  9223372036854775807  0..  MEDIUM  cluster-wide  used
    DOC
replica.fetch.backoff.ms  INT  1000  0..  MEDIUM  read-only  used
    DOC
replica.fetch.max.bytes  INT  1048576  0..  MEDIUM  read-only  used
    DOC
replica.fetch.min.bytes  INT  1  -  HIGH  read-only  used
    DOC
replica.fetch.response.max.bytes  INT  10485760  0..  MEDIUM  read-only  used
    DOC
replica.fetch.wait.max.ms  INT  500  -  HIGH  read-only  used
    DOC
replica.high.watermark.checkpoint.interval.ms  LONG  5000  -  HIGH  read-only  used
    DOC
replica.lag.time.max.ms  LONG  30000  -  HIGH  read-only  used
    DOC
replica.selector.class  STRING  -  -  MEDIUM  read-only  unused
    DOC
replica.socket.receive.buffer.bytes  INT  65536  -  HIGH  read-only  used
    DOC
replica.socket.timeout.ms  INT  30000  -  HIGH  read-only  used
    DOC
replication.quota.window.num  INT  11  1..  LOW  read-only  unused
    DOC
replication.quota.window.size.seconds  INT  1  1..  LOW  read-only  unused
    DOC
unclean.leader.election.interval.ms  LONG  300000  1..  MEDIUM  read-only  used  internal
    DOC
"""
