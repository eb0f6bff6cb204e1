"""zookeeper"""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
auto.include.jmx.reporter  BOOLEAN  true  -  LOW  read-only  unused
    DOC
broker.id.generation.enable  BOOLEAN  true  -  MEDIUM  read-only  used
    DOC
control.plane.listener.name  STRING  -  -  HIGH  read-only  used
    DOC
controlled.shutdown.max.retries  INT  3  -  MEDIUM  read-only  used
    DOC
controlled.shutdown.retry.backoff.ms  LONG  5000  -  MEDIUM  read-only  used
    DOC
delegation.token.master.key  PASSWORD  -  -  MEDIUM  read-only  unused
    DOC
inter.broker.protocol.version  STRING  3.9-IV0  -  MEDIUM  read-only  unused
    DOC
leader.imbalance.per.broker.percentage  INT  10  -  HIGH  read-only  used
    DOC
log.message.downconversion.enable  BOOLEAN  true  -  LOW  read-only  unused
    DOC
log.message.format.version  STRING  3.0-IV1  -  MEDIUM  read-only  unused
    DOC
log.message.timestamp.difference.max.ms  LONG  9223372036854775807  0..  MEDIUM  read-only  unused
    DOC
offsets.commit.required.acks  SHORT  -1  -  HIGH  read-only  unused
    DOC
password.encoder.cipher.algorithm  STRING  AES/CBC/PKCS5Padding  -  LOW  read-only  unused
    DOC
password.encoder.iterations  INT  4096  1024..  LOW  read-only  unused
    DOC
password.encoder.key.length  INT  128  8..  LOW  read-only  unused
    DOC
password.encoder.keyfactory.algorithm  STRING  -  -  LOW  read-only  unused
    DOC
password.encoder.old.secret  PASSWORD  -  -  MEDIUM  read-only  unused
    DOC
password.encoder.secret  PASSWORD  -  -  MEDIUM  read-only  unused
    DOC
reserved.broker.max.id  INT  1000  0..  MEDIUM  read-only  used
    DOC
zookeeper.clientCnxnSocket  STRING  -  -  MEDIUM  read-only  unused
    DOC
zookeeper.connect  STRING  -  -  HIGH  read-only  used
    DOC
zookeeper.connection.timeout.ms  INT  -  -  HIGH  read-only  used
    DOC
zookeeper.max.in.flight.requests  INT  10  1..  HIGH  read-only  used
    DOC
zookeeper.metadata.migration.enable  BOOLEAN  false  -  HIGH  read-only  unused
    DOC
zookeeper.metadata.migration.min.batch.size  INT  200  1..  MEDIUM  read-only  unused  internal
    DOC
zookeeper.session.timeout.ms  INT  18000  -  HIGH  read-only  used
    DOC
zookeeper.set.acl  BOOLEAN  false  -  HIGH  read-only  used
    DOC
zookeeper.ssl.cipher.suites  LIST  -  -  LOW  read-only  unused
    DOC
zookeeper.ssl.client.enable  BOOLEAN  false  -  MEDIUM  read-only  unused
    DOC
zookeeper.ssl.crl.enable  BOOLEAN  false  -  LOW  read-only  unused
    DOC
zookeeper.ssl.enabled.protocols  LIST  -  -  LOW  read-only  unused
    DOC
zookeeper.ssl.endpoint.identification.algorithm  STRING  HTTPS  -  LOW  read-only  unused
    DOC
zookeeper.ssl.keystore.location  STRING  -  -  MEDIUM  read-only  unused
    DOC
zookeeper.ssl.keystore.password  PASSWORD  -  -  MEDIUM  read-only  unused
    DOC
zookeeper.ssl.keystore.type  STRING  -  -  MEDIUM  read-only  unused
    DOC
zookeeper.ssl.ocsp.enable  BOOLEAN  false  -  LOW  read-only  unused
    DOC
zookeeper.ssl.protocol  STRING  TLSv1.2  -  LOW  read-only  unused
    DOC
zookeeper.ssl.truststore.location  STRING  -  -  MEDIUM  read-only  unused
    DOC
zookeeper.ssl.truststore.password  PASSWORD  -  -  MEDIUM  read-only  unused
    DOC
zookeeper.ssl.truststore.type  STRING  -  -  MEDIUM  read-only  unused
    DOC
"""
