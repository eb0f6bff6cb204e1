"""What comes from the environment: `KAFKA_*` variables, as in Kafka's own container image, and the place for data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PREFIX: Final = "KAFKA_"
#: That image formats its log directories for the cluster of this id.
CLUSTER_ID: Final = "CLUSTER_ID"
#: Variables of that image which are not properties: they steer the JVM and its logging.
EXCLUDED: Final = frozenset(
    {
        "KAFKA_VERSION",
        "KAFKA_HEAP_OPT",
        "KAFKA_HEAP_OPTS",
        "KAFKA_LOG4J_OPTS",
        "KAFKA_OPTS",
        "KAFKA_JMX_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JVM_PERFORMANCE_OPTS",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_LOG4J_ROOT_LOGLEVEL",
        "KAFKA_LOG4J_LOGGERS",
        "KAFKA_TOOLS_LOG4J_LOGLEVEL",
        "KAFKA_HOME",
        "KAFKA_DEBUG",
    }
)


def properties_from(env: Mapping[str, str]) -> dict[str, str]:
    """`KAFKA_LOG_DIRS` is log.dirs; two underscores stand for one, three for a hyphen."""
    named = {"ottla.new.cluster.id": env[CLUSTER_ID]} if env.get(CLUSTER_ID) else {}
    return named | {
        property_name(variable): value
        for variable, value in sorted(env.items())
        if variable.startswith(PREFIX) and variable not in EXCLUDED and len(variable) > len(PREFIX)
    }


def property_name(variable: str) -> str:
    name = variable.removeprefix(PREFIX).lower().replace("_", ".")
    return name.replace("...", "-").replace("..", "_")


def default_data_directory(env: Mapping[str, str]) -> str:
    """Where logs go when no property says so: Kafka's default lies under /tmp, which is no place for a log."""
    state = env.get("XDG_STATE_HOME", "")
    if state.startswith("/"):
        return f"{state}/ottla/data"
    home = env.get("HOME", "")
    return f"{home.rstrip('/')}/.local/state/ottla/data" if home.startswith("/") else "/var/lib/ottla/data"
