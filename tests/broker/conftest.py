"""The same broker and raw sockets as the server's tests use."""

from __future__ import annotations

from tests.server.conftest import make_broker, peer, running

__all__ = ["make_broker", "peer", "running"]
