"""Properties that Kafka had in its ZooKeeper mode (3.9 and before) and has no more; one is older yet, of 0.8."""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
auto.include.jmx.reporter  BOOLEAN  true  -  LOW  read-only  unused
    Whether Kafka 3.9 reports through JMX without being asked to.
broker.id.generation.enable  BOOLEAN  true  -  MEDIUM  read-only  used
    Whether a broker without a number is given the next free one.
control.plane.listener.name  STRING  -  -  HIGH  read-only  used
    A listener of its own for the controller's requests to brokers.
controlled.shutdown.max.retries  INT  3  -  MEDIUM  read-only  used
    How often a stopping broker asks the controller to take its leaderships.
controlled.shutdown.retry.backoff.ms  LONG  5000  -  MEDIUM  read-only  used
    How long a stopping broker waits between two such requests.
delegation.token.master.key  PASSWORD  -  -  MEDIUM  read-only  unused
    The old name of delegation.token.secret.key.
inter.broker.protocol.version  STRING  3.9-IV0  -  MEDIUM  read-only  unused
    The version that Kafka 3.9's brokers speak among themselves; brokers agree by ApiVersions here.
leader.imbalance.per.broker.percentage  INT  10  -  HIGH  read-only  used
    How many percent of a broker's leaderships may be elsewhere before they are moved back.
log.message.downconversion.enable  BOOLEAN  true  -  LOW  read-only  unused
    Whether batches are converted for consumers older than version 0.11.
log.message.format.version  STRING  3.0-IV1  -  MEDIUM  read-only  unused
    The version of the record format; only the current one is written.
log.message.timestamp.difference.max.ms  LONG  9223372036854775807  0..  MEDIUM  read-only  unused
    How far a timestamp may be off; now split into .before.max.ms and .after.max.ms.
offsets.commit.required.acks  SHORT  -1  -  HIGH  read-only  unused
    How many replicas an offset commit waits for.
password.encoder.cipher.algorithm  STRING  AES/CBC/PKCS5Padding  -  LOW  read-only  unused
    How Kafka 3.9 encrypts passwords in ZooKeeper.
password.encoder.iterations  INT  4096  1024..  LOW  read-only  unused
    How many rounds the encryption key of passwords takes.
password.encoder.key.length  INT  128  8..  LOW  read-only  unused
    How long the encryption key of passwords is.
password.encoder.keyfactory.algorithm  STRING  -  -  LOW  read-only  unused
    How the encryption key of passwords is made.
password.encoder.old.secret  PASSWORD  -  -  MEDIUM  read-only  unused
    The secret before the present one, while it is being changed.
password.encoder.secret  PASSWORD  -  -  MEDIUM  read-only  unused
    The secret with which Kafka 3.9 encrypts passwords in ZooKeeper.
replica.lag.max.messages  LONG  -  1..  HIGH  read-only  used
    A follower that is more records behind leaves the in-sync replicas, as in Kafka 0.8; unset: only time decides.
reserved.broker.max.id  INT  1000  0..  MEDIUM  read-only  used
    Generated broker numbers start above this one.
zookeeper.clientCnxnSocket  STRING  -  -  MEDIUM  read-only  unused
    The Java class for connections to ZooKeeper over TLS.
zookeeper.connect  STRING  -  -  HIGH  read-only  used
    The ZooKeeper ensemble as host:port,host:port/path; empty keeps the tree in this process.
zookeeper.connection.timeout.ms  INT  -  1..  HIGH  read-only  used
    How long a start waits for a connection to ZooKeeper; unset means as zookeeper.session.timeout.ms.
zookeeper.max.in.flight.requests  INT  10  1..  HIGH  read-only  used
    How many requests to ZooKeeper may be without an answer.
zookeeper.metadata.migration.enable  BOOLEAN  false  -  HIGH  read-only  unused
    Whether Kafka 3.9 moves its metadata out of ZooKeeper.
zookeeper.metadata.migration.min.batch.size  INT  200  1..  MEDIUM  read-only  unused  internal
    How many records at least that move takes at a time.
zookeeper.session.timeout.ms  INT  6000  1..  HIGH  read-only  used
    A broker that ZooKeeper does not hear from for so long is taken for dead (Kafka 3.9 waits 18000).
zookeeper.set.acl  BOOLEAN  false  -  HIGH  read-only  used
    Whether znodes are written so that only brokers may change them; refused, as there are no credentials yet.
zookeeper.ssl.cipher.suites  LIST  -  -  LOW  read-only  unused
    The TLS cipher suites towards ZooKeeper.
zookeeper.ssl.client.enable  BOOLEAN  false  -  MEDIUM  read-only  used
    Whether ZooKeeper is spoken to over TLS; refused, as there are only plain connections yet.
zookeeper.ssl.crl.enable  BOOLEAN  false  -  LOW  read-only  unused
    Whether revoked certificates of ZooKeeper are looked for in lists.
zookeeper.ssl.enabled.protocols  LIST  -  -  LOW  read-only  unused
    The TLS versions towards ZooKeeper.
zookeeper.ssl.endpoint.identification.algorithm  STRING  HTTPS  -  LOW  read-only  unused
    How ZooKeeper's name is checked against its certificate.
zookeeper.ssl.keystore.location  STRING  -  -  MEDIUM  read-only  unused
    The file with the key towards ZooKeeper.
zookeeper.ssl.keystore.password  PASSWORD  -  -  MEDIUM  read-only  unused
    The pass phrase of that file.
zookeeper.ssl.keystore.type  STRING  -  -  MEDIUM  read-only  unused
    The format of that file.
zookeeper.ssl.ocsp.enable  BOOLEAN  false  -  LOW  read-only  unused
    Whether revoked certificates of ZooKeeper are asked for online.
zookeeper.ssl.protocol  STRING  TLSv1.2  -  LOW  read-only  unused
    The TLS version that is preferred towards ZooKeeper.
zookeeper.ssl.truststore.location  STRING  -  -  MEDIUM  read-only  unused
    The file with the certificates that are trusted towards ZooKeeper.
zookeeper.ssl.truststore.password  PASSWORD  -  -  MEDIUM  read-only  unused
    The pass phrase of that file.
zookeeper.ssl.truststore.type  STRING  -  -  MEDIUM  read-only  unused
    The format of that file.
"""
