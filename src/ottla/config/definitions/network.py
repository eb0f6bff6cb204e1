"""network"""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
advertised.listeners  LIST  -  some  HIGH  read-only  unused
    DOC
background.threads  INT  10  1..  HIGH  cluster-wide  unused
    DOC
connections.max.idle.ms  LONG  600000  -  MEDIUM  read-only  used
    DOC
fetch.max.bytes  INT  57671680  1024..  MEDIUM  read-only  used
    DOC
fetch.purgatory.purge.interval.requests  INT  1000  -  MEDIUM  read-only  unused
    DOC
inter.broker.listener.name  STRING  -  -  MEDIUM  read-only  used
    DOC
listener.security.protocol.map  STRING  \
SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT  -  LOW  per-broker  used
    DOC
listeners  LIST  PLAINTEXT://:9092  some  HIGH  per-broker  used
    DOC
max.connection.creation.rate  INT  2147483647  0..  MEDIUM  cluster-wide  used
    DOC
max.connections  INT  2147483647  0..  MEDIUM  cluster-wide  used
    DOC
max.connections.per.ip  INT  2147483647  0..  MEDIUM  cluster-wide  used
    DOC
max.connections.per.ip.overrides  STRING  ""  -  MEDIUM  cluster-wide  used
    DOC
max.incremental.fetch.session.cache.slots  INT  1000  0..  MEDIUM  read-only  used
    DOC
max.request.partition.size.limit  INT  2000  1..  MEDIUM  read-only  used
    DOC
num.io.threads  INT  8  1..  HIGH  cluster-wide  unused
    DOC
num.network.threads  INT  3  1..  HIGH  cluster-wide  unused
    DOC
queued.max.request.bytes  LONG  -1  -  MEDIUM  read-only  used
    DOC
queued.max.requests  INT  500  1..  HIGH  read-only  used
    DOC
request.timeout.ms  INT  30000  -  HIGH  read-only  used
    DOC
security.inter.broker.protocol  STRING  PLAINTEXT  {PLAINTEXT,SSL,SASL_PLAINTEXT,SASL_SSL}  MEDIUM  read-only  used
    DOC
socket.connection.setup.timeout.max.ms  LONG  30000  -  MEDIUM  read-only  unused
    DOC
socket.connection.setup.timeout.ms  LONG  10000  -  MEDIUM  read-only  unused
    DOC
socket.listen.backlog.size  INT  50  1..  MEDIUM  read-only  used
    DOC
socket.receive.buffer.bytes  INT  102400  -  HIGH  read-only  used
    DOC
socket.request.max.bytes  INT  104857600  1..  HIGH  read-only  used
    DOC
socket.send.buffer.bytes  INT  102400  -  HIGH  read-only  used
    DOC
"""
