"""Which folder a split is read from, and how far the leader says that it may be trusted.

    the leader's directory, or those of `ottla.direct.dirs`
       │ whose cluster, whose topic, which broker's
       ▼
    the last batch below the split's end in a sealed segment: its end and its leader epoch
       │ one fetch by the topic's id, from that end on, with that epoch
       ▼
    the leader's word: it has the same batch there, and the split is committed

Two logs that have a batch of the same leader epoch at the same offset are the same up to it: that is what leader epochs
are for, and what a follower's own fetches rest on. So one answer is enough for all that lies before. The epoch is the
batch's own: the folder's `leader-epoch-checkpoint` is written some time after the log. A replica that has gone another
way is not read at all.

Whatever does not hold, or fails on the way, leaves the rest to the wire, which is always right. Why is said once in a
process.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine
from typing import Any, Final, NamedTuple, TypeVar

from ottla.client.admin.configs import describe as describe_configs
from ottla.client.admin.logs import describe_log_dirs
from ottla.client.admin.results import ConfigResource
from ottla.client.errors import KafkaError, OffsetOutOfRange
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.offsets import READ_COMMITTED
from ottla.logs import logger
from ottla.model import ZERO_TOPIC_ID
from ottla.protocol.generated.fetch import PartitionData
from ottla.spark.source.direct.folders import Folder, NotThere, open_folder
from ottla.spark.source.direct.segments import DamagedFile, SegmentReader
from ottla.spark.source.fetching import FetchedStretch, PartitionFetches
from ottla.spark.source.links import Link
from ottla.spark.source.splits import Split

Result = TypeVar("Result")

_LOG = logger("spark")

#: What a leader is asked before the first record: longer, and the wire is as good.
_ASKED_SECONDS_MAX: Final = 10.0
_POLICY: Final = "cleanup.policy"


class _Left(Exception):
    """The wire has to do it; with the reason."""


class _Place(NamedTuple):
    """Where a folder is looked for."""

    leader: int
    cluster_id: str | None
    directories: tuple[str, ...]


class DirectReading:
    """What of one split comes from files."""

    def __init__(self, segments: SegmentReader, first: int, until: int, *, committed: bool) -> None:
        self._segments = segments
        #: What lies before the log's first offset is a loss, and so the wire's; what lies behind was not vouched for.
        self._first = first
        self._until = until
        self._committed = committed
        self._is_left = False

    def covers(self, offset: int) -> bool:
        return not self._is_left and self._first <= offset < self._until

    def read(self, offset: int) -> FetchedStretch | None:
        try:
            piece = self._segments.piece(offset)
        except (OSError, DamagedFile) as error:
            self.leave(str(error))
            return None
        if piece is None:
            return None
        if self._committed and piece.has_transactions:
            # The leader alone knows all that were aborted: a broker writes its index of them some time later.
            self.leave(f"{piece.file} has records of transactions, and isolation.level is read_committed")
            return None
        end = min(piece.next_offset, self._until)
        return FetchedStretch(offset, self._until, piece.buf, piece.end, end, None, piece.file)

    def leave(self, why: str) -> None:
        self._is_left = True
        _say(why)

    def close(self) -> None:
        self._segments.close()


def direct_reading(link: Link, split: Split, directories: tuple[str, ...]) -> DirectReading | None:
    """None where all of the split is left to the wire. Without directories the leader is asked for its own."""
    try:
        return _reading(link, split, directories)
    except _Left as left:
        _say(str(left))
    except (NotThere, DamagedFile, OSError) as error:
        _say(str(error) or type(error).__name__)
    except KafkaError as error:
        _say(f"{split.tp}: the leader was asked, and answered: {error}")
    return None


def _say(why: str) -> None:
    _LOG.warning_once("not read directly, but over the wire", why, why=why)


def _reading(link: Link, split: Split, directories: tuple[str, ...]) -> DirectReading | None:
    if split.topic_id == ZERO_TOPIC_ID:
        raise _Left("the brokers do not know topics by their ids")
    if not hasattr(os, "preadv"):
        raise _Left("this system has no positioned reads into a buffer")
    fetches = PartitionFetches(link.settings, split)
    place = link.run(lambda cluster: _in_time(_place(cluster, fetches, split, directories)))
    segments = SegmentReader(_folder(place, split))
    try:
        found = _vouched_for(link, fetches, segments, split)
    except BaseException:
        segments.close()
        raise
    if found is None:
        segments.close()
    return found


def _vouched_for(link: Link, fetches: PartitionFetches, segments: SegmentReader, split: Split) -> DirectReading | None:
    """None where all of the split is in the segment that grows: nothing to warn of."""
    last = segments.last_batch(split.until)
    if last is None or last.next_offset <= split.first:
        return None
    end, epoch = last.next_offset, last.leader_epoch
    if epoch < 0:
        raise _Left(f"{segments.folder.path} has batches without a leader epoch, from before Kafka 0.11")
    word = link.run(lambda cluster: _in_time(_word(cluster, fetches, segments.folder, split, end, epoch)))
    committed = fetches.isolation == READ_COMMITTED
    committed_until = word.last_stable_offset if committed else word.high_watermark
    if committed_until < split.until:
        raise _Left(f"{split.tp} is committed up to offset {committed_until} by now, and {split.until} is wanted")
    return DirectReading(segments, word.log_start_offset, min(split.until, end), committed=committed)


def _folder(place: _Place, split: Split) -> Folder:
    """The leader's own where it is among them: of another replica the cleaner may have made something else."""
    found: list[Folder] = []
    missing: list[str] = []
    for directory in place.directories:
        try:
            found.append(open_folder(directory, split.tp, split.topic_id, place.cluster_id))
        except NotThere as error:
            missing.append(str(error))
    if not found:
        raise _Left("; ".join(missing) or f"broker {place.leader} names no directory of {split.tp}")
    best = next((one for one in found if one.broker_id == place.leader), found[0])
    for one in found:
        if one is not best:
            one.close()
    return best


# In the link's thread


async def _in_time(asking: Coroutine[Any, Any, Result]) -> Result:
    try:
        async with asyncio.timeout(_ASKED_SECONDS_MAX):
            return await asking
    except TimeoutError:
        raise _Left(
            f"the leader did not say within {_ASKED_SECONDS_MAX:g} s how far the files are to be trusted"
        ) from None


async def _place(cluster: Cluster, fetches: PartitionFetches, split: Split, directories: tuple[str, ...]) -> _Place:
    _, leader = await fetches.leader(cluster)
    if not directories:
        topic, partition = split.tp
        answered = await describe_log_dirs(cluster, [leader.leader], {topic: [partition]})
        directories = tuple(path for path, one in answered[leader.leader].items() if split.tp in one.replicas)
    return _Place(leader.leader, cluster.metadata.cluster_id, directories)


async def _word(
    cluster: Cluster, fetches: PartitionFetches, folder: Folder, split: Split, offset: int, epoch: int
) -> PartitionData:
    _, leader = await fetches.leader(cluster)
    if folder.broker_id != leader.leader and await _is_compacted(cluster, split.tp.topic):
        raise _Left(f"{folder.path} is not the leader's, and what compaction leaves differs from replica to replica")
    try:
        word = await fetches.word(cluster, offset, epoch)
    except OffsetOutOfRange:
        word = None  # its log ends before, or begins behind, or has never had such an epoch
    if word is None or word.diverging_epoch.epoch >= 0 or word.diverging_epoch.end_offset >= 0:
        raise _Left(f"{folder.path} is not trusted: it has gone another way than its leader's log")
    return word


async def _is_compacted(cluster: Cluster, topic: str) -> bool:
    resource = ConfigResource.topic(topic)
    found = await describe_configs(cluster, [resource], [_POLICY], synonyms=False, documentation=False)
    return "compact" in (found[resource][_POLICY].value or "compact")
