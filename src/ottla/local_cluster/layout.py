"""Where the brokers of a cluster on one host keep what, and how each is started. Plain data and property files.

    DIR/data                the first broker's log directory, which `ottla up` of one broker uses as well
    DIR/data.coordination   the tree, as there: what was one broker's becomes the cluster's, and back
    DIR/data-2, DIR/data-3  the others'
    DIR/data.cluster/       a property file for each broker, as it was last started: its port is used again; and a
                            lock, since it is started again by that file when it dies

A broker's id is the one that its log directory names; a new one gets the smallest that no other has.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from ottla.config.cluster_defaults import up_defaults
from ottla.config.definitions import broker_definitions
from ottla.java_properties import BadEscape, decode, encode
from ottla.local_cluster.free_ports import bound, free_port
from ottla.ports.disk import Lock
from ottla.ports.real.disk import RealDisk
from ottla.ports.whole_files import write_atomically

#: Brokers of one cluster on one host. Each is a process of its own.
BROKERS_MAX: Final = 32
#: With a tree of ours on the same host: a broker that was not heard of for so long is taken for dead. One whose process
#: has died is at once, as its connection has closed. At its start it waits for the tree as long as Kafka does: many
#: processes that start at once on few processors take seconds.
OWN_TREE: Final[Mapping[str, str]] = {
    "zookeeper.session.timeout.ms": "1500",
    "zookeeper.connection.timeout.ms": "18000",
}
#: Of `listeners` in a property file that was written here.
_LISTENER: Final = "PLAINTEXT://"
_METRICS_HOST: Final = "ottla.metrics.host"
#: Ports behind one that is taken: where so many are in use, the broker that gets the next says so.
_LOOKED_AT: Final = 200


class BrokerPlan(NamedTuple):
    id: int
    #: What makes it this broker, which nothing may say otherwise.
    own: Mapping[str, str]
    #: What its property file says, `own` among it.
    properties: Mapping[str, str]
    config_path: str

    def command_words(self) -> list[str]:
        words = ["broker", "--config", self.config_path, "--end-with-input"]
        for name, value in self.own.items():
            words += ["--override", f"{name}={value}"]
        return words


class Wishes(NamedTuple):
    """What the user asked for."""

    brokers: int
    #: The first broker's log directory.
    first_log_dir: str
    host: str
    #: Of the first broker; 0: a free one. The others get the next ones that are free.
    port: int
    #: For every broker.
    properties: Mapping[str, str]
    #: The first broker's; the others serve theirs on the next ones that are free. None: no metrics.
    metrics_port: int | None = None
    #: Whether each line of the log is a JSON object; for the tree, which has no properties.
    json_logs: bool = False


def tree_directory(first_log_dir: str) -> str:
    return f"{first_log_dir}.coordination"


def cluster_directory(first_log_dir: str) -> str:
    return f"{first_log_dir}.cluster"


def locked(first_log_dir: str) -> Lock:
    """The property files are the caller's from here on. Raises BlockingIOError where another process has them."""
    directory = cluster_directory(first_log_dir)
    os.makedirs(directory, exist_ok=True)
    return RealDisk().lock(os.path.join(directory, ".lock"))


def planned(wishes: Wishes, zookeeper: str, *, own_tree: bool = True) -> Iterator[BrokerPlan]:
    """The brokers, in order; nothing is written yet. `zookeeper` is where their tree is.

    Raises OSError where nobody can listen on the host.
    """
    first = wishes.first_log_dir
    defaults = {**_with_effect(up_defaults(wishes.brokers)), **(OWN_TREE if own_tree else {})}
    directories = [first, *(f"{first}-{number}" for number in range(2, wishes.brokers + 1))]
    ids = _ids(directories)
    paths = [os.path.join(cluster_directory(first), f"broker-{broker_id}.properties") for broker_id in ids]
    ports = _ports(wishes, paths)
    metrics_ports = _metrics_ports(wishes, ports)
    for number, (broker_id, directory) in enumerate(zip(ids, directories, strict=True)):
        own = {
            "broker.id": str(broker_id),
            "listeners": listener(wishes.host, ports[number]),
            "log.dirs": directory,
            "zookeeper.connect": zookeeper,
        }
        if metrics_ports:
            own["ottla.metrics.port"] = str(metrics_ports[number])
        yield BrokerPlan(broker_id, own, {**defaults, **wishes.properties, **own}, paths[number])


def _with_effect(properties: Mapping[str, str]) -> dict[str, str]:
    """A broker says at its start what of its file has no effect, and these the user did not write there."""
    known = broker_definitions()
    return {name: value for name, value in properties.items() if known[name].has_effect}


def write(plan: BrokerPlan) -> None:
    """The plan's property file: the next start finds the port of the last one in it, also after a crash in between."""
    os.makedirs(os.path.dirname(plan.config_path), exist_ok=True)
    said = b"# What this broker was last started with, by `ottla up -n`.\n" + encode(plan.properties)
    write_atomically(RealDisk(), plan.config_path, said)


def listener(host: str, port: int) -> str:
    in_brackets = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"{_LISTENER}{in_brackets}:{port}"


def _ids(directories: list[str]) -> list[int]:
    known = [_stored_id(directory) for directory in directories]
    taken = {broker_id for broker_id in known if broker_id is not None}
    fresh = (number for number in range(1, 2 * BROKERS_MAX) if number not in taken)
    return [next(fresh) if broker_id is None else broker_id for broker_id in known]


def _stored_id(directory: str) -> int | None:
    """As its meta.properties says; the broker itself says what is wrong with a damaged one."""
    found = _properties(os.path.join(directory, "meta.properties")).get("broker.id", "")
    return int(found) if found.isdecimal() else None


def _ports(wishes: Wishes, config_paths: list[str]) -> list[int]:
    """Where each broker listens."""
    # The first one's metrics are at the port that was asked for.
    taken = {wishes.metrics_port} if wishes.metrics_port else set()
    ports: list[int] = []
    for number, path in enumerate(config_paths):
        port = wishes.port if number == 0 and wishes.port else _port(wishes, number, path, taken)
        taken.add(port)
        ports.append(port)
    return ports


def _metrics_ports(wishes: Wishes, listening: Collection[int]) -> list[int]:
    """The first one's as it was asked for, and of each other the next that is free behind; empty for no metrics."""
    if not wishes.metrics_port:
        return [] if wishes.metrics_port is None else [0] * wishes.brokers
    host = wishes.properties.get(_METRICS_HOST) or broker_definitions()[_METRICS_HOST].default or ""
    # Where nobody can listen at all each broker says so itself.
    can_listen = bound(host, 0) > 0
    ports = [wishes.metrics_port]
    while len(ports) < wishes.brokers:
        behind = range(ports[-1] + 1, min(ports[-1] + 1 + _LOOKED_AT, 65536))
        free = (port for port in behind if port not in listening and bound(host, port))
        ports.append(next(free, ports[-1] + 1) if can_listen else ports[-1] + 1)
    return ports


def _port(wishes: Wishes, number: int, config_path: str, taken: set[int]) -> int:
    """As the last time, or the one behind the last broker's, or any."""
    before = _properties(config_path).get("listeners", "").rpartition(":")[2]
    near = [wishes.port + number] if wishes.port else []
    for port in (*([int(before)] if before.isdecimal() else []), *near):
        if 0 < port < 65536 and port not in taken and bound(wishes.host, port):
            return port
    return free_port(wishes.host, taken)


def _properties(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="latin-1") as file:
            return decode(file.read())
    except (OSError, BadEscape):
        return {}
