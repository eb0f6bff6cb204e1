"""Partition folders that were here before any coordination tree: what they say about their topics.

Names give topics and partition numbers, `partition.metadata` the topics' ids, the leader-epoch checkpoints the epochs
from which a new leader has to go on. Nothing is changed here, and nothing is guessed: a topic whose folders contradict
each other, or of which some are missing, is reported and left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from ottla.model import OFFSETS_TOPIC, TRANSACTION_TOPIC, ZERO_TOPIC_ID, TopicId, topic_id_text
from ottla.ports.disk import Disk
from ottla.storage.directories.errors import UnreadableDirectory
from ottla.storage.formats import epoch_checkpoint, partition_metadata
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.names import FolderKind, parse_folder

#: The log of Kafka's controllers. It has a partition's form and is none.
QUORUM_FOLDER: Final = "__cluster_metadata-0"
#: Names that begin so are Kafka's own; of these two the contents are understood.
_INTERNAL_PREFIX: Final = "__"
_UNDERSTOOD: Final = frozenset({OFFSETS_TOPIC, TRANSACTION_TOPIC})
_NAMED_MAX: Final = 10


class FoundTopic(NamedTuple):
    name: str
    #: Zero where no folder has it: brokers of before Kafka 2.8 wrote none.
    id: TopicId
    #: The last leader epoch that each partition's log has; -1 where it has none.
    epochs: tuple[int, ...]


class FoundTopics(NamedTuple):
    topics: list[FoundTopic]
    #: What was left out, a sentence each.
    left_out: list[str]


class _PartitionFolder(NamedTuple):
    partition: int
    path: str
    id: TopicId
    epoch: int


def find_topics(disk: Disk, directories: Sequence[str]) -> FoundTopics:
    """Looks through log directories, all of them: it happens once, and what is missed would be missed for ever.

    Raises UnreadableDirectory where one is there and cannot be read.
    """
    folders: dict[str, list[_PartitionFolder]] = defaultdict(list)
    left_out: list[str] = []
    for directory in directories:
        for name in _names(disk, directory):
            path = f"{directory}/{name}"
            if name == QUORUM_FOLDER:
                left_out.append(
                    f"{path}: the log of Kafka's controllers; what it says of topics, their configurations among it, "
                    f"is not read"
                )
                continue
            try:
                folder = parse_folder(name)
                if folder.kind is FolderKind.CURRENT and disk.is_directory(path):
                    folders[folder.partition.topic].append(_look_at(disk, folder.partition.partition, path))
            except FormatError:
                continue  # no partition's folder, or a damaged file in it: opening it says so
    topics: list[FoundTopic] = []
    for name, found in sorted(folders.items()):
        fault = _fault(name, found)
        if fault is None:
            found.sort()
            known = next((each.id for each in found if each.id != ZERO_TOPIC_ID), ZERO_TOPIC_ID)
            topics.append(FoundTopic(name, known, tuple(each.epoch for each in found)))
        else:
            left_out.append(f"topic {name}: {fault}")
    return FoundTopics(topics, left_out)


def _names(disk: Disk, directory: str) -> list[str]:
    try:
        return disk.names(directory) if disk.exists(directory) else []
    except OSError as error:
        raise UnreadableDirectory(
            f"The log directory {directory} cannot be read ({error.strerror or error}), and a first start has to know "
            "which topics are in it. Repair it, or take it out of log.dirs."
        ) from error


def _look_at(disk: Disk, partition: int, path: str) -> _PartitionFolder:
    try:
        topic_id = partition_metadata.read(disk, f"{path}/{partition_metadata.FILE_NAME}")
    except (FormatError, FileNotFoundError):
        topic_id = ZERO_TOPIC_ID
    try:
        epochs = epoch_checkpoint.read(disk, f"{path}/{epoch_checkpoint.FILE_NAME}")
    except FormatError:
        epochs = []  # it is read from the log again; until then the leader epoch begins anew
    return _PartitionFolder(partition, path, topic_id, epochs[-1][0] if epochs else -1)


def _fault(name: str, found: Sequence[_PartitionFolder]) -> str | None:
    """Why the folders do not make a topic."""
    if name.startswith(_INTERNAL_PREFIX) and name not in _UNDERSTOOD:
        return "it belongs to a part of Kafka that does not exist here"
    by_partition: dict[int, list[str]] = defaultdict(list)
    for folder in found:
        by_partition[folder.partition].append(folder.path)
    for partition, paths in sorted(by_partition.items()):
        if len(paths) > 1:
            return f"partition {partition} stands more than once, in {' and '.join(paths)}: move the stale one away"
    ids = {folder.id for folder in found} - {ZERO_TOPIC_ID}
    if len(ids) > 1:
        named = ", ".join(f"{folder.path} has {topic_id_text(folder.id)}" for folder in sorted(found)[:_NAMED_MAX])
        return f"its folders are of different topics of that name ({named}): move away those of the earlier one"
    missing = sorted(set(range(max(by_partition) + 1)) - by_partition.keys())
    if missing:
        return (
            f"partitions {_some(missing)} of {max(by_partition) + 1} are missing: they are on other brokers or in "
            f"other directories, and a topic is taken over whole or not at all"
        )
    return None


def _some(numbers: Iterable[int]) -> str:
    texts = [str(number) for number in numbers]
    shown = ", ".join(texts[:_NAMED_MAX])
    return shown if len(texts) <= _NAMED_MAX else f"{shown} and {len(texts) - _NAMED_MAX} more"
