"""Properties of topics."""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
cleanup.policy  LIST  delete  {compact,delete}  MEDIUM  topic  used
    What happens to old segments: delete, compact, both, or (empty) nothing.
compression.gzip.level  INT  -1  gzip-level  MEDIUM  topic  used
    The level for gzip, where the broker compresses: 1 to 9, or -1 for the library's own.
compression.lz4.level  INT  9  1..17  MEDIUM  topic  used
    The level for lz4, where the broker compresses.
compression.type  STRING  producer  {uncompressed,zstd,lz4,snappy,gzip,producer}  MEDIUM  topic  used
    How batches are stored: producer keeps what came, uncompressed or a codec's name makes it that.
compression.zstd.level  INT  3  -131072..22  MEDIUM  topic  used
    The level for zstd, where the broker compresses.
delete.retention.ms  LONG  86400000  0..  MEDIUM  topic  used
    How long a delete marker stays readable in a compacted topic.
file.delete.delay.ms  LONG  60000  0..  MEDIUM  topic  used
    A removed segment's files are deleted so much later, when nobody reads them any more.
flush.messages  LONG  9223372036854775807  1..  MEDIUM  topic  used
    After how many records a log is forced to disk; 1 forces before each answer.
flush.ms  LONG  9223372036854775807  0..  MEDIUM  topic  used
    After what time a log is forced to disk.
follower.replication.throttled.replicas  LIST  ""  throttled-replicas  MEDIUM  topic  used
    Replicas that fetch at the throttled rate, as partition:broker, or * for all.
index.interval.bytes  INT  4096  0..  MEDIUM  topic  used
    About one entry of the offset index stands for so many bytes of log.
internal.segment.bytes  INT  -  -  MEDIUM  topic  used  internal
    Segment size below the smallest that segment.bytes allows, for tests.
leader.replication.throttled.replicas  LIST  ""  throttled-replicas  MEDIUM  topic  used
    Replicas that are read at the throttled rate, as partition:broker, or * for all.
local.retention.bytes  LONG  -2  -2..  MEDIUM  topic  unused
    How much of a tiered log stays on local disks; -2 means as retention.bytes.
local.retention.ms  LONG  -2  -2..  MEDIUM  topic  unused
    How long a tiered log stays on local disks; -2 means as retention.ms.
max.compaction.lag.ms  LONG  9223372036854775807  1..  MEDIUM  topic  used
    A record is compacted at the latest after so long.
max.message.bytes  INT  1048588  0..  MEDIUM  topic  used
    The largest batch that is accepted, as it comes (compressed).
message.timestamp.after.max.ms  LONG  3600000  0..  MEDIUM  topic  used
    A record whose timestamp lies further ahead than this is refused.
message.timestamp.before.max.ms  LONG  9223372036854775807  0..  MEDIUM  topic  used
    A record whose timestamp lies further back than this is refused.
message.timestamp.type  STRING  CreateTime  {CreateTime,LogAppendTime}  MEDIUM  topic  used
    Whether a record's timestamp is the producer's (CreateTime) or the broker's (LogAppendTime).
min.cleanable.dirty.ratio  DOUBLE  0.5  0..1  MEDIUM  topic  used
    A log is compacted when at least this share of it has not been yet.
min.compaction.lag.ms  LONG  0  0..  MEDIUM  topic  used
    A record stays uncompacted at least so long.
min.insync.replicas  INT  1  1..  MEDIUM  topic  used
    A write with acks=all is refused while fewer replicas than this are in sync.
preallocate  BOOLEAN  false  -  MEDIUM  topic  unused
    Whether a new segment gets its full size on disk at once.
remote.log.copy.disable  BOOLEAN  false  -  MEDIUM  topic  unused
    Whether a tiered topic stops copying to the remote tier.
remote.log.delete.on.disable  BOOLEAN  false  -  MEDIUM  topic  unused
    Whether a topic's remote data goes when its tiering is switched off.
remote.storage.enable  BOOLEAN  false  -  MEDIUM  topic  unused
    Whether the topic uses the remote tier.
replica.lag.max.messages  LONG  -  1..  MEDIUM  topic  used
    A follower that is more records behind leaves the in-sync replicas, as in Kafka 0.8; unset: only time decides.
retention.bytes  LONG  -1  -  MEDIUM  topic  used
    Old segments are removed while a partition is larger than this; -1 keeps them.
retention.ms  LONG  604800000  -1..  MEDIUM  topic  used
    How long a segment is kept after its newest record; -1 for ever.
segment.bytes  INT  1073741824  14..  MEDIUM  topic  used
    A segment is rolled before it grows past this.
segment.index.bytes  INT  10485760  4..  MEDIUM  topic  used
    The size at which an index is full, and its segment rolled.
segment.jitter.ms  LONG  0  0..  MEDIUM  topic  used
    Up to so much is taken off segment.ms at random, so that not all logs roll at once.
segment.ms  LONG  604800000  1..  MEDIUM  topic  used
    A segment is rolled when its first record is so old.
unclean.leader.election.enable  BOOLEAN  false  -  MEDIUM  topic  used
    Whether a replica that is not in sync may lead when no other is left, at the price of lost records.
"""
