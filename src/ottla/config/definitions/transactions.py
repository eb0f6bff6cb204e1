"""Properties of transactions and of the topic that holds their state."""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
add.partitions.to.txn.retry.backoff.max.ms  INT  100  0..  HIGH  read-only  used
    How long a broker keeps trying to add a partition to a transaction.
add.partitions.to.txn.retry.backoff.ms  INT  20  1..  HIGH  read-only  used
    The longest pause between two tries to add a partition to a transaction.
transaction.abort.timed.out.transaction.cleanup.interval.ms  INT  10000  1..  LOW  read-only  used
    How often timed-out transactions are looked for.
transaction.max.timeout.ms  INT  900000  1..  HIGH  read-only  used
    The longest transaction time-out that a producer may ask for.
transaction.partition.verification.enable  BOOLEAN  true  -  LOW  cluster-wide  used
    Whether it is checked that a partition was added to its transaction before a write.
transaction.remove.expired.transaction.cleanup.interval.ms  INT  3600000  1..  LOW  read-only  used
    How often expired transactional ids are looked for.
transaction.state.log.load.buffer.size  INT  5242880  1..  HIGH  read-only  used
    How much of the transaction topic is read at a time when a coordinator loads it.
transaction.state.log.min.isr  INT  2  1..  HIGH  read-only  used
    How many replicas of the transaction topic must be in sync for a write.
transaction.state.log.num.partitions  INT  50  1..  HIGH  read-only  used
    How many partitions the transaction topic gets; do not change it later.
transaction.state.log.replication.factor  SHORT  3  1..  HIGH  read-only  used
    How many copies the transaction topic gets.
transaction.state.log.segment.bytes  INT  104857600  1..  HIGH  read-only  used
    Segment size of the transaction topic, small so that compaction and loading stay quick.
transaction.two.phase.commit.enable  BOOLEAN  false  -  LOW  read-only  later
    Whether producers may leave transactions prepared, for an outside coordinator to finish.
transactional.id.expiration.ms  INT  604800000  1..  HIGH  read-only  used
    A transactional id that is idle for so long is forgotten.
"""
