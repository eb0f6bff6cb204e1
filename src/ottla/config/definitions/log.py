"""Properties of logs: where they lie, and what holds for a topic that overrides nothing."""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
compression.gzip.level  INT  -1  gzip-level  MEDIUM  cluster-wide  used
    The level for gzip, where the broker compresses: 1 to 9, or -1 for the library's own.
compression.lz4.level  INT  9  1..17  MEDIUM  cluster-wide  used
    The level for lz4, where the broker compresses.
compression.type  STRING  producer  {uncompressed,zstd,lz4,snappy,gzip,producer}  HIGH  cluster-wide  used
    How batches are stored: producer keeps what came, uncompressed or a codec's name makes it that.
compression.zstd.level  INT  3  -131072..22  MEDIUM  cluster-wide  used
    The level for zstd, where the broker compresses.
cordoned.log.dirs  LIST  ""  -  MEDIUM  per-broker  used
    Directories that get no new partitions; * stands for all.
log.cleaner.backoff.ms  LONG  15000  0..  MEDIUM  cluster-wide  used
    How long compaction sleeps when there is nothing to compact.
log.cleaner.dedupe.buffer.size  LONG  134217728  -  MEDIUM  cluster-wide  used
    The memory in which compaction keeps keys: 24 bytes each, and a bit for each record it goes through.
log.cleaner.delete.retention.ms  LONG  86400000  0..  MEDIUM  cluster-wide  used
    How long a delete marker stays readable in a compacted topic.
log.cleaner.enable  BOOLEAN  true  -  MEDIUM  read-only  used
    Whether compaction runs; without it compacted topics, the offsets topic too, grow for ever.
log.cleaner.io.buffer.load.factor  DOUBLE  0.9  -  MEDIUM  cluster-wide  used
    How full the memory for keys may get in one pass.
log.cleaner.io.buffer.size  INT  524288  0..  MEDIUM  cluster-wide  used
    The memory for compaction's reads and writes; a larger batch is held whole.
log.cleaner.io.max.bytes.per.second  DOUBLE  1.7976931348623157E308  -  MEDIUM  cluster-wide  used
    Compaction's reads and writes together stay below this rate.
log.cleaner.max.compaction.lag.ms  LONG  9223372036854775807  1..  MEDIUM  cluster-wide  used
    A record is compacted at the latest after so long.
log.cleaner.min.cleanable.ratio  DOUBLE  0.5  0..1  MEDIUM  cluster-wide  used
    A log is compacted when at least this share of it has not been yet.
log.cleaner.min.compaction.lag.ms  LONG  0  0..  MEDIUM  cluster-wide  used
    A record stays uncompacted at least so long.
log.cleaner.threads  INT  1  0..  MEDIUM  cluster-wide  used
    Whether logs are compacted: 0 pauses it, and any other number counts as 1, since one process does it all.
log.cleanup.policy  LIST  delete  {compact,delete}  MEDIUM  cluster-wide  used
    What happens to old segments: delete, compact, both, or (empty) nothing.
log.dir  LIST  -  some  HIGH  read-only  used
    Where logs are kept, if log.dirs is not set; the default is a folder under the user's state directory.
log.dir.failure.timeout.ms  LONG  30000  1..  LOW  read-only  unused
    A broker that cannot report a failed directory for so long stops.
log.dirs  LIST  -  some  HIGH  read-only  used
    The directories of the logs, separated by commas; each partition lies in one of them.
log.flush.interval.messages  LONG  9223372036854775807  1..  HIGH  cluster-wide  used
    After how many records a log is forced to disk; 1 forces before each answer.
log.flush.interval.ms  LONG  -  -  HIGH  cluster-wide  used
    After what time a log is forced to disk; unset takes log.flush.scheduler.interval.ms.
log.flush.offset.checkpoint.interval.ms  INT  60000  0..  HIGH  read-only  used
    How often it is written down how far logs have been forced to disk.
log.flush.scheduler.interval.ms  LONG  9223372036854775807  -  HIGH  read-only  used
    How often logs are checked for whether they are due to be forced to disk.
log.flush.start.offset.checkpoint.interval.ms  INT  60000  0..  HIGH  read-only  used
    How often logs' first offsets are written down.
log.index.interval.bytes  INT  4096  0..  MEDIUM  cluster-wide  used
    About one entry of the offset index stands for so many bytes of log.
log.index.size.max.bytes  INT  10485760  4..  MEDIUM  cluster-wide  used
    The size at which an index is full, and its segment rolled.
log.initial.task.delay.ms  LONG  30000  0..  LOW  read-only  used  internal
    How long after the start the periodic work on logs begins.
log.message.timestamp.after.max.ms  LONG  3600000  0..  MEDIUM  cluster-wide  used
    A record whose timestamp lies further ahead than this is refused.
log.message.timestamp.before.max.ms  LONG  9223372036854775807  0..  MEDIUM  cluster-wide  used
    A record whose timestamp lies further back than this is refused.
log.message.timestamp.type  STRING  CreateTime  {CreateTime,LogAppendTime}  MEDIUM  cluster-wide  used
    Whether a record's timestamp is the producer's (CreateTime) or the broker's (LogAppendTime).
log.preallocate  BOOLEAN  false  -  MEDIUM  cluster-wide  unused
    Whether a new segment gets its full size on disk at once.
log.retention.bytes  LONG  -1  -  HIGH  cluster-wide  used
    Old segments are removed while a partition is larger than this; -1 keeps them.
log.retention.check.interval.ms  LONG  300000  1..  MEDIUM  read-only  used
    How often segments are looked for that may be removed.
log.retention.hours  INT  168  retention  HIGH  read-only  used
    How many hours a segment is kept, if neither log.retention.minutes nor log.retention.ms is set.
log.retention.minutes  INT  -  retention  HIGH  read-only  used
    How many minutes a segment is kept, if log.retention.ms is not set.
log.retention.ms  LONG  -  retention  HIGH  cluster-wide  used
    How many milliseconds a segment is kept after its newest record; -1 for ever.
log.roll.hours  INT  168  1..  HIGH  read-only  used
    A segment is rolled after so many hours, if log.roll.ms is not set.
log.roll.jitter.hours  INT  0  0..  HIGH  read-only  used
    Up to so many hours are taken off log.roll.hours at random, if log.roll.jitter.ms is not set.
log.roll.jitter.ms  LONG  -  roll-jitter-ms  HIGH  cluster-wide  used
    Up to so many milliseconds are taken off the roll time at random, so that not all logs roll at once.
log.roll.ms  LONG  -  roll-ms  HIGH  cluster-wide  used
    A segment is rolled when its first record is so old.
log.segment.bytes  INT  1073741824  14..  HIGH  cluster-wide  used
    A segment is rolled before it grows past this.
log.segment.delete.delay.ms  LONG  60000  0..  HIGH  cluster-wide  used
    A removed segment's files are deleted so much later, when nobody reads them any more.
message.max.bytes  INT  1048588  0..  HIGH  cluster-wide  used
    The largest batch that is accepted, as it comes (compressed).
min.insync.replicas  INT  1  1..  HIGH  cluster-wide  used
    A write with acks=all is refused while fewer replicas than this are in sync.
num.recovery.threads.per.data.dir  INT  2  1..  HIGH  cluster-wide  unused
    How many logs of one directory are recovered at the same time after an unclean stop.
producer.id.expiration.check.interval.ms  INT  600000  1..  LOW  read-only  used  internal
    How often idle producers are looked for.
producer.id.expiration.ms  INT  86400000  1..  LOW  cluster-wide  used
    An idempotent producer that is idle for so long is forgotten.
unclean.leader.election.enable  BOOLEAN  false  -  HIGH  cluster-wide  used
    Whether a replica that is not in sync may lead when no other is left, at the price of lost records.
"""
