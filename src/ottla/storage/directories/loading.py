"""At start: which folders count, and opening their logs.

After a clean stop a partition costs nothing but its `open_log`. What is damaged stays as it is and takes only its own
partition offline; a device that fails takes its directory offline.
"""

from __future__ import annotations

import os.path
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

from ottla.config.log import LogConfig
from ottla.model import ZERO_TOPIC_ID, TopicId, TopicPartition
from ottla.ports.entropy import Entropy
from ottla.storage.directories import moving
from ottla.storage.directories.directory import LogDirectory
from ottla.storage.directories.events import DirectoryEvent, OnEvent, Severity
from ottla.storage.directories.moving import FutureLog
from ottla.storage.directories.opening import Job, KnownTopics, OpenedFolder, Run, open_folder
from ottla.storage.directories.placing import adopt_topic_id
from ottla.storage.directories.removal import FolderRemoval
from ottla.storage.directories.survey import DirectorySurvey, some_names, survey
from ottla.storage.errors import StorageFault, has_no_descriptor, passes
from ottla.storage.formats.names import FolderKind
from ottla.storage.log.log import Log


class Loading:
    """One start. `load` fills the directories; what else there is to know stands in the public fields."""

    def __init__(
        self,
        directories: Sequence[LogDirectory],
        topics: KnownTopics,
        now_ms: int,
        entropy: Entropy,
        on_event: OnEvent,
    ) -> None:
        self.removals: list[FolderRemoval] = []
        self.moves: dict[TopicPartition, FutureLog] = {}
        #: Partitions that are there and cannot be served, with the reason.
        self.offline: dict[TopicPartition, str] = {}
        #: Those of them that lack nothing but room, and where they are.
        self.roomless: dict[TopicPartition, LogDirectory] = {}
        #: Those of them whose records are damaged, and where they are.
        self.damaged: dict[TopicPartition, LogDirectory] = {}
        self._directories = directories
        self._topics = topics
        self._configs: dict[str, LogConfig | None] = {}
        self._now_ms = now_ms
        self._entropy = entropy
        self._on_event = on_event
        self._homes: dict[TopicPartition, list[LogDirectory]] = defaultdict(list)

    def load(self, run: Run) -> None:
        found = self._survey()
        markers = {(tp, each.directory.path) for each in found for tp in each.markers}
        for each in found:
            self.removals += each.removals
            for tp in each.current:
                self._homes[tp].append(each.directory)
        doubles = {tp: homes for tp, homes in self._homes.items() if len(homes) > 1}
        self._open_all(found, self._refuse_doubles(doubles, markers), run)
        for tp, homes in doubles.items():
            if tp not in self.offline:
                self._settle_double(tp, homes, markers)
        self._drop_markers(found, doubles)
        for each in found:
            if each.directory.is_online:
                self._miss(each)
        for each in found:
            for tp, name in each.futures:
                if each.directory.is_online:
                    self._on_device(each.directory, partial(self._resume_copy, each.directory, tp, name))

    def _survey(self) -> list[DirectorySurvey]:
        found = []
        for directory in self._directories:
            if directory.is_online:
                try:
                    found.append(survey(directory, self._on_event))
                except OSError as error:
                    if has_no_descriptor(error):
                        raise
                    self._fail(directory, error.strerror or str(error))
        return found

    def _fail(self, directory: LogDirectory, reason: str) -> None:
        for tp in directory.fail(reason):
            self.offline.setdefault(tp, f"its log directory {directory.path} is offline: {reason}")
        self._on_event(DirectoryEvent(Severity.ERROR, directory.path, f"the log directory is offline: {reason}"))

    def _on_device(self, directory: LogDirectory, step: Callable[[], None]) -> None:
        try:
            step()
        except OSError as error:
            if has_no_descriptor(error):
                raise
            self._fail(directory, error.strerror or str(error))

    def _config(self, topic: str) -> LogConfig | None:
        if topic not in self._configs:
            self._configs[topic] = self._topics.config_for(topic)
        return self._configs[topic]

    def _open(self, directory: LogDirectory, folder: str, partition: TopicPartition, config: LogConfig) -> OpenedFolder:
        return open_folder(
            directory,
            folder,
            partition,
            config=config,
            topic_id=self._topics.topic_id_for(partition.topic),
            now_ms=self._now_ms,
            on_event=self._on_event,
        )

    def _take_offline(self, directory: LogDirectory, partition: TopicPartition, reason: str) -> None:
        directory.unopened[partition] = reason
        self.offline[partition] = reason
        self._on_event(DirectoryEvent(Severity.ERROR, directory.path, reason, partition))

    def _open_all(self, found: Sequence[DirectorySurvey], refused: set[TopicPartition], run: Run) -> None:
        places: list[tuple[LogDirectory, TopicPartition]] = []
        jobs: list[Job] = []
        for each in found:
            directory, unknown = each.directory, []
            for tp in each.current:
                config = self._config(tp.topic)
                if config is None:
                    directory.unopened[tp] = "its topic is not known"
                    unknown.append(str(tp))
                elif tp not in refused:
                    places.append((directory, tp))
                    jobs.append(partial(self._open, directory, directory.folder(tp), tp, config))
            if unknown:
                directory.warn(
                    self._on_event,
                    f"{len(unknown)} folders are of no known topic and are left in place: {some_names(unknown)}",
                )
        for (directory, tp), opened in zip(places, run(jobs), strict=True):
            self._install(directory, tp, opened)

    def _install(self, directory: LogDirectory, partition: TopicPartition, opened: OpenedFolder) -> None:
        opened.warnings.report()
        if opened.fault and directory.is_online:
            self._fail(directory, opened.fault)
        if not directory.is_online:
            self.offline[partition] = f"its log directory {directory.path} is offline: {directory.failure}"
            if opened.log is not None:
                directory.abandon(opened.log)
        elif opened.is_stray:
            directory.unopened[partition] = opened.damage
            directory.warn(self._on_event, f"{opened.damage}, and is left in place", partition)
        elif opened.is_emptied:
            self._on_device(directory, partial(self._begin_anew, directory, partition))
        elif opened.log is None:
            self._take_offline(directory, partition, opened.damage)
            if opened.is_roomless:
                self.roomless[partition] = directory
            elif opened.is_damaged:
                self.damaged[partition] = directory
        else:
            directory.logs[partition] = opened.log
            self._on_device(directory, partial(self._complete, directory, partition, opened.log))

    def _begin_anew(self, directory: LogDirectory, partition: TopicPartition) -> None:
        """The folder was emptied by hand: the former log's offsets go first, durably, and then it is as any other."""
        end = directory.checkpoints.known_end(partition)
        try:
            directory.forget(partition)
        except OSError as error:
            if not passes(error):
                raise
            self._take_offline(directory, partition, f"its folder was emptied, and the disk has no room: {error}")
            self.roomless[partition] = directory
            return
        directory.warn(
            self._on_event, f"its folder was emptied: it begins anew, without its records up to {end}", partition
        )
        config = self._config(partition.topic)
        assert config is not None, "it was opened with it"
        self._install(directory, partition, self._open(directory, directory.folder(partition), partition, config))

    # What there was no room for

    def still_roomless(self) -> list[TopicPartition]:
        """Those that nobody has deleted or set aside meanwhile: what has such a name by now is another's folder."""
        self.roomless = {tp: home for tp, home in self.roomless.items() if tp in home.unopened}
        return list(self.roomless)

    def prepare_again(self, partition: TopicPartition) -> Job:
        """Opens the folder of one that is `roomless`; in a worker, since it may have much to check."""
        directory, config = self.roomless[partition], self._config(partition.topic)
        assert config is not None, "it was tried with it"
        return partial(self._open, directory, directory.folder(partition), partition, config)

    def settle_again(self, partition: TopicPartition, opened: OpenedFolder) -> LogDirectory | None:
        """Takes what became of it; the directory that it is in now, or None where it is not served yet."""
        directory = self.roomless.get(partition)
        if directory is None or not directory.is_online or partition not in directory.unopened:
            # It was deleted meanwhile, or set aside, or its directory has failed.
            self.roomless.pop(partition, None)
            if opened.log is not None:
                LogDirectory.abandon(opened.log)
            return None
        if opened.is_roomless:
            return None
        del self.roomless[partition]
        del directory.unopened[partition]
        self.offline.pop(partition, None)
        self._install(directory, partition, opened)
        return directory if partition in directory.logs else None

    def _miss(self, found: DirectorySurvey) -> None:
        """Finds replicas that this broker is to have, whose records were here and whose folder is nowhere.

        An empty log in their place would give their offsets a second time. One that was deleted or moved is no
        longer in the checkpoints before its folder's name goes, and one whose directory was exchanged for an empty one
        neither. Of a partition that is elsewhere, or that its topic does not have, nothing is missed: if it comes here
        it comes as a new one.
        """
        directory = found.directory
        for tp in sorted(directory.checkpoints.with_records() - found.given_up):
            if tp in self._homes or self._config(tp.topic) is None or not self._topics.holds(tp):
                continue
            reason = (
                f"{directory.folder(tp)} is gone, and had records up to offset {directory.checkpoints.known_end(tp)}. "
                f"Put it back and start the broker again; or, to give the records up, put an empty folder in its place"
            )
            directory.missing[tp] = reason
            self.offline[tp] = reason
            self._on_event(DirectoryEvent(Severity.ERROR, directory.path, reason, tp))

    def _complete(self, directory: LogDirectory, partition: TopicPartition, log: Log) -> None:
        """Writes the topic's id into a folder that lacks it."""
        topic_id = self._topics.topic_id_for(partition.topic)
        if log.topic_id == ZERO_TOPIC_ID and topic_id is not None and topic_id != ZERO_TOPIC_ID:
            try:
                adopt_topic_id(directory.disk, directory.folder(partition), topic_id)
            except OSError as error:
                if not passes(error):
                    raise  # otherwise the next start does it
            log.belongs_to(TopicId(topic_id))

    def _refuse_doubles(
        self, doubles: dict[TopicPartition, list[LogDirectory]], markers: set[tuple[TopicPartition, str]]
    ) -> set[TopicPartition]:
        """Two folders and nothing that says which one counts: neither is opened."""
        refused = set()
        for tp, homes in doubles.items():
            marked = sum((tp, home.path) in markers for home in homes)
            if (len(homes), marked) != (2, 1):
                refused.add(tp)
                self._report_double(tp, homes)
        return refused

    def _report_double(self, partition: TopicPartition, homes: Sequence[LogDirectory]) -> None:
        folders = " and ".join(home.folder(partition) for home in homes)
        for home in homes:
            self._take_offline(
                home, partition, f"{partition} stands twice, in {folders}: move the one away that is not wanted"
            )

    def _settle_double(
        self, partition: TopicPartition, homes: Sequence[LogDirectory], markers: set[tuple[TopicPartition, str]]
    ) -> None:
        """A crash or a fault came between the two renames of a move: the folder that was used since counts."""
        copy_home, origin = sorted(homes, key=lambda home: (partition, home.path) not in markers)
        if not (copy_home.is_online and origin.is_online):
            return
        end_offset = moving.read_marker(copy_home, partition)
        copy, original = copy_home.logs.get(partition), origin.logs.get(partition)
        if (
            copy is None
            or original is None
            or end_offset is None
            or (_moved_on(copy, original, end_offset) and _moved_on(original, copy, end_offset))
        ):
            self._refuse_double(partition, homes)
        else:
            stale = copy_home if _moved_on(original, copy, end_offset) else origin
            stale.abandon(stale.logs.pop(partition))
            self._on_device(stale, partial(self._remove_folder, stale, partition))

    def _refuse_double(self, partition: TopicPartition, homes: Sequence[LogDirectory]) -> None:
        for home in homes:
            log = home.logs.pop(partition, None)
            if log is not None:
                home.abandon(log)
        self._report_double(partition, homes)

    def _remove_folder(self, directory: LogDirectory, partition: TopicPartition) -> None:
        path = directory.rename_folder(partition, FolderKind.DELETE, self._entropy)
        self.removals.append(FolderRemoval(directory.disk, path, partition))

    def _drop_markers(
        self, found: Sequence[DirectorySurvey], doubles: dict[TopicPartition, list[LogDirectory]]
    ) -> None:
        for each in found:
            for name in each.half_markers:
                path = os.path.join(each.directory.path, name)
                self._on_device(each.directory, partial(each.directory.disk.remove, path))
        if not all(directory.is_online for directory in self._directories):
            return  # the other folder of a move may be in a directory that is away just now
        for each in found:
            for tp in each.markers:
                if tp not in self.offline or tp not in doubles:
                    self._on_device(each.directory, partial(moving.remove_marker, each.directory, tp))

    def _resume_copy(self, directory: LogDirectory, partition: TopicPartition, name: str) -> None:
        source = next((home.logs[partition] for home in self._homes[partition] if partition in home.logs), None)
        if source is None:
            if (
                self._homes[partition]
                or partition in self.offline
                or not all(each.is_online for each in self._directories)
            ):
                directory.warn(
                    self._on_event, f"{name} has no original that is online, and is left in place", partition
                )
                return
            self._remove_copy(directory, partition, name)
            return
        config = self._config(partition.topic)
        assert config is not None, "the original was opened with it"
        if partition in self.moves or partition in directory.logs:
            self._remove_copy(directory, partition, name)
            return
        opened = self._open(directory, os.path.join(directory.path, name), partition, config)
        opened.warnings.report()
        if opened.fault:
            self._fail(directory, opened.fault)
        elif opened.is_roomless:
            directory.warn(self._on_event, f"the copy in {name} is left in place: {opened.damage}", partition)
        elif opened.log is None:
            directory.warn(self._on_event, f"the copy in {name} is removed: {opened.damage}", partition)
            self._remove_copy(directory, partition, name)
        else:
            # The source may have been cleaned in a life in which the copy was away.
            unknown = opened.log.start_offset
            move = FutureLog(partition, source, directory, name, opened.log, cleaned_to=unknown)
            if move.parts_from_source and not self._begins_anew(move):
                return
            directory.futures[partition] = (name, opened.log)
            self.moves[partition] = move

    def _begins_anew(self, move: FutureLog) -> bool:
        """False where that cannot be: without room for it the next start finds the copy as this one has."""
        directory = move.target
        try:
            move.start_over()
        except (OSError, StorageFault) as error:
            directory.abandon(move.log)
            fault = error if isinstance(error, StorageFault) else StorageFault.of(directory.path, error)
            if fault.directory_failed:
                self._fail(directory, str(fault))
            else:
                directory.warn(self._on_event, f"the copy in {move.folder} is left in place: {fault}", move.partition)
            return False
        return True

    def _remove_copy(self, directory: LogDirectory, partition: TopicPartition, name: str) -> None:
        path = directory.discard(name, partition, self._entropy)
        self.removals.append(FolderRemoval(directory.disk, path, partition))


def _moved_on(log: Log, other: Log, end_offset: int) -> bool:
    """Whether a log was written to after the change-over at `end_offset`, when both were the same."""
    return log.end_offset > end_offset or log.epochs.latest > other.epochs.latest
