"""Kafka's configuration under Kafka's names: read, checked, typed, and described.

- `broker.py`      `Config.parse`: everything a broker is configured with, in slices (`slices.py`), one a room
- `log.py`         `LogConfig`: what governs one partition's log
- `topic.py`       a topic's overrides over the broker's defaults
- `dynamic.py`     what may change while a broker runs
- `describe.py`    what DescribeConfigs answers: values, sources, synonyms
- `cluster_defaults.py` what `ottla up` sets for a small cluster
- `files.py`       Java's property files; `environment.py`: `KAFKA_*`
- `values.py`      types and rules; `definitions/`: the table of all names, parsed on first use
"""

from __future__ import annotations

from ottla.config.broker import Config
from ottla.config.cluster_defaults import up_defaults
from ottla.config.errors import ConfigError, UnknownConfigError
from ottla.config.files import PropertyFileError, parse_properties
from ottla.config.listeners import Listener
from ottla.config.log import LogConfig
from ottla.config.topic import effective_log_config, validate_topic_configs

__all__ = [
    "Config",
    "ConfigError",
    "Listener",
    "LogConfig",
    "PropertyFileError",
    "UnknownConfigError",
    "effective_log_config",
    "parse_properties",
    "up_defaults",
    "validate_topic_configs",
]
