"""Since when a flow reads the topics that it reads: one that was deleted and made again under its name is another.

Its records begin at offset 0 as if nothing was lost, and stand at offsets that the former one's had. Spark keeps the
offsets of the last micro-batches, and with them topics' ids; so the note of an id that has changed lies beside them.
"""

from __future__ import annotations

import os
from typing import Final

from ottla.pipeline.places import offsets_in, read_json, write_json
from ottla.pipeline.tables.files import now_ms
from ottla.spark.source.offsets import TOPIC_IDS

_NOTE: Final = "ottla-topics.json"
#: Of a topic, in the note.
_ID: Final = "id"
_SINCE: Final = "since_ms"


class TopicsRead:
    """Of one flow, by its checkpoint."""

    def __init__(self, checkpoint: str) -> None:
        self._checkpoint = checkpoint
        self._path = os.path.join(checkpoint, _NOTE)
        #: By topic. What was noted before is read when a micro-batch is.
        self._known: dict[str, dict[str, str | int]] | None = None

    def note(self, batch: int) -> None:
        """Before anything of the micro-batch is written: all that was read of a former topic was read before."""
        if self._known is None:
            self._known = read_json(self._path) or {}
        found = dict(self._known)
        for source in offsets_in(self._checkpoint, batch):
            for topic, topic_id in source.get(TOPIC_IDS, {}).items():
                there = found.get(topic)
                if there is None:
                    found[topic] = {_ID: topic_id}
                elif there[_ID] != topic_id:
                    found[topic] = {_ID: topic_id, _SINCE: now_ms()}
        if found != self._known:
            write_json(self._path, found)
            self._known = found

    def since_ms(self, topic: str) -> int | None:
        """When the flow first met the topic that has the name now; None where it has read no other."""
        found = (read_json(self._path) or {}).get(topic, {})
        since: int | None = found.get(_SINCE)
        return since
