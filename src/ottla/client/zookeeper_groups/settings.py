"""The settings of a consumer of Kafka 0.8's kind, under 0.8's names and with its defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ottla.client.errors import SettingsError
from ottla.client.settings import INT32_MAX, checked_values, setting
from ottla.coordination.zookeeper.addresses import BadConnectString, parse_connect_string

#: As 0.8 checks the names of groups and consumers: they are names of nodes.
_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")
_EARLIEST: Final = frozenset({"smallest", "earliest"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ZookeeperConsumerSettings:
    #: `host:port,host:port/chroot`: where the brokers have registered.
    zookeeper_connect: str = ""
    group_id: str | None = None
    #: A member's own name; without one it is made of host, time and a random number.
    consumer_id: str | None = None
    client_id: str = "ottla"
    #: A member that ZooKeeper does not hear from for so long is taken for dead, and loses its partitions.
    zookeeper_session_timeout_ms: int = setting(6_000, least=1, most=INT32_MAX)
    #: 0: as long as a session lasts.
    zookeeper_connection_timeout_ms: int = setting(0, least=0, most=INT32_MAX)
    zookeeper_sync_time_ms: int = setting(2_000, least=0, most=INT32_MAX)
    #: How often a member tries to get its share before a poll says that it cannot.
    rebalance_max_retries: int = setting(4, least=1, most=INT32_MAX)
    #: How long it waits between two tries; -1: zookeeper.sync.time.ms.
    rebalance_backoff_ms: int = setting(-1, least=-1, most=INT32_MAX)
    partition_assignment_strategy: str = setting("range", one_of=("range", "roundrobin"))
    auto_commit_enable: bool = True
    auto_commit_interval_ms: int = setting(60_000, least=1, most=INT32_MAX)
    #: Where a partition begins that the tree has no offset of, or one that is not there.
    auto_offset_reset: str = setting("largest", one_of=("largest", "smallest", "latest", "earliest"))
    #: Whether a pattern passes over `__consumer_offsets` and its like.
    exclude_internal_topics: bool = True
    fetch_message_max_bytes: int = setting(1_048_576, least=0, most=INT32_MAX)
    fetch_min_bytes: int = setting(1, least=0, most=INT32_MAX)
    fetch_wait_max_ms: int = setting(100, least=0, most=INT32_MAX)
    #: Of the connections to brokers.
    socket_timeout_ms: int = setting(30_000, least=1, most=INT32_MAX)
    offsets_storage: str = setting("zookeeper", one_of=("zookeeper",))

    @property
    def backoff_ms(self) -> int:
        return self.zookeeper_sync_time_ms if self.rebalance_backoff_ms < 0 else self.rebalance_backoff_ms

    @property
    def connection_timeout_ms(self) -> int:
        return self.zookeeper_connection_timeout_ms or self.zookeeper_session_timeout_ms

    def of_reading(self, bootstrap: str) -> dict[str, Any]:
        """What the consumer without a group is given, which reads the partitions."""
        return {
            "bootstrap.servers": bootstrap,
            "client.id": self.client_id,
            "auto.offset.reset": "earliest" if self.auto_offset_reset in _EARLIEST else "latest",
            "max.partition.fetch.bytes": self.fetch_message_max_bytes,
            "fetch.min.bytes": self.fetch_min_bytes,
            "fetch.max.wait.ms": self.fetch_wait_max_ms,
            "request.timeout.ms": self.socket_timeout_ms,
            "allow.auto.create.topics": False,
        }


def parse_zookeeper_settings(given: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> ZookeeperConsumerSettings:
    made = ZookeeperConsumerSettings(**checked_values(ZookeeperConsumerSettings, given, keywords))
    if not made.zookeeper_connect:
        raise SettingsError("zookeeper.connect is missing: give at least one host:port")
    try:
        parse_connect_string(made.zookeeper_connect)
    except BadConnectString as fault:
        raise SettingsError(str(fault)) from fault
    if made.group_id is None:
        raise SettingsError("group.id is missing")
    for name, value in (("group.id", made.group_id), ("consumer.id", made.consumer_id)):
        if value is not None and (not _NAME.fullmatch(value) or value in {".", ".."}):
            raise SettingsError(f"{name} {value!r} has other characters than letters, digits, '.', '_' and '-'")
    return made
