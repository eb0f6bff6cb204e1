"""tiered_storage"""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
follower.fetch.last.tiered.offset.enable  BOOLEAN  false  -  MEDIUM  cluster-wide  unused
    DOC
log.local.retention.bytes  LONG  -2  -2..  MEDIUM  cluster-wide  unused
    DOC
log.local.retention.ms  LONG  -2  -2..  MEDIUM  cluster-wide  unused
    DOC
remote.fetch.max.wait.ms  INT  500  1..  MEDIUM  cluster-wide  unused
    DOC
remote.list.offsets.request.timeout.ms  LONG  30000  1..  MEDIUM  cluster-wide  unused
    DOC
remote.log.index.file.cache.total.size.bytes  LONG  1073741824  1..  LOW  cluster-wide  unused
    DOC
remote.log.index.file.cache.ttl.ms  LONG  900000  -1..  LOW  read-only  unused  internal
    DOC
remote.log.manager.copier.thread.pool.size  INT  10  1..  MEDIUM  cluster-wide  unused
    DOC
remote.log.manager.copy.max.bytes.per.second  LONG  9223372036854775807  1..  MEDIUM  cluster-wide  unused
    DOC
remote.log.manager.copy.quota.window.num  INT  11  1..  MEDIUM  read-only  unused
    DOC
remote.log.manager.copy.quota.window.size.seconds  INT  1  1..  MEDIUM  read-only  unused
    DOC
remote.log.manager.expiration.thread.pool.size  INT  10  1..  MEDIUM  cluster-wide  unused
    DOC
remote.log.manager.fetch.max.bytes.per.second  LONG  9223372036854775807  1..  MEDIUM  cluster-wide  unused
    DOC
remote.log.manager.fetch.quota.window.num  INT  11  1..  MEDIUM  read-only  unused
    DOC
remote.log.manager.fetch.quota.window.size.seconds  INT  1  1..  MEDIUM  read-only  unused
    DOC
remote.log.manager.follower.thread.pool.size  INT  2  1..  MEDIUM  cluster-wide  unused
    DOC
remote.log.manager.task.interval.ms  LONG  30000  1..  LOW  read-only  unused
    DOC
remote.log.manager.task.retry.backoff.max.ms  LONG  30000  1..  LOW  read-only  unused  internal
    DOC
remote.log.manager.task.retry.backoff.ms  LONG  500  1..  LOW  read-only  unused  internal
    DOC
remote.log.manager.task.retry.jitter  DOUBLE  0.2  0..0.5  LOW  read-only  unused  internal
    DOC
remote.log.manager.thread.pool.size  INT  2  1..  MEDIUM  read-only  unused
    DOC
remote.log.metadata.custom.metadata.max.bytes  INT  128  0..  LOW  read-only  unused
    DOC
remote.log.metadata.manager.class.name  STRING  \
org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager  some  MEDIUM  read-only  unused
    DOC
remote.log.metadata.manager.class.path  STRING  -  -  MEDIUM  read-only  unused
    DOC
remote.log.metadata.manager.impl.prefix  STRING  rlmm.config.  some  MEDIUM  read-only  unused
    DOC
remote.log.metadata.manager.listener.name  STRING  -  some  MEDIUM  read-only  unused
    DOC
remote.log.reader.max.pending.tasks  INT  100  1..  MEDIUM  read-only  unused
    DOC
remote.log.reader.threads  INT  10  1..  MEDIUM  cluster-wide  unused
    DOC
remote.log.storage.manager.class.name  STRING  -  some  MEDIUM  read-only  unused
    DOC
remote.log.storage.manager.class.path  STRING  -  -  MEDIUM  read-only  unused
    DOC
remote.log.storage.manager.impl.prefix  STRING  rsm.config.  some  MEDIUM  read-only  unused
    DOC
remote.log.storage.system.enable  BOOLEAN  false  -  MEDIUM  read-only  unused
    DOC
"""
