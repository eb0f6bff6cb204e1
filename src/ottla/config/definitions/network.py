"""Properties of listeners, connections and requests."""

from __future__ import annotations

from typing import Final

TABLE: Final = """\
advertised.listeners  LIST  -  some  HIGH  read-only  used
    The addresses to which clients are to connect; unset means those of listeners.
background.threads  INT  10  1..  HIGH  cluster-wide  unused
    How many of Kafka's threads do background work.
connections.max.idle.ms  LONG  600000  -  MEDIUM  read-only  used
    A connection without a request for so long is closed, and so is one whose request takes longer to come.
fetch.max.bytes  INT  57671680  1024..  MEDIUM  read-only  used
    The most that one Fetch answer holds, whatever the client asks for.
fetch.purgatory.purge.interval.requests  INT  1000  -  MEDIUM  read-only  unused
    After how many requests Kafka purges its list of waiting Fetch requests.
inter.broker.listener.name  STRING  -  -  MEDIUM  read-only  used
    The listener that brokers use among themselves.
listener.security.protocol.map  STRING  \
SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT  -  LOW  read-only  used
    Which protocol each listener name speaks, as NAME:PROTOCOL, separated by commas.
listeners  LIST  PLAINTEXT://:9092  some  HIGH  read-only  used
    The addresses to listen on, as NAME://host:port, separated by commas; an empty host means all interfaces.
max.connection.creation.rate  INT  2147483647  0..  MEDIUM  cluster-wide  used
    How many new connections a second are accepted; listener.name.NAME.max.connection.creation.rate is for one listener.
max.connections  INT  2147483647  0..  MEDIUM  cluster-wide  used
    How many connections there may be at a time; also for one listener, as listener.name.NAME.max.connections.
max.connections.per.ip  INT  2147483647  0..  MEDIUM  cluster-wide  used
    How many connections one address may have at a time.
max.connections.per.ip.overrides  STRING  ""  -  MEDIUM  cluster-wide  used
    Other limits for some addresses or host names, as HOST:NUMBER, separated by commas.
max.incremental.fetch.session.cache.slots  INT  1000  0..  MEDIUM  read-only  used
    How many fetch sessions are kept; a client without one sends full requests.
max.request.partition.size.limit  INT  2000  1..  MEDIUM  read-only  used
    How many partitions one DescribeTopicPartitions answer holds at most.
num.io.threads  INT  8  1..  HIGH  cluster-wide  unused
    How many of Kafka's threads handle requests; one event loop does it here.
num.network.threads  INT  3  1..  HIGH  cluster-wide  unused
    How many of Kafka's threads read and write sockets; one event loop does it here.
queued.max.request.bytes  LONG  -1  -  MEDIUM  read-only  used
    No more requests are read while those in hand hold so many bytes; -1 for no limit.
queued.max.requests  INT  500  1..  HIGH  read-only  unused
    No more requests are read while so many wait for their turn.
request.timeout.ms  INT  30000  -  HIGH  read-only  used
    How long this broker waits for another one's answer.
security.inter.broker.protocol  STRING  PLAINTEXT  {PLAINTEXT,SSL,SASL_PLAINTEXT,SASL_SSL}  MEDIUM  read-only  used
    The protocol, and thereby the listener, that brokers use among themselves.
socket.connection.setup.timeout.max.ms  LONG  30000  -  MEDIUM  read-only  unused
    The longest that this broker waits for a connection to another one, after failures.
socket.connection.setup.timeout.ms  LONG  10000  -  MEDIUM  read-only  unused
    How long this broker waits at first for a connection to another one.
socket.listen.backlog.size  INT  50  1..  MEDIUM  read-only  unused
    How many connections may wait to be accepted.
socket.receive.buffer.bytes  INT  102400  -  HIGH  read-only  unused
    The sockets' receive buffer; -1 leaves the system's own choice.
socket.request.max.bytes  INT  104857600  1..  HIGH  read-only  used
    A request larger than this closes its connection.
socket.send.buffer.bytes  INT  102400  -  HIGH  read-only  used
    The sockets' send buffer, where it is set; -1 leaves the system's own choice.
"""
