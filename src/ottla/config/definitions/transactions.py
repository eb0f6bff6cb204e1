"""transactions"""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
add.partitions.to.txn.retry.backoff.max.ms  INT  100  0..  HIGH  read-only  used
    DOC
add.partitions.to.txn.retry.backoff.ms  INT  20  1..  HIGH  read-only  used
    DOC
transaction.abort.timed.out.transaction.cleanup.interval.ms  INT  10000  1..  LOW  read-only  used
    DOC
transaction.max.timeout.ms  INT  900000  1..  HIGH  read-only  used
    DOC
transaction.partition.verification.enable  BOOLEAN  true  -  LOW  cluster-wide  used
    DOC
transaction.remove.expired.transaction.cleanup.interval.ms  INT  3600000  1..  LOW  read-only  used
    DOC
transaction.state.log.load.buffer.size  INT  5242880  1..  HIGH  read-only  used
    DOC
transaction.state.log.min.isr  INT  2  1..  HIGH  read-only  used
    DOC
transaction.state.log.num.partitions  INT  50  1..  HIGH  read-only  used
    DOC
transaction.state.log.replication.factor  SHORT  3  1..  HIGH  read-only  used
    DOC
transaction.state.log.segment.bytes  INT  104857600  1..  HIGH  read-only  used
    DOC
transaction.two.phase.commit.enable  BOOLEAN  false  -  LOW  read-only  used
    DOC
transactional.id.expiration.ms  INT  604800000  1..  HIGH  read-only  used
    DOC
"""
