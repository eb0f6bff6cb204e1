"""security"""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
allow.everyone.if.no.acl.found  BOOLEAN  false  -  MEDIUM  read-only  unused
    DOC
authorizer.class.name  STRING  ""  -  LOW  read-only  unused
    DOC
connection.failed.authentication.delay.ms  INT  100  0..  LOW  read-only  unused
    DOC
connections.max.reauth.ms  LONG  0  -  MEDIUM  read-only  unused
    DOC
delegation.token.expiry.check.interval.ms  LONG  3600000  1..  LOW  read-only  unused
    DOC
delegation.token.expiry.time.ms  LONG  86400000  1..  MEDIUM  read-only  unused
    DOC
delegation.token.max.lifetime.ms  LONG  604800000  1..  MEDIUM  read-only  unused
    DOC
delegation.token.secret.key  PASSWORD  -  -  MEDIUM  read-only  unused
    DOC
principal.builder.class  CLASS  \
org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder  -  MEDIUM  per-broker  unused
    DOC
sasl.client.callback.handler.class  CLASS  -  -  MEDIUM  read-only  unused
    DOC
sasl.enabled.mechanisms  LIST  GSSAPI  -  MEDIUM  per-broker  unused
    DOC
sasl.jaas.config  PASSWORD  -  -  MEDIUM  per-broker  unused
    DOC
sasl.kerberos.kinit.cmd  STRING  /usr/bin/kinit  -  MEDIUM  per-broker  unused
    DOC
sasl.kerberos.min.time.before.relogin  LONG  60000  -  MEDIUM  per-broker  unused
    DOC
sasl.kerberos.principal.to.local.rules  LIST  DEFAULT  -  MEDIUM  per-broker  unused
    DOC
sasl.kerberos.service.name  STRING  -  -  MEDIUM  per-broker  unused
    DOC
sasl.kerberos.ticket.renew.jitter  DOUBLE  0.05  -  MEDIUM  per-broker  unused
    DOC
sasl.kerberos.ticket.renew.window.factor  DOUBLE  0.8  -  MEDIUM  per-broker  unused
    DOC
sasl.login.callback.handler.class  CLASS  -  -  MEDIUM  read-only  unused
    DOC
sasl.login.class  CLASS  -  -  MEDIUM  read-only  unused
    DOC
sasl.login.connect.timeout.ms  INT  -  -  LOW  read-only  unused
    DOC
sasl.login.read.timeout.ms  INT  -  -  LOW  read-only  unused
    DOC
sasl.login.refresh.buffer.seconds  SHORT  300  -  MEDIUM  per-broker  unused
    DOC
sasl.login.refresh.min.period.seconds  SHORT  60  -  MEDIUM  per-broker  unused
    DOC
sasl.login.refresh.window.factor  DOUBLE  0.8  -  MEDIUM  per-broker  unused
    DOC
sasl.login.refresh.window.jitter  DOUBLE  0.05  -  MEDIUM  per-broker  unused
    DOC
sasl.login.retry.backoff.max.ms  LONG  10000  -  LOW  read-only  unused
    DOC
sasl.login.retry.backoff.ms  LONG  100  -  LOW  read-only  unused
    DOC
sasl.mechanism.controller.protocol  STRING  GSSAPI  -  HIGH  read-only  unused
    DOC
sasl.mechanism.inter.broker.protocol  STRING  GSSAPI  -  MEDIUM  per-broker  unused
    DOC
sasl.oauthbearer.assertion.algorithm  STRING  RS256  assertion-algorithm  MEDIUM  read-only  unused
    DOC
sasl.oauthbearer.assertion.claim.aud  STRING  -  -  MEDIUM  read-only  unused
    DOC
sasl.oauthbearer.assertion.claim.exp.seconds  INT  300  0..86400  LOW  read-only  unused
    DOC
sasl.oauthbearer.assertion.claim.iss  STRING  -  -  MEDIUM  read-only  unused
    DOC
sasl.oauthbearer.assertion.claim.jti.include  BOOLEAN  false  -  MEDIUM  read-only  unused
    DOC
sasl.oauthbearer.assertion.claim.nbf.seconds  INT  60  0..3600  LOW  read-only  unused
    DOC
sasl.oauthbearer.assertion.claim.sub  STRING  -  -  MEDIUM  read-only  unused
    DOC
sasl.oauthbearer.assertion.file  STRING  -  -  MEDIUM  read-only  unused
    DOC
sasl.oauthbearer.assertion.private.key.file  STRING  -  -  MEDIUM  read-only  unused
    DOC
sasl.oauthbearer.assertion.private.key.passphrase  PASSWORD  -  -  MEDIUM  read-only  unused
    DOC
sasl.oauthbearer.assertion.template.file  STRING  -  -  MEDIUM  read-only  unused
    DOC
sasl.oauthbearer.client.credentials.client.id  STRING  -  -  MEDIUM  read-only  unused
    DOC
sasl.oauthbearer.client.credentials.client.secret  PASSWORD  -  -  MEDIUM  read-only  unused
    DOC
sasl.oauthbearer.clock.skew.seconds  INT  30  -  LOW  read-only  unused
    DOC
sasl.oauthbearer.expected.audience  LIST  ""  -  HIGH  read-only  unused
    DOC
sasl.oauthbearer.expected.issuer  STRING  -  -  HIGH  read-only  unused
    DOC
sasl.oauthbearer.jwks.endpoint.refresh.ms  LONG  3600000  -  LOW  read-only  unused
    DOC
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms  LONG  10000  -  LOW  read-only  unused
    DOC
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms  LONG  100  -  LOW  read-only  unused
    DOC
sasl.oauthbearer.jwks.endpoint.url  STRING  -  -  MEDIUM  read-only  unused
    DOC
sasl.oauthbearer.jwt.retriever.class  CLASS  \
org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever  -  MEDIUM  read-only  unused
    DOC
sasl.oauthbearer.jwt.validator.class  CLASS  \
org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator  -  MEDIUM  read-only  unused
    DOC
sasl.oauthbearer.scope  STRING  -  -  MEDIUM  read-only  unused
    DOC
sasl.oauthbearer.scope.claim.name  STRING  scope  -  LOW  read-only  unused
    DOC
sasl.oauthbearer.sub.claim.name  STRING  sub  -  LOW  read-only  unused
    DOC
sasl.oauthbearer.token.endpoint.url  STRING  -  -  MEDIUM  read-only  unused
    DOC
sasl.server.callback.handler.class  CLASS  -  -  MEDIUM  read-only  unused
    DOC
sasl.server.max.receive.size  INT  524288  -  MEDIUM  read-only  unused
    DOC
security.providers  STRING  -  -  LOW  read-only  unused
    DOC
ssl.allow.dn.changes  BOOLEAN  false  -  LOW  read-only  unused
    DOC
ssl.allow.san.changes  BOOLEAN  false  -  LOW  read-only  unused
    DOC
ssl.cipher.suites  LIST  ""  -  MEDIUM  per-broker  unused
    DOC
ssl.client.auth  STRING  none  {required,requested,none}  MEDIUM  per-broker  unused
    DOC
ssl.enabled.protocols  LIST  TLSv1.2,TLSv1.3  -  MEDIUM  per-broker  unused
    DOC
ssl.endpoint.identification.algorithm  STRING  https  -  LOW  per-broker  unused
    DOC
ssl.engine.factory.class  CLASS  -  -  LOW  per-broker  unused
    DOC
ssl.key.password  PASSWORD  -  -  MEDIUM  per-broker  unused
    DOC
ssl.keymanager.algorithm  STRING  SunX509  -  MEDIUM  per-broker  unused
    DOC
ssl.keystore.certificate.chain  PASSWORD  -  -  MEDIUM  per-broker  unused
    DOC
ssl.keystore.key  PASSWORD  -  -  MEDIUM  per-broker  unused
    DOC
ssl.keystore.location  STRING  -  -  MEDIUM  per-broker  unused
    DOC
ssl.keystore.password  PASSWORD  -  -  MEDIUM  per-broker  unused
    DOC
ssl.keystore.type  STRING  JKS  -  MEDIUM  per-broker  unused
    DOC
ssl.principal.mapping.rules  STRING  DEFAULT  -  LOW  read-only  unused
    DOC
ssl.protocol  STRING  TLSv1.3  -  MEDIUM  per-broker  unused
    DOC
ssl.provider  STRING  -  -  MEDIUM  per-broker  unused
    DOC
ssl.secure.random.implementation  STRING  -  -  LOW  per-broker  unused
    DOC
ssl.trustmanager.algorithm  STRING  PKIX  -  MEDIUM  per-broker  unused
    DOC
ssl.truststore.certificates  PASSWORD  -  -  MEDIUM  per-broker  unused
    DOC
ssl.truststore.location  STRING  -  -  MEDIUM  per-broker  unused
    DOC
ssl.truststore.password  PASSWORD  -  -  MEDIUM  per-broker  unused
    DOC
ssl.truststore.type  STRING  JKS  -  MEDIUM  per-broker  unused
    DOC
super.users  STRING  ""  -  MEDIUM  read-only  unused
    DOC
"""
