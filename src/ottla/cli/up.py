"""Start a broker on this host, or several with -n, without a configuration file.

Prints `Ottla is listening on HOST:PORT` once clients can connect; Ctrl-C stops it cleanly. With -n each broker is a
process, as is their coordination tree, and what dies is started again. Its data stays in
$XDG_STATE_HOME/ottla (~/.local/state/ottla where that is not set) or in --data DIR, and is there at the next start.
DIR may be a log directory of Apache Kafka: its topics are served from then on.
KAFKA_* variables set properties as in Kafka's container image: KAFKA_LOG_RETENTION_HOURS is log.retention.hours.
"""

from __future__ import annotations

import argparse

from ottla.cli.addresses import HOST_DEFAULT, PORT_DEFAULT
from ottla.cli.faults import UsageFault
from ottla.cli.numbers import partition_count, port_number


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port", type=port_number, metavar="N", help=f"listen on this port (default {PORT_DEFAULT}); 0: a free one"
    )
    parser.add_argument(
        "--host", metavar="ADDRESS", help="listen on this address (default 127.0.0.1); 0.0.0.0: on all of this host"
    )
    parser.add_argument(
        "-n", "--brokers", type=_brokers, default=1, metavar="N", help="start a cluster of so many brokers (default 1)"
    )
    parser.add_argument("--zookeeper", metavar="HOST:PORT", help="of the cluster's tree, in place of one of its own")
    parser.add_argument("--data", metavar="DIR", help="keep everything below this folder; it is made if need be")
    parser.add_argument("--json-logs", action="store_true", help="write the log as a JSON object a line")
    parser.add_argument(
        "--log-level", type=str.upper, choices=("DEBUG", "INFO", "WARN", "ERROR", "OFF"), help="default: INFO"
    )
    parser.add_argument(
        "--set",
        dest="properties",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="set a broker's property",
    )
    parser.add_argument(
        "--topic", dest="topics", metavar="NAME[:PARTITIONS]", action="append", default=[], help="have this topic there"
    )
    parser.add_argument(
        "--metrics-port",
        type=port_number,
        metavar="N",
        help="serve /metrics, /health and /ready on this port; 0: a free one",
    )


def _brokers(text: str) -> int:
    from ottla.local_cluster.layout import BROKERS_MAX

    if not text.isdecimal() or not 1 <= int(text) <= BROKERS_MAX:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of brokers: 1 to {BROKERS_MAX}")
    return int(text)


def run(options: argparse.Namespace) -> int:
    if options.brokers > 1 or options.zookeeper is not None:
        from ottla.cli.up_cluster import run_cluster

        return run_cluster(options, _topics(options.topics), _explicit(options))
    from ottla.cli.serving import configured, run_broker
    from ottla.config.cluster_defaults import up_defaults

    defaults = {**up_defaults(1), "listeners": _listener(HOST_DEFAULT, PORT_DEFAULT)}
    topics = _topics(options.topics)
    config = configured({}, _explicit(options), defaults)
    return run_broker(config, "choose another port with --port N, or --port 0 for a free one", topics)


def _topics(texts: list[str]) -> dict[str, int | None]:
    """Partitions by name; None for as many as the broker makes by default."""
    from ottla.cli.options import check_name

    found: dict[str, int | None] = {}
    for text in texts:
        name, colon, number = text.partition(":")
        check_name(name)
        try:
            found[name] = partition_count(number) if colon else None
        except argparse.ArgumentTypeError as error:
            raise UsageFault(f"--topic {text}: {error}") from error
    return found


def _explicit(options: argparse.Namespace) -> dict[str, str]:
    import os.path

    from ottla.cli.assignments import assignments

    explicit: dict[str, str] = {}
    if options.host == "":
        raise UsageFault("--host is empty: name an address, or leave it out for 127.0.0.1")
    if options.port is not None or options.host is not None:
        port = PORT_DEFAULT if options.port is None else options.port
        explicit["listeners"] = _listener(options.host or HOST_DEFAULT, port)
    if options.data == "":
        raise UsageFault("--data is empty: name a folder, or leave it out for the user's state folder")
    if options.data is not None:
        explicit["log.dirs"] = _log_directory(os.path.abspath(options.data))
    if options.log_level is not None:
        explicit["ottla.log.level"] = options.log_level
    if options.json_logs:
        explicit["ottla.log.json"] = "true"
    if options.metrics_port is not None:
        explicit["ottla.metrics.port"] = str(options.metrics_port)
    given = assignments("--set", options.properties)
    twice = sorted(set(given) & set(explicit))
    if twice:
        raise UsageFault(f"--set {twice[0]}: another option says that already")
    return {**explicit, **given}


def _log_directory(data: str) -> str:
    """A folder of it; or itself, where a broker has used it as a log directory.

    The tree beside it shows that too: of a directory that has lost its file, or is not mounted, no other is begun.
    """
    import os.path

    used = os.path.exists(os.path.join(data, "meta.properties")) or os.path.exists(f"{data}.coordination")
    return data if used else os.path.join(data, "data")


def _listener(host: str, port: int) -> str:
    in_brackets = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"PLAINTEXT://{in_brackets}:{port}"
