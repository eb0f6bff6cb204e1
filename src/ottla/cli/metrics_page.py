"""`--metrics-port` of the verbs that are no brokers and run until they are stopped."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ottla.cli.faults import CommandFault
from ottla.cli.numbers import port_number

if TYPE_CHECKING:
    from ottla.metrics import Registry
    from ottla.server.metrics_http import MetricsEndpoint

_HOST_DEFAULT = "127.0.0.1"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--metrics-port", type=port_number, metavar="PORT", help="serve /metrics on this port; 0: a free one"
    )
    parser.add_argument(
        "--metrics-host",
        type=_address,
        metavar="HOST",
        default=_HOST_DEFAULT,
        help=f"and on this address (default {_HOST_DEFAULT})",
    )


def _address(text: str) -> str:
    """To the event loop an empty one would be all of this host's."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty: name an address")
    return text


async def served(options: argparse.Namespace, registry: Registry) -> MetricsEndpoint:
    """On the loop that calls it, until it is closed."""
    from ottla.server.metrics_http import READY, MetricsEndpoint

    endpoint = MetricsEndpoint(registry, options.metrics_host, options.metrics_port, lambda: READY)
    try:
        await endpoint.start()
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandFault(f"--metrics-port: cannot listen on {endpoint.address}: {reason}") from error
    return endpoint
