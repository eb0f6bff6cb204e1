"""The client without `await`: the same three classes, each with a private event loop in a thread of its own.

    from ottla.client.sync import Producer

    with Producer(bootstrap_servers="localhost:9092") as producer:
        producer.send_and_wait("greetings", b"hello")

Methods wait in the caller's thread for what the asyncio ones await. Ctrl-C ends a wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ottla.lazy_names import lazy_names

if TYPE_CHECKING:
    from ottla.client.sync.admin import Admin
    from ottla.client.sync.consumer import Consumer
    from ottla.client.sync.producer import Producer

__all__ = ["Admin", "Consumer", "Producer"]


if not TYPE_CHECKING:  # a type checker would take every name for one that exists
    __getattr__ = lazy_names(__name__, {name: f"{__name__}.{name.lower()}" for name in __all__})


def __dir__() -> list[str]:
    return __all__
