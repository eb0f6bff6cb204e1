"""quorum"""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
broker.heartbeat.interval.ms  INT  2000  -  MEDIUM  read-only  unused
    DOC
broker.session.timeout.ms  INT  9000  -  MEDIUM  read-only  unused
    DOC
controller.listener.names  LIST  -  some  HIGH  read-only  used
    DOC
controller.performance.always.log.threshold.ms  LONG  2000  0..  MEDIUM  read-only  unused  internal
    DOC
controller.performance.sample.period.ms  LONG  60000  100..  MEDIUM  read-only  unused  internal
    DOC
controller.quorum.append.linger.ms  INT  25  0..  MEDIUM  read-only  unused
    DOC
controller.quorum.auto.join.enable  BOOLEAN  false  -  LOW  read-only  unused
    DOC
controller.quorum.bootstrap.servers  LIST  ""  -  HIGH  read-only  unused
    DOC
controller.quorum.election.backoff.max.ms  INT  1000  0..  HIGH  read-only  unused
    DOC
controller.quorum.election.timeout.ms  INT  1000  0..  HIGH  read-only  unused
    DOC
controller.quorum.fetch.max.bytes  INT  1048576  1..  LOW  read-only  unused
    DOC
controller.quorum.fetch.snapshot.max.bytes  INT  1048576  1..  LOW  read-only  unused
    DOC
controller.quorum.fetch.timeout.ms  INT  2000  0..  HIGH  read-only  unused
    DOC
controller.quorum.request.timeout.ms  INT  2000  0..  MEDIUM  read-only  unused
    DOC
controller.quorum.retry.backoff.ms  INT  20  0..  LOW  read-only  unused
    DOC
controller.quorum.voters  LIST  ""  -  HIGH  read-only  unused
    DOC
early.start.listeners  LIST  -  -  HIGH  read-only  unused
    DOC
initial.broker.registration.timeout.ms  INT  60000  -  MEDIUM  read-only  unused
    DOC
internal.metadata.delete.delay.millis  LONG  60000  -  LOW  read-only  unused  internal
    DOC
internal.metadata.log.segment.bytes  INT  -  -  LOW  read-only  unused  internal
    DOC
internal.metadata.max.batch.size.in.bytes  INT  8388608  -  LOW  read-only  unused  internal
    DOC
metadata.log.dir  STRING  -  -  HIGH  read-only  unused
    DOC
metadata.log.max.record.bytes.between.snapshots  LONG  20971520  1..  HIGH  read-only  unused
    DOC
metadata.log.max.snapshot.interval.ms  LONG  3600000  0..  HIGH  read-only  unused
    DOC
metadata.log.segment.bytes  INT  1073741824  8388608..  HIGH  read-only  unused
    DOC
metadata.log.segment.ms  LONG  604800000  -  HIGH  read-only  unused
    DOC
metadata.max.idle.interval.ms  INT  500  0..  LOW  read-only  unused
    DOC
metadata.max.retention.bytes  LONG  104857600  -  HIGH  read-only  unused
    DOC
metadata.max.retention.ms  LONG  604800000  -  HIGH  read-only  unused
    DOC
process.roles  LIST  ""  {broker,controller}  HIGH  read-only  used
    DOC
server.max.startup.time.ms  LONG  9223372036854775807  0..  MEDIUM  read-only  unused  internal
    DOC
unstable.api.versions.enable  BOOLEAN  false  -  HIGH  read-only  unused  internal
    DOC
unstable.feature.versions.enable  BOOLEAN  false  -  HIGH  read-only  unused  internal
    DOC
"""
