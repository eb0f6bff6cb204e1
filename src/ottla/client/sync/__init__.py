"""The client without `await`: the same three classes, each with a private event loop in a thread of its own.

    from ottla.client.sync import Producer

    with Producer(bootstrap_servers="localhost:9092") as producer:
        producer.send_and_wait("greetings", b"hello")

Methods wait in the caller's thread for what the asyncio ones await. Ctrl-C ends a wait.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.client.sync.admin import Admin
    from ottla.client.sync.consumer import Consumer
    from ottla.client.sync.producer import Producer

__all__ = ["Admin", "Consumer", "Producer"]


if not TYPE_CHECKING:  # a type checker would take every name for one that exists

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{name.lower()}"), name)


def __dir__() -> list[str]:
    return __all__
