"""A group that a query's progress is committed to, so that every lag tool sees it. Nobody is a member of it."""

from __future__ import annotations

from collections.abc import Mapping

from ottla.client.admin.group_offsets import alter_group_offsets
from ottla.client.admin.group_results import CommittedOffset
from ottla.client.errors import KafkaError, SomeFailed
from ottla.client.wire.cluster import Cluster
from ottla.logs import logger
from ottla.model import ErrorCode, TopicPartition
from ottla.spark.options import OptionError
from ottla.spark.source.links import Link

_LOG = logger("spark")
#: What a coordinator answers to somebody who commits from outside of a group that has members.
_HAS_MEMBERS = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH})
_NOT_THERE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def commit_offsets(link: Link, group: str, offsets: Mapping[TopicPartition, int]) -> bool:
    """Has the group stand there, and says whether it does: what passes by itself is left to the next commit. Raises
    OptionError for what does not."""
    try:
        link.run(lambda cluster: _commit(cluster, group, offsets))
    except KafkaError as error:
        if error.code in _HAS_MEMBERS:
            raise OptionError(
                f"kafka.group.id: group {group} has members, so progress cannot be committed to it: name a group that "
                "only this query uses"
            ) from error
        if not error.retriable and error.code is not _NOT_THERE:
            raise
        _LOG.warning("progress was not committed; the next batch tries again", group=group, why=str(error))
        return False
    return True


async def _commit(cluster: Cluster, group: str, offsets: Mapping[TopicPartition, int]) -> None:
    wanted = {tp: CommittedOffset(offset) for tp, offset in offsets.items()}
    try:
        await alter_group_offsets(cluster, group, wanted)
    except SomeFailed as error:
        # Those of a topic that was deleted meanwhile; the others are committed.
        if any(one.code is not _NOT_THERE for one in error.errors.values()):
            raise
