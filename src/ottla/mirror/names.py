"""What a topic is called on the other side: MirrorMaker 2's two replication policies, and its internal topics.

By the default policy `orders` of the cluster A is `A.orders` on B, so that the name says where records come from, and
one that begins with the target's own alias comes from there: it is never copied back. By the identity policy names
stay, so that nothing in a name prevents a loop (`properties.py` refuses flows that would make one).
"""

from __future__ import annotations

from typing import Final, NamedTuple

SEPARATOR_DEFAULT: Final = "."
HEARTBEATS_DEFAULT: Final = "heartbeats"


class ReplicationPolicy(NamedTuple):
    source: str
    target: str
    identity: bool = False
    separator: str = SEPARATOR_DEFAULT
    #: Between the parts of internal topics' names.
    internal_separator: str = SEPARATOR_DEFAULT
    heartbeats: str = HEARTBEATS_DEFAULT

    def remote_topic(self, topic: str) -> str:
        """What a topic of the source is called on the target."""
        if self.identity and topic != self.heartbeats:
            return topic
        return f"{self.source}{self.separator}{topic}"

    def topic_source(self, topic: str) -> str | None:
        """The alias of the cluster that a topic was copied from, if its name says so."""
        if self.identity:
            return None
        # As Java splits: empty parts at the end are none.
        parts = topic.split(self.separator)
        while parts and not parts[-1]:
            parts.pop()
        return parts[0] if len(parts) > 1 else None

    def comes_from_target(self, topic: str) -> bool:
        """Whether the topic was copied from the target, or went through it: copied back it would go in a circle."""
        while (source := self.topic_source(topic)) is not None:
            if source == self.target:
                return True
            topic = topic[len(source) + len(self.separator) :]
        return False

    def is_internal(self, topic: str) -> bool:
        """Kafka's, Connect's and mirrors' own topics."""
        suffix = f"{self.internal_separator}internal"
        return topic.startswith(("__", ".")) or topic.endswith((suffix, ".internal", "-internal"))

    def offset_syncs_topic(self, other: str) -> str:
        """Of MirrorMaker 2's offset syncs; `other` is the cluster that it does not lie on."""
        return self.internal_separator.join(("mm2-offset-syncs", other, "internal"))

    @property
    def checkpoints_topic(self) -> str:
        return self.internal_separator.join((self.source, "checkpoints", "internal"))

    @property
    def pairs_topic(self) -> str:
        """Of the journal, which MirrorMaker 2 has not."""
        return self.internal_separator.join(("ottla-offset-pairs", self.source, "internal"))
