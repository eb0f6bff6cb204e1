"""log"""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
compression.gzip.level  INT  -1  gzip-level  MEDIUM  cluster-wide  used
    DOC
compression.lz4.level  INT  9  1..17  MEDIUM  cluster-wide  used
    DOC
compression.type  STRING  producer  -  HIGH  cluster-wide  used
    DOC
compression.zstd.level  INT  3  -131072..22  MEDIUM  cluster-wide  used
    DOC
cordoned.log.dirs  LIST  ""  -  MEDIUM  per-broker  used
    DOC
log.cleaner.backoff.ms  LONG  15000  0..  MEDIUM  cluster-wide  used
    DOC
log.cleaner.dedupe.buffer.size  LONG  134217728  -  MEDIUM  cluster-wide  used
    DOC
log.cleaner.delete.retention.ms  LONG  86400000  0..  MEDIUM  cluster-wide  used
    DOC
log.cleaner.enable  BOOLEAN  true  -  MEDIUM  read-only  used
    DOC
log.cleaner.io.buffer.load.factor  DOUBLE  0.9  -  MEDIUM  cluster-wide  used
    DOC
log.cleaner.io.buffer.size  INT  524288  0..  MEDIUM  cluster-wide  used
    DOC
log.cleaner.io.max.bytes.per.second  DOUBLE  1.7976931348623157E308  -  MEDIUM  cluster-wide  used
    DOC
log.cleaner.max.compaction.lag.ms  LONG  9223372036854775807  1..  MEDIUM  cluster-wide  used
    DOC
log.cleaner.min.cleanable.ratio  DOUBLE  0.5  0..1  MEDIUM  cluster-wide  used
    DOC
log.cleaner.min.compaction.lag.ms  LONG  0  0..  MEDIUM  cluster-wide  used
    DOC
log.cleaner.threads  INT  1  0..  MEDIUM  cluster-wide  used
    DOC
log.cleanup.policy  LIST  delete  {compact,delete}  MEDIUM  cluster-wide  used
    DOC
log.dir  LIST  -  some  HIGH  read-only  used
    DOC
log.dir.failure.timeout.ms  LONG  30000  1..  LOW  read-only  unused
    DOC
log.dirs  LIST  -  some  HIGH  read-only  used
    DOC
log.flush.interval.messages  LONG  9223372036854775807  1..  HIGH  cluster-wide  used
    DOC
log.flush.interval.ms  LONG  -  -  HIGH  cluster-wide  used
    DOC
log.flush.offset.checkpoint.interval.ms  INT  60000  0..  HIGH  read-only  used
    DOC
log.flush.scheduler.interval.ms  LONG  9223372036854775807  -  HIGH  read-only  used
    DOC
log.flush.start.offset.checkpoint.interval.ms  INT  60000  0..  HIGH  read-only  used
    DOC
log.index.interval.bytes  INT  4096  0..  MEDIUM  cluster-wide  used
    DOC
log.index.size.max.bytes  INT  10485760  4..  MEDIUM  cluster-wide  used
    DOC
log.initial.task.delay.ms  LONG  30000  0..  LOW  read-only  used  internal
    DOC
log.message.timestamp.after.max.ms  LONG  3600000  0..  MEDIUM  cluster-wide  used
    DOC
log.message.timestamp.before.max.ms  LONG  9223372036854775807  0..  MEDIUM  cluster-wide  used
    DOC
log.message.timestamp.type  STRING  CreateTime  {CreateTime,LogAppendTime}  MEDIUM  cluster-wide  used
    DOC
log.preallocate  BOOLEAN  false  -  MEDIUM  cluster-wide  used
    DOC
log.retention.bytes  LONG  -1  -  HIGH  cluster-wide  used
    DOC
log.retention.check.interval.ms  LONG  300000  1..  MEDIUM  read-only  used
    DOC
log.retention.hours  INT  168  retention  HIGH  read-only  used
    DOC
log.retention.minutes  INT  -  retention  HIGH  read-only  used
    DOC
log.retention.ms  LONG  -  retention  HIGH  cluster-wide  used
    DOC
log.roll.hours  INT  168  1..  HIGH  read-only  used
    DOC
log.roll.jitter.hours  INT  0  0..  HIGH  read-only  used
    DOC
log.roll.jitter.ms  LONG  -  0..  HIGH  cluster-wide  used
    DOC
log.roll.ms  LONG  -  1..  HIGH  cluster-wide  used
    DOC
log.segment.bytes  INT  1073741824  1048576..  HIGH  cluster-wide  used
    DOC
log.segment.delete.delay.ms  LONG  60000  0..  HIGH  cluster-wide  used
    DOC
message.max.bytes  INT  1048588  0..  HIGH  cluster-wide  used
    DOC
min.insync.replicas  INT  1  1..  HIGH  cluster-wide  used
    DOC
num.recovery.threads.per.data.dir  INT  2  1..  HIGH  cluster-wide  used
    DOC
producer.id.expiration.check.interval.ms  INT  600000  1..  LOW  read-only  used  internal
    DOC
producer.id.expiration.ms  INT  86400000  1..  LOW  cluster-wide  used
    DOC
unclean.leader.election.enable  BOOLEAN  false  -  HIGH  cluster-wide  used
    DOC
"""
