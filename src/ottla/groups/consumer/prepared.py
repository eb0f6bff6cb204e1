"""What takes long of a heartbeat and decides nothing: it is done before, step by step.

Members may name thousands of topics.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from ottla.groups.consumer import checks
from ottla.groups.consumer.decision import RequestRefused
from ottla.groups.consumer.group import ConsumerGroup
from ottla.groups.consumer.long_records import StoredNames, stored_names
from ottla.groups.consumer.member import JOINING
from ottla.groups.consumer.patterns import TopicPatterns
from ottla.groups.consumer.reconciliation import Reported
from ottla.groups.consumer.topics import TopicHashes
from ottla.metadata.cache import MetadataCache
from ottla.model import TopicId
from ottla.protocol.errors import EncodeError
from ottla.protocol.generated.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ottla.steps import Steps, pieces

#: Names that are sorted where they are written down; of more the order in which they came is kept.
SORTED_MAX: Final = 512
#: Partitions are put into sets by a call in C; a topic takes about a microsecond.
_TOPIC_WORK: Final = 32
_WORK_A_STEP: Final = 2_048


class PreparedHeartbeat(NamedTuple):
    #: What it subscribes to, and has; None where it does not say.
    names: frozenset[str] | None
    reported: Reported
    #: The names as they are stored, where they are many: in the order in which they came.
    stored_names: StoredNames | None = None
    #: Of these: a generation of the metadata, and their hash in it.
    names_hash: tuple[int, int] | None = None


def prepared(request: ConsumerGroupHeartbeatRequest) -> Steps[PreparedHeartbeat]:
    """Does not yield where it is short."""
    names: dict[str, None] = {}
    for number, piece in enumerate(pieces(request.subscribed_topic_names or ())):
        if number:
            yield
        names.update(dict.fromkeys(piece))
    reported: dict[TopicId, AbstractSet[int]] = {}
    work = 0
    for entry in request.topic_partitions or ():
        topic = TopicId(bytes(entry.topic_id))
        known = reported.get(topic)
        reported[topic] = frozenset(entry.partitions) if known is None else known | frozenset(entry.partitions)
        work += _TOPIC_WORK + len(entry.partitions)
        if work >= _WORK_A_STEP:
            work = 0
            yield
    return PreparedHeartbeat(
        None if request.subscribed_topic_names is None else frozenset(names),
        None if request.topic_partitions is None else reported,
        (yield from _stored(names)) if len(names) > SORTED_MAX else None,
    )


def _stored(names: Iterable[str]) -> Steps[StoredNames | None]:
    try:
        return (yield from stored_names(names))
    except EncodeError:
        return None  # the decision finds it, too, and refuses it


class TopicPreparation:
    """Of one shard: which topics the expressions stand for that the decision is going to ask about, and what a member
    that names thousands of topics says.
    """

    def __init__(self, metadata: MetadataCache, patterns: TopicPatterns, hashes: TopicHashes) -> None:
        self._metadata = metadata
        self._patterns = patterns
        self._hashes = hashes

    def of(self, request: ConsumerGroupHeartbeatRequest, group: ConsumerGroup | None) -> Steps[PreparedHeartbeat]:
        try:
            checks.check_size(request)
        except RequestRefused:
            return PreparedHeartbeat(None, None)  # the decision refuses it
        made = yield from prepared(request)
        is_joining = request.member_epoch == JOINING
        if not is_joining and (group is None or request.member_id not in group.members):
            return made
        yield from self._resolve(group, request.subscribed_topic_regex)
        if group is not None:
            yield from self._sum_topics(group)
        known = None if group is None else group.members.get(request.member_id)
        if (
            made.stored_names is not None
            and made.names is not None
            and (known is None or known.topic_names != made.names)
        ):
            generation = self._metadata.generation
            hashed = yield from self._hashes.of_many(made.names)
            if self._metadata.generation == generation:
                made = made._replace(names_hash=(generation, hashed))
        return made

    def _sum_topics(self, group: ConsumerGroup) -> Steps[None]:
        """The decision is going to ask whether the group's topics are those that they were."""
        generation, version = self._metadata.generation, group.topics_version
        if group.known_hash(generation) is not None:
            return
        wanted = group.wanted_topics()
        if len(wanted) <= SORTED_MAX:
            return
        hashed = yield from self._hashes.of_many(wanted)
        if self._metadata.generation == generation:
            group.summed = (generation, version, hashed)

    def _resolve(self, group: ConsumerGroup | None, regex: str | None) -> Steps[None]:
        wanted: dict[str, None] = {}
        if group is not None and group.regex_counts and group.checked_names_version != self._patterns.names_version:
            wanted = dict.fromkeys(group.regex_counts)
        if regex:
            wanted[regex] = None
        for pattern in wanted:
            yield from self._patterns.resolve(pattern)
