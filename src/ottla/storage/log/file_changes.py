"""Changes of a log's files that follow it: first the log changes in memory, in one turn, and then a worker its files.

    the log is another ──▶ unfinished ──a worker──▶ finished: the files are what the log is
                              │    └ a fault ──▶ unfinished still: it comes before whatever changes the files next
                              └ a crash ──▶ a start finds the files as they were before, or some of the change

So nobody reads what is about to go, and nobody waits for a folder. `run` may be done again after a fault, in its middle
as well. Changes of one log come one after the other; a broker has them in `Replicas.change`, where roles change and
folders get other names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ottla.steps import DiskSteps, Work
from ottla.storage.errors import BadBatch, StorageFault, has_no_descriptor

if TYPE_CHECKING:
    from ottla.storage.log.log import Log
    from ottla.storage.log.segment import Segment


class FileChange(Protocol):
    @property
    def holds_back(self) -> bool:
        """Whether nothing may be appended or flushed where a fault has left it undone."""
        ...

    def run(self) -> None:
        """Blocks; raises OSError, and may then run again."""
        ...

    def finish(self) -> None:
        """On the loop, once it has run: takes note of what it has brought."""
        ...

    def drop(self) -> None:
        """On the loop: the log is given up, and nobody wants it any more."""
        ...


def following(log: Log) -> DiskSteps[None]:
    """Has the files follow. Raises StorageFault; what is left then is done with the next change."""
    try:
        while log.unfinished:
            change = log.unfinished[0]
            try:
                yield from done(log, change.run)
            except OSError as error:
                raise StorageFault.halfway(log.directory, error) from error
            log.change_followed(change)
            if log.is_abandoned:
                change.drop()  # its directory has failed meanwhile
            else:
                change.finish()
    finally:
        log.changes_stopped()


def done(log: Log, work: Work) -> DiskSteps[None]:
    """Has a worker do it; where no descriptor is left, once more when other files were closed for it."""
    try:
        yield work
    except OSError as error:
        if not has_no_descriptor(error) or not log.places.around.files.close_half():
            raise
        yield work


def loading(log: Log, segment: Segment) -> DiskSteps[None]:
    """Has a worker open the segment's file and read what stands beside it, unless retention takes the segment away, or
    the log is cut: a segment that was sealed may be written to from then on."""
    twin, generation = segment.twin(), log.durability.generation
    try:
        yield from done(log, twin.load)
    except (OSError, BadBatch):
        if segment in log.places and log.durability.generation == generation:
            raise
    else:
        if segment in log.places and log.durability.generation == generation and not log.is_abandoned:
            segment.adopt(twin)
    finally:
        twin.close()
