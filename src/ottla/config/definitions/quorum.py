"""Properties of Kafka's own controller quorum (KRaft), which Ottla has not: its files are read all the same."""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
broker.heartbeat.interval.ms  INT  2000  -  MEDIUM  read-only  unused
    How often a broker reports to Kafka's controller quorum.
broker.session.timeout.ms  INT  9000  -  MEDIUM  read-only  unused
    When Kafka's controller quorum takes a silent broker for dead.
controller.listener.names  LIST  -  some  HIGH  read-only  used
    Listeners of Kafka's controller quorum: those named here are not opened.
controller.performance.always.log.threshold.ms  LONG  2000  0..  MEDIUM  read-only  unused  internal
    Which slow controller events Kafka logs always.
controller.performance.sample.period.ms  LONG  60000  100..  MEDIUM  read-only  unused  internal
    How often Kafka logs its controller's slowest events.
controller.quorum.append.linger.ms  INT  25  0..  MEDIUM  read-only  unused
    How long the quorum's leader gathers writes.
controller.quorum.auto.join.enable  BOOLEAN  false  -  LOW  read-only  unused
    Whether a new controller joins the quorum by itself.
controller.quorum.bootstrap.servers  LIST  ""  -  HIGH  read-only  unused
    Where the quorum's members are found.
controller.quorum.election.backoff.max.ms  INT  1000  0..  HIGH  read-only  unused
    The longest pause between two elections in the quorum.
controller.quorum.election.timeout.ms  INT  1000  0..  HIGH  read-only  unused
    How long a candidate in the quorum waits for votes.
controller.quorum.fetch.max.bytes  INT  1048576  1..  LOW  read-only  unused
    How much of the metadata log is fetched at a time.
controller.quorum.fetch.snapshot.max.bytes  INT  1048576  1..  LOW  read-only  unused
    How much of a metadata snapshot is fetched at a time.
controller.quorum.fetch.timeout.ms  INT  2000  0..  HIGH  read-only  unused
    When the quorum's followers take a silent leader for dead.
controller.quorum.request.timeout.ms  INT  2000  0..  MEDIUM  read-only  unused
    How long a request inside the quorum waits for its answer.
controller.quorum.retry.backoff.ms  INT  20  0..  LOW  read-only  unused
    How long a failed request inside the quorum waits before it is sent again.
controller.quorum.voters  LIST  ""  -  HIGH  read-only  unused
    The quorum's voters, as id@host:port.
early.start.listeners  LIST  -  -  HIGH  read-only  unused
    Listeners that Kafka opens before its authorizer is ready.
initial.broker.registration.timeout.ms  INT  60000  -  MEDIUM  read-only  unused
    How long a broker tries to register with the quorum before it gives up.
internal.metadata.delete.delay.millis  LONG  60000  -  LOW  read-only  unused  internal
    When a removed metadata snapshot's file is deleted.
internal.metadata.log.segment.bytes  INT  -  -  LOW  read-only  unused  internal
    Segment size of the metadata log in Kafka's tests.
internal.metadata.max.batch.size.in.bytes  INT  8388608  -  LOW  read-only  unused  internal
    The largest batch in the metadata log.
metadata.log.dir  STRING  -  -  HIGH  read-only  unused
    Where Kafka's metadata log lies.
metadata.log.max.record.bytes.between.snapshots  LONG  20971520  1..  HIGH  read-only  unused
    After how many bytes of metadata a snapshot is taken.
metadata.log.max.snapshot.interval.ms  LONG  3600000  0..  HIGH  read-only  unused
    After what time a metadata snapshot is taken.
metadata.log.segment.bytes  INT  1073741824  8388608..  HIGH  read-only  unused
    Segment size of the metadata log.
metadata.log.segment.ms  LONG  604800000  -  HIGH  read-only  unused
    After what time a segment of the metadata log is rolled.
metadata.max.idle.interval.ms  INT  500  0..  LOW  read-only  unused
    How often an idle metadata log gets an empty record.
metadata.max.retention.bytes  LONG  104857600  -  HIGH  read-only  unused
    How much metadata log is kept.
metadata.max.retention.ms  LONG  604800000  -  HIGH  read-only  unused
    How long metadata log is kept.
process.roles  LIST  ""  {broker,controller}  HIGH  read-only  used
    What a process is in Kafka's quorum; a broker is always both here, and controller alone is refused.
server.max.startup.time.ms  LONG  9223372036854775807  0..  MEDIUM  read-only  unused  internal
    How long Kafka's start may take.
unstable.api.versions.enable  BOOLEAN  false  -  HIGH  read-only  unused  internal
    Whether Kafka serves API versions that are still in the making.
unstable.feature.versions.enable  BOOLEAN  false  -  HIGH  read-only  unused  internal
    Whether Kafka offers feature versions that are still in the making.
"""
