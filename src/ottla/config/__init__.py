"""Kafka's configuration under Kafka's names: read, checked, typed, and described.

- `broker.py`      `Config.parse`: everything a broker is told, in slices (`slices.py`), one a room
- `log.py`         `LogConfig`: what governs one partition's log
- `topic.py`       a topic's overrides over the broker's defaults
- `dynamic.py`     what may change while a broker runs
- `describe.py`    what DescribeConfigs answers: values, sources, synonyms
- `files.py`       Java's property files; `environment.py`: `KAFKA_*`
- `values.py`      types and rules; `definitions/`: the table of all names, parsed on first use
"""

from __future__ import annotations

from ottla.config.broker import Config
from ottla.config.errors import ConfigError, UnknownConfigError
from ottla.config.listeners import Listener
from ottla.config.log import LogConfig
from ottla.config.topic import effective_log_config, validate_topic_configs

__all__ = [
    "Config",
    "ConfigError",
    "Listener",
    "LogConfig",
    "UnknownConfigError",
    "effective_log_config",
    "validate_topic_configs",
]
