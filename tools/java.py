"""How Java is started for tests: what they run lives for seconds, so that it shall start quickly and stay small."""

from __future__ import annotations

import os
import shutil
from hashlib import sha256
from pathlib import Path

#: One quick compiler, one thread that collects garbage: a Kafka then starts and stops for half of the processor's time.
QUICK_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
#: Where `tools/class_archives.py` leaves what it makes.
ARCHIVES = Path(__file__).resolve().parent.parent / ".cache" / "java-classes"
#: Java says on standard output why it leaves an archive unused, where others read what a program has printed.
_SILENCE = "-Xlog:cds*=off"


def java_command(classpath: str, *words: str, flags: tuple[str, ...] = ()) -> list[str]:
    """The command that runs a class or a source file, and its arguments, with the classes of ``classpath``."""
    return ["java", *QUICK_FLAGS, *archive_flags(classpath, words[0]), *flags, "-cp", classpath, *words]


def archive_flags(classpath: str, main: str) -> tuple[str, ...]:
    """Classes are mapped as an archive has them, in place of being read and checked; nothing where there is none."""
    archive = archive_of(classpath, main)
    return (f"-XX:SharedArchiveFile={archive}", _SILENCE) if archive.exists() else ()


def making_flags(archive: Path) -> tuple[str, ...]:
    """What runs with them writes its classes there when it ends."""
    return (f"-XX:ArchiveClassesAtExit={archive}", _SILENCE)


def archive_of(classpath: str, main: str) -> Path:
    """One for each class that is run, and one for all source files: they are compiled, and then are clients."""
    java = os.path.realpath(shutil.which("java") or "java")
    built = str(os.stat(java).st_mtime_ns) if os.path.exists(java) else ""
    kind = "a source file" if main.endswith(".java") else main
    name = sha256("\n".join((classpath, kind, java, built)).encode()).hexdigest()[:16]
    return ARCHIVES / f"{name}.jsa"
