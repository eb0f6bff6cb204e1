"""broker"""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
alter.config.policy.class.name  CLASS  -  -  LOW  read-only  unused
    DOC
auto.create.topics.enable  BOOLEAN  true  -  HIGH  read-only  used
    DOC
broker.id  INT  -1  -  HIGH  read-only  used
    DOC
broker.rack  STRING  -  -  MEDIUM  read-only  used
    DOC
client.quota.callback.class  CLASS  -  -  LOW  read-only  unused
    DOC
config.providers  LIST  ""  -  LOW  cluster-wide  unused
    DOC
controller.quota.window.num  INT  11  1..  LOW  read-only  unused
    DOC
controller.quota.window.size.seconds  INT  1  1..  LOW  read-only  unused
    DOC
create.topic.policy.class.name  CLASS  -  -  LOW  read-only  unused
    DOC
delete.records.purgatory.purge.interval.requests  INT  1  -  MEDIUM  read-only  unused
    DOC
delete.topic.enable  BOOLEAN  true  -  HIGH  read-only  used
    DOC
kafka.metrics.polling.interval.secs  INT  10  1..  LOW  read-only  unused
    DOC
kafka.metrics.reporters  LIST  ""  -  LOW  read-only  unused
    DOC
metric.reporters  LIST  org.apache.kafka.common.metrics.JmxReporter  -  LOW  cluster-wide  unused
    DOC
metrics.num.samples  INT  2  1..  LOW  read-only  unused
    DOC
metrics.recording.level  STRING  INFO  -  LOW  read-only  unused
    DOC
metrics.sample.window.ms  LONG  30000  1..  LOW  read-only  unused
    DOC
node.id  INT  -1  -1..  HIGH  read-only  used
    DOC
num.partitions  INT  1  1..  MEDIUM  read-only  used
    DOC
producer.purgatory.purge.interval.requests  INT  1000  -  MEDIUM  read-only  unused
    DOC
quota.window.num  INT  11  1..  LOW  read-only  unused
    DOC
quota.window.size.seconds  INT  1  1..  LOW  read-only  unused
    DOC
telemetry.max.bytes  INT  1048576  1..  LOW  read-only  unused
    DOC
"""
