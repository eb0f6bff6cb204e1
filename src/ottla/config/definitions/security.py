"""Properties of TLS, SASL, delegation tokens and access control."""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
allow.everyone.if.no.acl.found  BOOLEAN  false  -  MEDIUM  read-only  unused
    Whether a resource without any rule is open to all.
authorizer.class.name  STRING  ""  -  LOW  read-only  unused
    The Java class that Kafka asks for permissions.
connection.failed.authentication.delay.ms  INT  100  0..  LOW  read-only  unused
    How long a connection that failed to authenticate is held before it is closed.
connections.max.reauth.ms  LONG  0  -  MEDIUM  read-only  unused
    How long a login lasts before the client must log in again; 0 for ever.
delegation.token.expiry.check.interval.ms  LONG  3600000  1..  LOW  read-only  unused
    How often expired delegation tokens are looked for.
delegation.token.expiry.time.ms  LONG  86400000  1..  MEDIUM  read-only  unused
    How long a delegation token is good unless it is renewed.
delegation.token.max.lifetime.ms  LONG  604800000  1..  MEDIUM  read-only  unused
    How long a delegation token may be renewed.
delegation.token.secret.key  PASSWORD  -  -  MEDIUM  read-only  unused
    The secret with which delegation tokens are signed; the same on all brokers.
principal.builder.class  CLASS  \
org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder  -  MEDIUM  per-broker  unused
    The Java class that makes a name out of a certificate or a login.
sasl.client.callback.handler.class  CLASS  -  -  MEDIUM  read-only  unused
    A Java class for the client's side of SASL.
sasl.enabled.mechanisms  LIST  GSSAPI  -  MEDIUM  per-broker  unused
    The SASL mechanisms that are offered.
sasl.jaas.config  PASSWORD  -  -  MEDIUM  per-broker  unused
    Login modules and their secrets, in JAAS syntax; with a listener's and mechanism's prefix.
sasl.kerberos.kinit.cmd  STRING  /usr/bin/kinit  -  MEDIUM  per-broker  unused
    Where Kerberos' kinit is.
sasl.kerberos.min.time.before.relogin  LONG  60000  -  MEDIUM  per-broker  unused
    The least time between two Kerberos logins.
sasl.kerberos.principal.to.local.rules  LIST  DEFAULT  -  MEDIUM  per-broker  unused
    How Kerberos principals become short names.
sasl.kerberos.service.name  STRING  -  -  MEDIUM  per-broker  unused
    The Kerberos name that brokers run under.
sasl.kerberos.ticket.renew.jitter  DOUBLE  0.05  -  MEDIUM  per-broker  unused
    How much chance there is in the time of a ticket's renewal.
sasl.kerberos.ticket.renew.window.factor  DOUBLE  0.8  -  MEDIUM  per-broker  unused
    After which share of its life a ticket is renewed.
sasl.login.callback.handler.class  CLASS  -  -  MEDIUM  read-only  unused
    A Java class for logins.
sasl.login.class  CLASS  -  -  MEDIUM  read-only  unused
    A Java class that performs logins.
sasl.login.connect.timeout.ms  INT  -  -  LOW  read-only  unused
    How long a login waits for a connection to the identity provider.
sasl.login.read.timeout.ms  INT  -  -  LOW  read-only  unused
    How long a login waits for the identity provider's answer.
sasl.login.refresh.buffer.seconds  SHORT  300  -  MEDIUM  per-broker  unused
    How long before its end a credential must have been refreshed.
sasl.login.refresh.min.period.seconds  SHORT  60  -  MEDIUM  per-broker  unused
    The least time between two refreshes of a credential.
sasl.login.refresh.window.factor  DOUBLE  0.8  -  MEDIUM  per-broker  unused
    After which share of its life a credential is refreshed.
sasl.login.refresh.window.jitter  DOUBLE  0.05  -  MEDIUM  per-broker  unused
    How much chance there is in the time of a credential's refresh.
sasl.login.retry.backoff.max.ms  LONG  10000  -  LOW  read-only  unused
    The longest pause between two tries to log in.
sasl.login.retry.backoff.ms  LONG  100  -  LOW  read-only  unused
    The first pause between two tries to log in.
sasl.mechanism.controller.protocol  STRING  GSSAPI  -  HIGH  read-only  unused
    The SASL mechanism towards Kafka's controllers.
sasl.mechanism.inter.broker.protocol  STRING  GSSAPI  -  MEDIUM  per-broker  unused
    The SASL mechanism that brokers use among themselves.
sasl.oauthbearer.assertion.algorithm  STRING  RS256  assertion-algorithm  MEDIUM  read-only  unused
    How the assertion for OAuth is signed.
sasl.oauthbearer.assertion.claim.aud  STRING  -  -  MEDIUM  read-only  unused
    The audience in the assertion for OAuth.
sasl.oauthbearer.assertion.claim.exp.seconds  INT  300  0..86400  LOW  read-only  unused
    How long the assertion for OAuth is good.
sasl.oauthbearer.assertion.claim.iss  STRING  -  -  MEDIUM  read-only  unused
    The issuer in the assertion for OAuth.
sasl.oauthbearer.assertion.claim.jti.include  BOOLEAN  false  -  MEDIUM  read-only  unused
    Whether the assertion for OAuth gets an id of its own.
sasl.oauthbearer.assertion.claim.nbf.seconds  INT  60  0..3600  LOW  read-only  unused
    How far back the assertion for OAuth is already good.
sasl.oauthbearer.assertion.claim.sub  STRING  -  -  MEDIUM  read-only  unused
    The subject in the assertion for OAuth.
sasl.oauthbearer.assertion.file  STRING  -  -  MEDIUM  read-only  unused
    A file with a ready assertion for OAuth.
sasl.oauthbearer.assertion.private.key.file  STRING  -  -  MEDIUM  read-only  unused
    A file with the key that signs the assertion for OAuth.
sasl.oauthbearer.assertion.private.key.passphrase  PASSWORD  -  -  MEDIUM  read-only  unused
    The pass phrase of the key that signs the assertion for OAuth.
sasl.oauthbearer.assertion.template.file  STRING  -  -  MEDIUM  read-only  unused
    A file with further claims for the assertion for OAuth.
sasl.oauthbearer.client.credentials.client.id  STRING  -  -  MEDIUM  read-only  unused
    The name under which OAuth's client credentials are asked for.
sasl.oauthbearer.client.credentials.client.secret  PASSWORD  -  -  MEDIUM  read-only  unused
    The secret with which OAuth's client credentials are asked for.
sasl.oauthbearer.clock.skew.seconds  INT  30  -  LOW  read-only  unused
    How far the clocks of an OAuth provider and a broker may differ.
sasl.oauthbearer.expected.audience  LIST  ""  -  HIGH  read-only  unused
    The audiences of which an OAuth token must name one.
sasl.oauthbearer.expected.issuer  STRING  -  -  HIGH  read-only  unused
    The issuer that an OAuth token must name.
sasl.oauthbearer.jwks.endpoint.refresh.ms  LONG  3600000  -  LOW  read-only  unused
    How often an OAuth provider's keys are fetched again.
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms  LONG  10000  -  LOW  read-only  unused
    The longest pause between two tries to fetch an OAuth provider's keys.
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms  LONG  100  -  LOW  read-only  unused
    The first pause between two tries to fetch an OAuth provider's keys.
sasl.oauthbearer.jwks.endpoint.url  STRING  -  -  MEDIUM  read-only  unused
    Where an OAuth provider's keys are.
sasl.oauthbearer.jwt.retriever.class  CLASS  \
org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever  -  MEDIUM  read-only  unused
    A Java class that gets OAuth tokens.
sasl.oauthbearer.jwt.validator.class  CLASS  \
org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator  -  MEDIUM  read-only  unused
    A Java class that checks OAuth tokens.
sasl.oauthbearer.scope  STRING  -  -  MEDIUM  read-only  unused
    The scope for which an OAuth token is asked.
sasl.oauthbearer.scope.claim.name  STRING  scope  -  LOW  read-only  unused
    Under which name an OAuth token holds its scope.
sasl.oauthbearer.sub.claim.name  STRING  sub  -  LOW  read-only  unused
    Under which name an OAuth token holds its subject.
sasl.oauthbearer.token.endpoint.url  STRING  -  -  MEDIUM  read-only  unused
    Where OAuth tokens are got.
sasl.server.callback.handler.class  CLASS  -  -  MEDIUM  read-only  unused
    A Java class for the broker's side of SASL.
sasl.server.max.receive.size  INT  524288  -  MEDIUM  read-only  unused
    The largest message that is read before a client has logged in.
security.providers  STRING  -  -  LOW  read-only  unused
    Java classes that provide security algorithms.
ssl.allow.dn.changes  BOOLEAN  false  -  LOW  read-only  unused
    Whether a new certificate may have another name than the one before.
ssl.allow.san.changes  BOOLEAN  false  -  LOW  read-only  unused
    Whether a new certificate may have other alternative names than the one before.
ssl.cipher.suites  LIST  ""  -  MEDIUM  per-broker  unused
    The TLS cipher suites that are offered.
ssl.client.auth  STRING  none  {required,requested,none}  MEDIUM  per-broker  unused
    Whether a client must (required), may (requested) or need not (none) show a certificate.
ssl.enabled.protocols  LIST  TLSv1.2,TLSv1.3  -  MEDIUM  per-broker  unused
    The TLS versions that are offered.
ssl.endpoint.identification.algorithm  STRING  https  -  LOW  per-broker  unused
    How a server's name is checked against its certificate.
ssl.engine.factory.class  CLASS  -  -  LOW  per-broker  unused
    A Java class that makes TLS engines.
ssl.key.password  PASSWORD  -  -  MEDIUM  per-broker  unused
    The pass phrase of the private key.
ssl.keymanager.algorithm  STRING  SunX509  -  MEDIUM  per-broker  unused
    Java's way to read key stores.
ssl.keystore.certificate.chain  PASSWORD  -  -  MEDIUM  per-broker  unused
    The broker's certificates, in PEM.
ssl.keystore.key  PASSWORD  -  -  MEDIUM  per-broker  unused
    The broker's private key, in PEM.
ssl.keystore.location  STRING  -  -  MEDIUM  per-broker  unused
    The file with the broker's key and certificates.
ssl.keystore.password  PASSWORD  -  -  MEDIUM  per-broker  unused
    The pass phrase of the key store.
ssl.keystore.type  STRING  JKS  -  MEDIUM  per-broker  unused
    The format of the key store.
ssl.principal.mapping.rules  STRING  DEFAULT  -  LOW  read-only  unused
    How names in certificates become short names.
ssl.protocol  STRING  TLSv1.3  -  MEDIUM  per-broker  unused
    The TLS version that is preferred.
ssl.provider  STRING  -  -  MEDIUM  per-broker  unused
    Java's provider of TLS.
ssl.secure.random.implementation  STRING  -  -  LOW  per-broker  unused
    Java's source of random numbers for TLS.
ssl.trustmanager.algorithm  STRING  PKIX  -  MEDIUM  per-broker  unused
    Java's way to read trust stores.
ssl.truststore.certificates  PASSWORD  -  -  MEDIUM  per-broker  unused
    The certificates that are trusted, in PEM.
ssl.truststore.location  STRING  -  -  MEDIUM  per-broker  unused
    The file with the certificates that are trusted.
ssl.truststore.password  PASSWORD  -  -  MEDIUM  per-broker  unused
    The pass phrase of the trust store.
ssl.truststore.type  STRING  JKS  -  MEDIUM  per-broker  unused
    The format of the trust store.
super.users  STRING  ""  -  MEDIUM  read-only  unused
    Principals who may do everything, separated by semicolons.
"""
