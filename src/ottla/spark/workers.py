"""Which Python runs Spark's workers: the driver's, with PySpark as it is installed.

Spark puts a zip of PySpark before all else on the path of each Python that it starts. Nothing in that zip is compiled,
and nothing that comes out of a zip is kept: each of the processes that start before a stream has its first row
compiles what it imports, for 0.9 s of a core where the installed modules take 0.3. On a machine with other work
that is also the difference between a process that calls back within Spark's ten seconds and one that does not. So
workers on this machine start by a script that leaves the zip out.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from ottla.ports.real.whole_file import write_file

_SCRIPT: Final = """#!/bin/sh
kept=
set -f
IFS=:
for place in $PYTHONPATH; do
    case "$place" in
        {home}/python/lib/*.zip | {home}/jars/*) ;;
        *) kept="$kept:$place" ;;
    esac
done
PYTHONPATH="${{kept#:}}" exec {python} "$@"
"""


def worker_python(environment: Mapping[str, str]) -> str:
    """What PYSPARK_PYTHON is best where workers run on the driver's machine."""
    home = _installed_home()
    if os.name != "posix" or home is None or environment.get("SPARK_HOME", home) != home:
        return sys.executable
    script = _SCRIPT.format(home=shlex.quote(home), python=shlex.quote(sys.executable))
    cache = environment.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    name = hashlib.sha256(script.encode()).hexdigest()[:16]
    path = os.path.join(cache, "ottla", "python", name, "python3")
    try:
        _write(path, script)
    except OSError:
        return sys.executable
    return path if os.access(path, os.X_OK) else sys.executable


def _installed_home() -> str | None:
    """The folder of PySpark, where pip has installed it with all that its zip has."""
    spark, py4j = find_spec("pyspark"), find_spec("py4j")
    if spark is None or py4j is None or spark.origin is None:
        return None
    home = os.path.dirname(spark.origin)
    return home if os.path.isfile(os.path.join(home, "python", "lib", "pyspark.zip")) else None


def _write(path: str, script: str) -> None:
    """In one piece: another process may be about to start it. What a power cut has left of it is written anew."""
    if _has(path, script.encode()):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_file(path, script.encode(), 0o700, flushed=False)


def _has(path: str, content: bytes) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read() == content
    except FileNotFoundError:
        return False
