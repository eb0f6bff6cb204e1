"""The archive of Spark's classes, made: a session runs, Java notes what it loads, and another Java writes that down."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

from ottla.spark.class_archive import (
    ENDING,
    SILENCE,
    WRITABLE_BY_OTHERS,
    archive_folder,
    archive_for,
    checksum,
    distrusted_folder,
    name_of_archive,
    option,
)
from ottla.spark.java import java_home

#: It has a warning for each class that it leaves out.
_ERRORS_ONLY: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")
#: One quick compiler: what makes an archive ends soon.
_SHORT_LIFE: Final = f"-XX:TieredStopAtLevel=1 {SILENCE}"
_DRAFT: Final = ".new"
#: Both take a minute of a processor; a machine may be busy.
_END_SECONDS_MAX: Final = 120
_DUMP_SECONDS_MAX: Final = 1800
#: Of what Java has said about a fault.
_SAID_CHARACTERS_MAX: Final = 500


class ArchiveFault(RuntimeError):
    """No archive can be made, and why."""


class Archive(NamedTuple):
    path: str
    size: int
    #: False where it was there already.
    is_new: bool


class _Java(NamedTuple):
    """The driver's, as it was started."""

    program: str
    classpath: str
    options: list[str]


def make(start: Callable[[str], Any], work: Callable[[Any], None], environment: MutableMapping[str, str]) -> Archive:
    """`start` gives a session whose Java it has started with some options, and `work` has it load what is to be kept.

    Another that makes one at the same time is waited for. Raises JavaMissing, ArchiveFault and OSError, and leaves
    nothing then.
    """
    home = java_home(environment)
    if home is not None:
        environment["JAVA_HOME"] = home
    folder = archive_folder(environment)
    _make_folder(folder)
    with _held(os.path.join(folder, "lock")):
        there = archive_for(environment)
        if there is not None:
            return Archive(there, os.path.getsize(there), is_new=False)
        _remove_drafts(folder)
        draft = os.path.join(folder, f"{os.getpid()}{_DRAFT}")
        classes = os.path.join(folder, f"{os.getpid()}.classes{_DRAFT}")
        try:
            java = _run(start, work, classes)
            _dump(java, classes, draft)
            return _put(draft, os.path.join(folder, name_of_archive(environment)))
        except subprocess.TimeoutExpired as error:
            raise ArchiveFault(f"Java has not ended within {error.timeout:.0f} s") from error
        finally:
            _remove_drafts(folder)


def _make_folder(folder: str) -> None:
    """The user's alone, and so is the one above, which is ours too."""
    above = os.path.dirname(folder)
    os.makedirs(above, mode=0o755, exist_ok=True)
    status = os.stat(above)
    if status.st_uid == os.geteuid():
        os.chmod(above, stat.S_IMODE(status.st_mode) & ~WRITABLE_BY_OTHERS)
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    why = distrusted_folder(folder)
    if why is None and os.pathsep in folder:
        why = f"Java takes {folder} for two, since it has a colon: set XDG_CACHE_HOME"
    if why is not None:
        raise ArchiveFault(why)


@contextmanager
def _held(path: str) -> Iterator[None]:
    lock = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _remove_drafts(folder: str) -> None:
    """Nobody writes one while the lock is held: they are of those that were killed."""
    for name in os.listdir(folder):
        if name.endswith(_DRAFT):
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))


def _run(start: Callable[[str], Any], work: Callable[[Any], None], classes: str) -> _Java:
    """Java notes the classes that it loads, and has noted all when it has ended."""
    spark = start(f"{option('DumpLoadedClassList', classes)} {_SHORT_LIFE}")
    gateway = spark.sparkContext._gateway  # noqa: SLF001 - PySpark ends its Java with the process, and has no other way
    process = gateway.proc
    try:
        runtime = gateway.jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
        home = str(gateway.jvm.java.lang.System.getProperty("java.home"))
        options = [one for one in map(str, runtime.getInputArguments()) if not _is_of_this_run(one)]
        java = _Java(os.path.join(home, "bin", "java"), str(runtime.getClassPath()), options)
        _refuse_folders(java.classpath)
        work(spark)
        spark.stop()
        _forget(gateway)
        process.stdin.close()  # by which Java ends
        process.wait(_END_SECONDS_MAX)
    except BaseException:
        process.kill()
        process.wait()
        raise
    if not os.path.exists(classes):
        raise ArchiveFault(f"Java has noted no classes in {classes}")
    return java


def _is_of_this_run(option: str) -> bool:
    return option.startswith(("-Xlog", "-XX:DumpLoadedClassList", "-agent", "-javaagent"))


def _refuse_folders(classpath: str) -> None:
    for place in classpath.split(os.pathsep):
        with suppress(OSError):  # it is a jar, or not there
            if os.listdir(place or os.curdir):
                raise ArchiveFault(
                    f"Java keeps no classes where a folder with files is among the places of classes, as {place} is "
                    "(SPARK_CONF_DIR, HADOOP_CONF_DIR)"
                )


def _forget(gateway: Any) -> None:
    """The next session of this process starts a Java of its own."""
    from pyspark import SparkContext

    gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - as PySpark itself has it before the first


def _dump(java: _Java, classes: str, draft: str) -> None:
    """Writes the archive, and then has Java start with it, which fails here where Java cannot take it."""
    shared = [java.program, *java.options, *_ERRORS_ONLY, "-cp", java.classpath, f"-XX:SharedArchiveFile={draft}"]
    for step in (["-Xshare:dump", f"-XX:SharedClassListFile={classes}"], ["-Xshare:on", "-version"]):
        done = subprocess.run(  # noqa: S603 - the Java that has just run
            [*shared, *step], capture_output=True, text=True, errors="replace", timeout=_DUMP_SECONDS_MAX, check=False
        )
        if done.returncode != 0:
            said = " ".join((done.stdout + done.stderr).split())[-_SAID_CHARACTERS_MAX:]
            free = shutil.disk_usage(os.path.dirname(draft)).free >> 20
            raise ArchiveFault(
                f"Java made no archive that it takes (exit code {done.returncode}; {free} MiB are free): {said}"
            )


def _put(draft: str, place: str) -> Archive:
    """Whole, under its name; those of other Javas and PySparks go."""
    os.chmod(draft, 0o600)
    with open(draft, "rb") as file:
        os.fsync(file.fileno())
    path = f"{place}-{checksum(draft)}{ENDING}"
    os.rename(draft, path)
    folder = os.path.dirname(path)
    for name in os.listdir(folder):
        if name.endswith(ENDING) and name != os.path.basename(path):
            os.unlink(os.path.join(folder, name))
    return Archive(path, os.path.getsize(path), is_new=True)
