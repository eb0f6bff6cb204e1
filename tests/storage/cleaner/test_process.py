"""A pass's steps in a real process of their own, over real files."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.storage.at_once import done
from tests.storage.cleaner.cleaning import LIMITS, Cleaner, compacted_world, newest, put_keyed, records_of

from ottla.ports.real.disk import RealDisk
from ottla.ports.real.workers import Child
from ottla.storage.cleaner import process
from ottla.storage.cleaner.faults import CannotClean, DiskRefused, PassInterrupted
from ottla.storage.cleaner.job import PassJob
from ottla.storage.cleaner.rounds import InProcess, PassResult, ProcessWorker, clean_log, job_for
from ottla.storage.log.log import Log


@pytest.fixture
def child() -> Iterator[Child]:
    child = Child()
    yield child
    child.bury()


def cleanable(folder: Path) -> tuple[Cleaner, Log, PassJob]:
    world = compacted_world(RealDisk())
    world.folder = str(folder)
    log = world.open()
    for number in range(40):
        put_keyed(log, (b"k%d" % (number % 7), b"v%d" % number))
    world.flush(log)
    cleaner = Cleaner(world)
    dirt = cleaner.dirt(log)
    segments = [segment for segment in log.segments if segment.base_offset < dirt.end_offset]
    return cleaner, log, job_for(log, dirt, segments, LIMITS, cleaner.now_ms)


def test_a_whole_pass_through_the_pipe(tmp_path: Path, child: Child) -> None:
    cleaner, log, _ = cleanable(tmp_path)
    before = records_of(log)
    steps = clean_log(log, cleaner.dirt(log), cleaner.surrounding()._replace(worker=ProcessWorker()))
    sent: object = None
    in_process = 0
    outcome: PassResult | None = None
    while outcome is None:
        try:
            step = steps.send(sent)
        except StopIteration as end:
            outcome = end.value
            continue
        in_process += isinstance(step, InProcess)
        sent = child.call(step.work, step.arguments) if isinstance(step, InProcess) else done(step)
    assert outcome.keys == 7
    assert in_process > 2
    after = records_of(log)
    assert newest(after) == newest(before)
    assert len(after) < len(before)
    log.close()


def test_the_memory_of_a_pass_is_given_back_with_its_last_group(tmp_path: Path, child: Child) -> None:
    _, log, job = cleanable(tmp_path)
    indexed = child.call(process.index, (job, os.getpid()))
    assert len(indexed.groups) > 1
    for number in range(len(indexed.groups)):
        child.call(process.clean, (job.directory, number))
    with pytest.raises(PassInterrupted):
        child.call(process.clean, (job.directory, 0))
    log.abandon()


def test_between_steps_it_is_not_woken(tmp_path: Path, child: Child) -> None:
    _, log, job = cleanable(tmp_path)
    for step, arguments in ((process.index, (job, os.getpid())), (process.clean, (job.directory, 0))):
        child.call(step, arguments)
        assert child.call(signal.getitimer, (signal.ITIMER_REAL,)) == (0.0, 0.0)
        assert child.call(signal.getsignal, (signal.SIGALRM,)) == signal.SIG_DFL
    log.abandon()


def test_a_process_that_was_started_anew_knows_nothing_of_the_pass(tmp_path: Path, child: Child) -> None:
    _, log, job = cleanable(tmp_path)
    child.call(process.index, (job, os.getpid()))
    child.bury()
    with pytest.raises(PassInterrupted, match="started anew"):
        child.call(process.clean, (job.directory, 0))
    log.abandon()


def test_its_faults_cross_the_pipe_with_what_they_say(tmp_path: Path, child: Child) -> None:
    _, log, job = cleanable(tmp_path)
    first = tmp_path / f"{0:020d}.log"
    sound = first.read_bytes()
    first.write_bytes(sound[:-1] + bytes([sound[-1] ^ 1]))
    with pytest.raises(CannotClean, match="checksum"):
        child.call(process.index, (job, os.getpid()))
    first.unlink()
    with pytest.raises(PassInterrupted, match="gone"):
        child.call(process.index, (job, os.getpid()))
    first.mkdir()
    with pytest.raises(DiskRefused, match="directory"):
        child.call(process.index, (job, os.getpid()))
    log.abandon()
