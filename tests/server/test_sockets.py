"""What the kernel is told of the sockets of clients."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.server.conftest import BrokerThread, Peer

from ottla.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse

HELLO = ApiVersionsRequest(client_software_name="c", client_software_version="1")


#: What /proc/net/tcp says of a socket that is asked now and then whether it is still there.
KEEPALIVE = "02"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux has /proc/net/tcp")
def test_a_client_whose_machine_vanished_is_looked_for(running: BrokerThread, peer: Peer) -> None:
    peer.ask(HELLO, 3, ApiVersionsResponse)
    ends = (running.port, peer.socket.getsockname()[1])
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    timers = [row[5].split(":")[0] for row in rows if tuple(int(row[at].split(":")[1], 16) for at in (1, 2)) == ends]
    assert timers == [KEEPALIVE]


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has one family of addresses")
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_listener_without_a_host_takes_both_families(make_broker: Callable[..., BrokerThread], address: str) -> None:
    with make_broker(listeners="PLAINTEXT://:0") as running, socket.create_connection((address, running.port), 10):
        pass
