"""`ottla up -n`: the supervisor of a cluster on this host, until a signal ends it."""

from __future__ import annotations

import argparse
import asyncio
import errno
import os
import signal
import sys
from collections.abc import Mapping
from typing import Final

from ottla import logs
from ottla.broker.broker import StartFault
from ottla.cli.faults import OK, SaidFault, UsageFault
from ottla.cli.serving import configured, make_topics, refused
from ottla.cli.streams import print_address
from ottla.config.cluster_defaults import up_defaults
from ottla.config.environment import default_data_directory
from ottla.local_cluster.free_ports import listened_on
from ottla.local_cluster.layout import Wishes
from ottla.local_cluster.member import StartFailed
from ottla.local_cluster.supervisor import LocalCluster

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_FIRST: Final = "the others get what is free behind it"
#: What differs from broker to broker, and is planned here; with the option that says it of the first.
_PLANNED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("broker.id", "node.id", "zookeeper.connect", "advertised.listeners"), ""),
    **dict.fromkeys(("advertised.host.name", "advertised.port"), ""),
    **dict.fromkeys(("listeners", "host.name", "port"), f": --host and --port name the first one's, and {_FIRST}"),
    "ottla.metrics.port": f": --metrics-port names the first one's, and {_FIRST}",
    "log.dir": ": --data names the first one's, and the others' are beside it",
}


def run_cluster(options: argparse.Namespace, topics: Mapping[str, int | None], explicit: Mapping[str, str]) -> int:
    wishes = _wishes(options, explicit)
    _check_tree(options.zookeeper)
    # What each broker would say of it is said once, and before anything is started.
    json = configured({}, explicit, up_defaults(wishes.brokers)).observe.log_json
    wishes = wishes._replace(json_logs=json)
    try:
        _check_address(wishes)
        asyncio.run(_serve(wishes, options.zookeeper, topics, json=json))
    except StartFailed as fault:
        if json and str(fault).startswith("{"):  # an event of that process, which was passed on
            raise SaidFault(str(fault)) from fault
        raise refused(str(fault), json=json) from fault
    except (StartFault, OSError) as fault:
        raise refused(str(fault), json=json) from fault
    return OK


def _check_tree(address: str | None) -> None:
    from ottla.coordination.zookeeper.addresses import BadConnectString, parse_connect_string

    if address is not None:
        try:
            parse_connect_string(address)
        except BadConnectString as fault:
            raise UsageFault(f"--zookeeper: {fault}") from fault


def _check_address(wishes: Wishes) -> None:
    """The first broker's: the others take what is free. Raises StartFault."""
    try:
        listened_on(wishes.host, wishes.port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            step = "choose another port with --port N, or --port 0 for a free one"
        else:
            step = "name an address of this host with --host, or leave it out for 127.0.0.1"
        at = f"{wishes.host}:{wishes.port}"
        raise StartFault(f"cannot listen on {at}: {error.strerror or error}; {step}") from error


def _wishes(options: argparse.Namespace, explicit: Mapping[str, str]) -> Wishes:
    from ottla.cli.addresses import HOST_DEFAULT, PORT_DEFAULT

    # These two stand among what is explicit where their options were given.
    by_options = {"listeners"} if options.host is not None or options.port is not None else set()
    by_options |= {"ottla.metrics.port"} if options.metrics_port is not None else set()
    twice = sorted(_PLANNED.keys() & explicit.keys() - by_options)
    if twice:
        raise UsageFault(f"--set {twice[0]}: each of several brokers has its own{_PLANNED[twice[0]]}")
    log_dirs = explicit.get("log.dirs") or default_data_directory(os.environ)
    if "," in log_dirs:
        raise UsageFault("--set log.dirs: several brokers have one log directory each; name the first one's")
    planned = {"listeners", "log.dirs", "ottla.metrics.port"}
    return Wishes(
        brokers=options.brokers,
        first_log_dir=log_dirs,
        host=options.host or HOST_DEFAULT,
        port=PORT_DEFAULT if options.port is None else options.port,
        properties={name: value for name, value in explicit.items() if name not in planned},
        metrics_port=options.metrics_port,
    )


async def _serve(wishes: Wishes, zookeeper: str | None, topics: Mapping[str, int | None], *, json: bool) -> None:
    logs.configure(json=json)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        # A user who starts it by `nohup` wants it to outlive the terminal.
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, stop.set)
    cluster = LocalCluster(wishes, _pass_on_json if json else _pass_on, zookeeper)
    start = asyncio.ensure_future(_started(cluster, topics))
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait([start, stopped], return_when=asyncio.FIRST_COMPLETED)
        if start.done():
            start.result()
            await stopped
    finally:
        stopped.cancel()
        start.cancel()
        await asyncio.wait([start])
        await cluster.stop()


async def _started(cluster: LocalCluster, topics: Mapping[str, int | None]) -> None:
    addresses = await cluster.start()
    if topics:
        await make_topics(addresses[0], topics)
    # One address is enough, and the others are behind it.
    print_address(f"Ottla is listening on {addresses[0]}", "up")


def _pass_on(name: str, line: bytes) -> None:
    _write(b"%-9s %s" % (name.encode(), line))


def _pass_on_json(name: str, line: bytes) -> None:
    named = b'{"process":"%s",%s' % (name.encode(), line[1:]) if line.startswith(b'{"') else line
    _write(named)


def _write(line: bytes) -> None:
    try:
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()
    except OSError:
        pass  # nobody reads it
