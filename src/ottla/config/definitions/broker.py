"""Properties of the broker as a whole: who it is, topics' creation and deletion, quotas' windows, reporters."""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
alter.config.policy.class.name  CLASS  -  -  LOW  read-only  unused
    A Java class that vets configuration changes; there is no JVM here to run it.
auto.create.topics.enable  BOOLEAN  true  -  HIGH  read-only  used
    Whether a topic that does not exist is created when a client asks for its metadata.
broker.id  INT  -1  -  HIGH  read-only  used
    This broker's number in the cluster; -1 takes the one in meta.properties, or a generated one.
broker.rack  STRING  -  -  MEDIUM  read-only  used
    Where this broker stands; a partition's replicas are spread over racks. Use the host's name.
client.quota.callback.class  CLASS  -  -  LOW  read-only  unused
    A Java class that decides on clients' quotas; there is no JVM here to run it.
config.providers  LIST  ""  -  LOW  cluster-wide  unused
    Java classes that fetch property values from elsewhere; there is no JVM here to run them.
controller.quota.window.num  INT  11  1..  LOW  read-only  unused
    How many samples of topic creations and deletions are kept for their quota.
controller.quota.window.size.seconds  INT  1  1..  LOW  read-only  unused
    How long one sample of topic creations and deletions lasts.
create.topic.policy.class.name  CLASS  -  -  LOW  read-only  unused
    A Java class that vets new topics; there is no JVM here to run it.
delete.records.purgatory.purge.interval.requests  INT  1  -  MEDIUM  read-only  unused
    After how many requests Kafka purges its list of waiting DeleteRecords requests.
delete.topic.enable  BOOLEAN  true  -  HIGH  read-only  used
    Whether topics may be deleted; where not, DeleteTopics is refused.
kafka.metrics.polling.interval.secs  INT  10  1..  LOW  read-only  unused
    How often Kafka's old metrics reporters are polled.
kafka.metrics.reporters  LIST  ""  -  LOW  read-only  unused
    Java classes that report Kafka's old metrics.
metric.reporters  LIST  org.apache.kafka.common.metrics.JmxReporter  -  LOW  cluster-wide  unused
    Java classes that report metrics; here metrics are served as Prometheus text.
metrics.num.samples  INT  2  1..  LOW  read-only  unused
    How many samples are kept for each of Kafka's own metrics.
metrics.recording.level  STRING  INFO  -  LOW  read-only  unused
    The highest level of metrics that Kafka records.
metrics.sample.window.ms  LONG  30000  1..  LOW  read-only  unused
    How long one sample of Kafka's own metrics lasts.
node.id  INT  -1  -1..  HIGH  read-only  used
    The newer name of broker.id; where both are set they must be the same.
num.partitions  INT  1  1..  MEDIUM  read-only  used
    How many partitions a topic gets when its creation does not say.
producer.purgatory.purge.interval.requests  INT  1000  -  MEDIUM  read-only  unused
    After how many requests Kafka purges its list of waiting Produce requests.
quota.window.num  INT  11  1..  LOW  read-only  unused
    How many samples are kept for clients' quotas.
quota.window.size.seconds  INT  1  1..  LOW  read-only  unused
    How long one sample for clients' quotas lasts.
telemetry.max.bytes  INT  1048576  1..  LOW  read-only  unused
    The largest telemetry message that a client may push.
"""
