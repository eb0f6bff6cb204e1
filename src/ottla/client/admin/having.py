"""A topic that is to be there, whoever made it.

A controller that is replaced while it makes a topic says that it does not know whether it is made. A person may look;
a program that needs the topic asks again, and is told then that it is there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ottla.client.errors import KafkaError, TopicAlreadyExists

if TYPE_CHECKING:
    from ottla.client import sync
    from ottla.client.admin.admin import Admin
    from ottla.client.admin.results import NewTopic

#: Between two tries, twice as long each time: a quarter of a minute together.
_PAUSES_S: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


async def have_topic(admin: Admin, topic: NewTopic) -> bool:
    """Whether it was made here; False where it was there. Raises KafkaError."""
    pauses = iter(_PAUSES_S)
    while True:
        try:
            await admin.create_topics([topic])
        except TopicAlreadyExists:
            return False
        except KafkaError as error:
            await asyncio.sleep(_pause_after(error, pauses))
        else:
            return True


def have_topic_sync(admin: sync.Admin, topic: NewTopic) -> bool:
    """The same for a thread that may wait."""
    pauses = iter(_PAUSES_S)
    while True:
        try:
            admin.create_topics([topic])
        except TopicAlreadyExists:
            return False
        except KafkaError as error:
            time.sleep(_pause_after(error, pauses))
        else:
            return True


def _pause_after(error: KafkaError, pauses: Iterator[float]) -> float:
    """Raises the error where no other try may help, or none is left."""
    pause_s = next(pauses, None) if error.retriable else None
    if pause_s is None:
        raise error
    return pause_s
