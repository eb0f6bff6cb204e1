"""What a project's own tests use: a real broker inside the test's process, on a free port, up in a blink.

    with ottla.testing.broker() as broker:
        broker.create_topic("orders", partitions=3)
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap)

Inside an event loop `async with ottla.testing.async_broker() as broker` is the same, and its methods are awaited. With
pytest, the fixtures `ottla_broker` and `topic` (`pytest_plugin.py`) come with the installed package.

Names are loaded when they are first used: pytest imports this package at each start, in every project that has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

    from ottla.testing.awaited import AsyncBroker
    from ottla.testing.in_process import InProcessBroker

__all__ = ["AsyncBroker", "InProcessBroker", "async_broker", "broker"]


def broker(
    *, data: str | os.PathLike[str] | None = None, port: int = 0, properties: Mapping[str, str] | None = None
) -> InProcessBroker:
    """A broker on a thread of its own; it runs inside of a `with` block, or from `start()` to `stop()`.

    `data` is a folder to keep; without one the broker has a temporary folder, which goes with it. `port` 0 takes a free
    port. `properties` are Kafka's, by its names.
    """
    from ottla.testing.in_process import InProcessBroker

    return InProcessBroker(data=data, port=port, properties=properties)


def async_broker(
    *, data: str | os.PathLike[str] | None = None, port: int = 0, properties: Mapping[str, str] | None = None
) -> AsyncBroker:
    """The same for `async with`, with methods that are awaited."""
    from ottla.testing.awaited import AsyncBroker

    return AsyncBroker(data=data, port=port, properties=properties)


if not TYPE_CHECKING:  # a type checker would take every name for one that exists

    def __getattr__(name: str) -> Any:
        if name == "InProcessBroker":
            from ottla.testing.in_process import InProcessBroker

            return InProcessBroker
        if name == "AsyncBroker":
            from ottla.testing.awaited import AsyncBroker

            return AsyncBroker
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
