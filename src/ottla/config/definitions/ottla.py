"""Properties that Kafka does not have."""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
ottla.log.json  BOOLEAN  false  -  LOW  read-only  used
    Whether each line of the broker's own log is a JSON object.
ottla.log.level  STRING  INFO  {DEBUG,INFO,WARN,ERROR,OFF}  LOW  read-only  used
    The least level that is written to the broker's own log.
ottla.metrics.host  STRING  127.0.0.1  some  MEDIUM  read-only  used
    The address on which metrics are served.
ottla.metrics.port  INT  -  0..65535  MEDIUM  read-only  used
    The port of /metrics (Prometheus text), /health and /ready; unset serves none, 0 takes a free port.
ottla.new.broker.id  INT  -1  -1..  LOW  read-only  used
    The number of a broker without data where broker.id gives none; -1: the next above reserved.broker.max.id.
ottla.new.cluster.id  STRING  -  cluster-id  LOW  read-only  used
    The id of a cluster that has none yet, as CLUSTER_ID gives it to Kafka's image; unset: one is made.
"""
