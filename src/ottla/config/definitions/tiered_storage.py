"""Properties of the remote tier."""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
follower.fetch.last.tiered.offset.enable  BOOLEAN  false  -  MEDIUM  cluster-wide  unused
    Whether a new follower starts behind what is in the remote tier.
log.local.retention.bytes  LONG  -2  -2..  MEDIUM  cluster-wide  unused
    How much of a tiered log stays on local disks; -2 means as log.retention.bytes.
log.local.retention.ms  LONG  -2  -2..  MEDIUM  cluster-wide  unused
    How long a tiered log stays on local disks; -2 means as log.retention.ms.
remote.fetch.max.wait.ms  INT  500  1..  MEDIUM  cluster-wide  unused
    How long a fetch waits for the remote tier.
remote.list.offsets.request.timeout.ms  LONG  30000  1..  MEDIUM  cluster-wide  unused
    How long a look-up of an offset waits for the remote tier.
remote.log.index.file.cache.total.size.bytes  LONG  1073741824  1..  LOW  cluster-wide  unused
    How many bytes of remote indexes are kept locally.
remote.log.index.file.cache.ttl.ms  LONG  900000  -1..  LOW  read-only  unused  internal
    How long a remote index is kept locally.
remote.log.manager.copier.thread.pool.size  INT  10  1..  MEDIUM  cluster-wide  unused
    How many of Kafka's threads copy segments to the remote tier.
remote.log.manager.copy.max.bytes.per.second  LONG  9223372036854775807  1..  MEDIUM  cluster-wide  unused
    Bytes a second that may be copied to the remote tier.
remote.log.manager.copy.quota.window.num  INT  11  1..  MEDIUM  read-only  unused
    How many samples are kept for the quota of copies to the remote tier.
remote.log.manager.copy.quota.window.size.seconds  INT  1  1..  MEDIUM  read-only  unused
    How long one sample for the quota of copies to the remote tier lasts.
remote.log.manager.expiration.thread.pool.size  INT  10  1..  MEDIUM  cluster-wide  unused
    How many of Kafka's threads remove expired remote segments.
remote.log.manager.fetch.max.bytes.per.second  LONG  9223372036854775807  1..  MEDIUM  cluster-wide  unused
    Bytes a second that may be read from the remote tier.
remote.log.manager.fetch.quota.window.num  INT  11  1..  MEDIUM  read-only  unused
    How many samples are kept for the quota of reads from the remote tier.
remote.log.manager.fetch.quota.window.size.seconds  INT  1  1..  MEDIUM  read-only  unused
    How long one sample for the quota of reads from the remote tier lasts.
remote.log.manager.follower.thread.pool.size  INT  2  1..  MEDIUM  cluster-wide  unused
    How many of Kafka's threads follow the remote tier.
remote.log.manager.task.interval.ms  LONG  30000  1..  LOW  read-only  unused
    How often segments are looked for that may go to the remote tier.
remote.log.manager.task.retry.backoff.max.ms  LONG  30000  1..  LOW  read-only  unused  internal
    The longest pause between two tries of remote work.
remote.log.manager.task.retry.backoff.ms  LONG  500  1..  LOW  read-only  unused  internal
    The first pause between two tries of remote work.
remote.log.manager.task.retry.jitter  DOUBLE  0.2  0..0.5  LOW  read-only  unused  internal
    How much chance there is in the pauses of remote work.
remote.log.manager.thread.pool.size  INT  2  1..  MEDIUM  read-only  unused
    How many of Kafka's threads work for the remote tier.
remote.log.metadata.custom.metadata.max.bytes  INT  128  0..  LOW  read-only  unused
    The largest note that a remote storage plug-in may attach to a segment.
remote.log.metadata.manager.class.name  STRING  \
org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager  some  MEDIUM  read-only  unused
    The Java class that keeps the list of remote segments.
remote.log.metadata.manager.class.path  STRING  -  -  MEDIUM  read-only  unused
    Where that class is found.
remote.log.metadata.manager.impl.prefix  STRING  rlmm.config.  some  MEDIUM  read-only  unused
    What stands before the names of that class's own properties.
remote.log.metadata.manager.listener.name  STRING  -  some  MEDIUM  read-only  unused
    The listener which that class connects to.
remote.log.reader.max.pending.tasks  INT  100  1..  MEDIUM  read-only  unused
    How many reads may wait for the remote tier.
remote.log.reader.threads  INT  10  1..  MEDIUM  cluster-wide  unused
    How many of Kafka's threads read from the remote tier.
remote.log.storage.manager.class.name  STRING  -  some  MEDIUM  read-only  unused
    The Java class that stores remote segments.
remote.log.storage.manager.class.path  STRING  -  -  MEDIUM  read-only  unused
    Where that class is found.
remote.log.storage.manager.impl.prefix  STRING  rsm.config.  some  MEDIUM  read-only  unused
    What stands before the names of that class's own properties.
remote.log.storage.system.enable  BOOLEAN  false  -  MEDIUM  read-only  unused
    Whether there is a remote tier.
"""
