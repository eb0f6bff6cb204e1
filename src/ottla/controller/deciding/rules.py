"""What the controller is given besides the tree: the broker it runs in, defaults, and what overrides are allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from ottla.config import Config
from ottla.config.dynamic import validate_broker_configs
from ottla.config.group import validate_group_configs
from ottla.config.topic import validate_topic_configs
from ottla.metadata.updates import DEFAULT_BROKER
from ottla.model import BrokerId

#: Of one request, as in Kafka: more would hold the controller up for seconds.
PARTITIONS_PER_REQUEST_MAX: Final = 10_000


def _check_broker(broker: str, overrides: Mapping[str, str]) -> None:
    validate_broker_configs(overrides, of_all_brokers=broker == DEFAULT_BROKER)


def _check_group(overrides: Mapping[str, str]) -> None:
    validate_group_configs(overrides, Config.parse())


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerSettings:
    broker_id: BrokerId
    num_partitions: int = 1
    default_replication_factor: int = 1
    delete_topics: bool = True
    unclean_leader_election: bool = False
    #: Whether leaders are given back to the preferred ones by themselves, how often that is looked at, and from which
    #: percentage on of what a broker should lead and does not.
    auto_leader_rebalance: bool = True
    leader_imbalance_check_interval_s: int = 300
    leader_imbalance_percentage: int = 10
    #: Raises the epoch of all that this broker leads at start: after a crash that may have cost unflushed records,
    #: consumers that read them find out by the epoch.
    new_leader_epochs: bool = False
    #: All raise ottla.config's ConfigError. The second gets a broker's id as text, or DEFAULT_BROKER.
    check_topic_configs: Callable[[Mapping[str, str | None]], None] = validate_topic_configs
    check_broker_configs: Callable[[str, Mapping[str, str]], None] = _check_broker
    check_group_configs: Callable[[Mapping[str, str]], None] = _check_group
