"""topic"""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
cleanup.policy  LIST  delete  {compact,delete}  MEDIUM  topic  unused
    DOC
compression.gzip.level  INT  -1  gzip-level  MEDIUM  topic  unused
    DOC
compression.lz4.level  INT  9  1..17  MEDIUM  topic  unused
    DOC
compression.type  STRING  producer  -  MEDIUM  topic  unused
    DOC
compression.zstd.level  INT  3  -131072..22  MEDIUM  topic  unused
    DOC
delete.retention.ms  LONG  86400000  0..  MEDIUM  topic  unused
    DOC
file.delete.delay.ms  LONG  60000  0..  MEDIUM  topic  unused
    DOC
flush.messages  LONG  9223372036854775807  1..  MEDIUM  topic  unused
    DOC
flush.ms  LONG  9223372036854775807  0..  MEDIUM  topic  unused
    DOC
follower.replication.throttled.replicas  LIST  ""  throttled-replicas  MEDIUM  topic  unused
    DOC
index.interval.bytes  INT  4096  0..  MEDIUM  topic  unused
    DOC
internal.segment.bytes  INT  -  -  MEDIUM  topic  unused  internal
    DOC
leader.replication.throttled.replicas  LIST  ""  throttled-replicas  MEDIUM  topic  unused
    DOC
local.retention.bytes  LONG  -2  -2..  MEDIUM  topic  unused
    DOC
local.retention.ms  LONG  -2  -2..  MEDIUM  topic  unused
    DOC
max.compaction.lag.ms  LONG  9223372036854775807  1..  MEDIUM  topic  unused
    DOC
max.message.bytes  INT  1048588  0..  MEDIUM  topic  unused
    DOC
message.timestamp.after.max.ms  LONG  3600000  0..  MEDIUM  topic  unused
    DOC
message.timestamp.before.max.ms  LONG  9223372036854775807  0..  MEDIUM  topic  unused
    DOC
message.timestamp.type  STRING  CreateTime  {CreateTime,LogAppendTime}  MEDIUM  topic  unused
    DOC
min.cleanable.dirty.ratio  DOUBLE  0.5  0..1  MEDIUM  topic  unused
    DOC
min.compaction.lag.ms  LONG  0  0..  MEDIUM  topic  unused
    DOC
min.insync.replicas  INT  1  1..  MEDIUM  topic  unused
    DOC
preallocate  BOOLEAN  false  -  MEDIUM  topic  unused
    DOC
remote.log.copy.disable  BOOLEAN  false  -  MEDIUM  topic  unused
    DOC
remote.log.delete.on.disable  BOOLEAN  false  -  MEDIUM  topic  unused
    DOC
remote.storage.enable  BOOLEAN  false  -  MEDIUM  topic  unused
    DOC
retention.bytes  LONG  -1  -  MEDIUM  topic  unused
    DOC
retention.ms  LONG  604800000  -1..  MEDIUM  topic  unused
    DOC
segment.bytes  INT  1073741824  1048576..  MEDIUM  topic  unused
    DOC
segment.index.bytes  INT  10485760  4..  MEDIUM  topic  unused
    DOC
segment.jitter.ms  LONG  0  0..  MEDIUM  topic  unused
    DOC
segment.ms  LONG  604800000  1..  MEDIUM  topic  unused
    DOC
unclean.leader.election.enable  BOOLEAN  false  -  MEDIUM  topic  unused
    DOC
"""
