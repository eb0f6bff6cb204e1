"""The archive of Spark's classes under a real Java and a real Spark: made, mapped, and left where it does not fit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest
from tests.spark.conftest import needs_java
from tools.java import QUICK_FLAGS

from ottla.spark.class_archive import SWITCH, archive_folder, archive_for, checksum, name_of_archive

pytestmark = [needs_java, pytest.mark.xdist_group("spark"), pytest.mark.timeout(1200)]

ROOT = Path(__file__).resolve().parents[2]

#: A session; which archives its Java has mapped is what Linux says.
PROGRAM = """
import json, os, sys
import ottla.spark

options, memory = sys.argv[1:]
config = {"spark.ui.enabled": False, "spark.driver.extraJavaOptions": options, "spark.driver.memory": memory}
spark = ottla.spark.session("a test", master="local[1]", config=config)
assert spark.range(7).selectExpr("sum(id)").head()[0] == 21
jvm = spark.sparkContext._gateway
with open(f"/proc/{jvm.proc.pid}/maps") as maps:
    mapped = sorted({line.split()[-1] for line in maps if line.rstrip().endswith(".jsa")})
said = jvm.jvm.java.lang.System.getProperty("ottla.said")
print(json.dumps([mapped, said]))
spark.stop()
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK_", "SPARK_", SWITCH))}
    return {**kept, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}


def python(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=900, check=False, env=environment, cwd="/"
    )


def session(environment: dict[str, str], options: str = "", memory: str = "1g", warns: str = "") -> list[str]:
    """The archives of ours that are mapped. Nothing may be printed but by the program, and nothing fail."""
    done = python(environment, "-c", PROGRAM, f"-Dottla.said=yes {options}", memory)
    assert done.returncode == 0, done.stderr[-4000:]
    assert warns in done.stderr
    assert warns or "archive" not in done.stderr
    (line,) = done.stdout.splitlines()
    mapped, said = json.loads(line)
    assert said == "yes"
    return [one for one in mapped if one.startswith(environment["XDG_CACHE_HOME"])]


def prepare(environment: dict[str, str], *words: str) -> Any:
    done = python(environment, "-m", "ottla", "pipeline", "prepare", "-o", "json", *words)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


def foreign_archive(environment: dict[str, str]) -> Path:
    """Whole, and under the right name, but made of other jars."""
    folder = Path(archive_folder(environment))
    folder.mkdir(mode=0o700, parents=True)
    draft = folder / "draft"
    home = environment.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else "java"
    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("spark-launcher*.jar")
    command = [java, *QUICK_FLAGS, "-cp", str(jar)]
    classes = folder / "classes"
    # It ends by its usage; its classes are noted.
    subprocess.run(
        [*command, f"-XX:DumpLoadedClassList={classes}", "org.apache.spark.launcher.Main"],
        capture_output=True,
        check=False,
    )
    flags = ["-Xshare:dump", f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={draft}"]
    subprocess.run([*command, *flags], capture_output=True, check=True)
    draft.chmod(0o600)
    return draft.rename(folder / f"{name_of_archive(environment)}-{checksum(str(draft))}.jsa")


def test_one_of_other_jars_is_left_in_silence(environment: dict[str, str]) -> None:
    path = foreign_archive(environment)
    assert archive_for(environment) == str(path)  # only Java can tell
    assert session(environment) == []


@pytest.mark.slow
def test_it_is_made_once_and_mapped_from_then_on(environment: dict[str, str]) -> None:
    assert session(environment) == []
    assert not Path(archive_folder(environment)).exists(), "none is made that nobody asks for"
    made = prepare(environment)
    assert (made["new"], made["bytes"]) == (True, os.path.getsize(made["path"]))
    assert prepare(environment)["new"] is False
    assert session(environment) == [made["path"]]
    assert session({**environment, SWITCH: "no"}) == []

    # What makes it unfit is no fault either: its objects have other places in such a memory.
    assert session({**environment, "JDK_JAVA_OPTIONS": ""}, "-XX:+UseZGC") == []
    assert session(environment, memory="33g") == []

    whole = Path(made["path"]).read_bytes()
    middle = len(whole) // 2
    for damaged in (whole[:middle], whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]):
        Path(made["path"]).write_bytes(damaged)
        assert session(environment, warns="an archive of Spark's classes is not used") == []
