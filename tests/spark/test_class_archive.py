"""The archive of Spark's classes: whose it must be, where it is given to Java, and what is left where none is made.

`StandIn` is a session whose Java is a script; those that start Spark itself stand in `test_class_archive_in_spark.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
import pytest

from ottla.records.checksum import crc32c
from ottla.spark import class_archive_making, driver
from ottla.spark.class_archive import JAVA_OPTIONS, SWITCH, archive_for, archive_options
from ottla.spark.class_archive_making import Archive, ArchiveFault, make

#: Stands for the Java of a session: writes what it is told to, and obeys as the test says.
JAVA = """#!/bin/sh
for one in "$@"; do
    case "$one" in
        -XX:SharedArchiveFile=*) archive="${one#*=}" ;;
        -Xshare:dump) dumps=yes ;;
    esac
done
[ -z "$dumps" ] && exit %(takes)d
printf %(content)s > "$archive"
echo "what Java says"
exit %(dumps)d
"""


def java_home(
    folder: Path, *, version: str = "17.0.1", content: str = "classes", dumps: int = 0, takes: int = 0
) -> str:
    (folder / "bin").mkdir(parents=True, exist_ok=True)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\n')
    program = folder / "bin" / "java"
    program.write_text(JAVA % {"content": content, "dumps": dumps, "takes": takes})
    program.chmod(0o755)
    return str(folder)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    cache = tmp_path / "the cache"
    cache.mkdir(mode=0o700)
    return {"JAVA_HOME": java_home(tmp_path / "java"), "PATH": "", "XDG_CACHE_HOME": str(cache)}


class StandIn:
    """What `make` asks of a session. Its Java lives until its standard input ends."""

    def __init__(self, environment: dict[str, str], options: str, classpath: str = "a.jar") -> None:
        classes = options.partition("DumpLoadedClassList=")[2].partition('"')[0]
        self.proc = subprocess.Popen(["/bin/sh", "-c", 'read _; : > "$0"', classes], stdin=subprocess.PIPE)
        self.home, self.classpath = environment["JAVA_HOME"], classpath
        self.sparkContext = self._gateway = self.jvm = self.java = self.lang = self.management = self
        self.System = self.ManagementFactory = self

    def getProperty(self, name: str) -> str:
        assert name == "java.home"
        return self.home

    def getRuntimeMXBean(self) -> StandIn:
        return self

    def getInputArguments(self) -> list[str]:
        return ["-Xmx1g", "-Xlog:gc", "-javaagent:x", "-XX:DumpLoadedClassList=x"]

    def getClassPath(self) -> str:
        return self.classpath

    def stop(self) -> None:
        pass

    shutdown = stop


@pytest.fixture(autouse=True)
def kept_context(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make` has PySpark forget its Java, which may be that of other tests."""
    monkeypatch.setattr(class_archive_making, "_forget", lambda gateway: gateway.shutdown())


Make = Callable[..., Archive]


@pytest.fixture
def made(environment: dict[str, str]) -> Make:
    def run(work: Callable[[Any], None] = lambda _: None, **how: Any) -> Archive:
        return make(lambda options: StandIn(environment, options, **how), work, environment)

    return run


def folder_of(environment: dict[str, str]) -> Path:
    return Path(environment["XDG_CACHE_HOME"]) / "ottla" / "spark-classes"


def left(environment: dict[str, str]) -> list[str]:
    return sorted(one.name for one in folder_of(environment).iterdir() if one.name != "lock")


def options(environment: dict[str, str], **config: str) -> str | None:
    return archive_options(environment, config).get(JAVA_OPTIONS)


# What is made


def test_one_that_is_made_is_used(environment: dict[str, str], made: Make) -> None:
    archive = made()
    assert (archive.is_new, archive.size) == (True, len("classes"))
    assert os.path.basename(archive.path).startswith(f"spark-{pyspark.__version__}-")
    assert archive.path.endswith(f"-{crc32c(b'classes'):08x}.jsa")
    assert folder_of(environment).stat().st_mode & 0o777 == 0o700
    assert left(environment) == [os.path.basename(archive.path)]
    assert options(environment) == f'"-XX:SharedArchiveFile={archive.path}" -Xlog:cds*=off'


def test_the_second_time_it_is_there(environment: dict[str, str], made: Make) -> None:
    first = made()
    second = make(lambda _: pytest.fail("Java starts"), lambda _: None, environment)
    assert second == first._replace(is_new=False)


def test_one_that_is_damaged_is_made_again(environment: dict[str, str], made: Make) -> None:
    first = made()
    Path(first.path).write_bytes(b"classe")
    assert made().is_new
    assert archive_for(environment) == first.path
    assert len(left(environment)) == 1


def test_another_java_finds_none_and_its_own_takes_the_place(environment: dict[str, str], made: Make) -> None:
    first = made()
    java_home(Path(environment["JAVA_HOME"]), version="17.0.2")
    assert archive_for(environment) is None
    second = made()
    assert second.path != first.path
    assert left(environment) == [os.path.basename(second.path)]


def test_other_jars_find_none(environment: dict[str, str], made: Make, tmp_path: Path) -> None:
    jars = tmp_path / "spark" / "jars"
    jars.mkdir(parents=True)
    (jars / "a.jar").write_bytes(b"one")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(jars.parent))
        made()
        assert archive_for(environment) is not None
        (jars / "a.jar").write_bytes(b"another")
        assert archive_for(environment) is None


def test_two_at_once_make_one(environment: dict[str, str], made: Make) -> None:
    found: list[Archive] = []
    threads = [threading.Thread(target=lambda: found.append(made())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.is_new for one in found) == [False, False, True]
    assert len({one.path for one in found}) == 1


# What fails leaves nothing


@pytest.mark.parametrize(("dumps", "takes"), [(1, 0), (0, 1)])
def test_java_that_makes_none_or_does_not_take_it(
    environment: dict[str, str], made: Make, dumps: int, takes: int
) -> None:
    java_home(Path(environment["JAVA_HOME"]), dumps=dumps, takes=takes)
    with pytest.raises(ArchiveFault, match="made no archive that it takes"):
        made()
    assert left(environment) == []


def test_the_one_before_stays_where_the_next_cannot_be_made(environment: dict[str, str], made: Make) -> None:
    first = made()
    java_home(Path(environment["JAVA_HOME"]), version="17.0.2", dumps=1)
    with pytest.raises(ArchiveFault, match="what Java says"):
        made()
    assert left(environment) == [os.path.basename(first.path)]


def test_work_that_is_interrupted_ends_java(environment: dict[str, str]) -> None:
    sessions = []

    def start(options: str) -> StandIn:
        sessions.append(StandIn(environment, options))
        return sessions[0]

    def work(_: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(start, work, environment)
    assert sessions[0].proc.returncode == -signal.SIGKILL
    assert left(environment) == []


def test_what_a_killed_one_has_left_goes(environment: dict[str, str], made: Make) -> None:
    made()
    java_home(Path(environment["JAVA_HOME"]), version="17.0.2")
    (folder_of(environment) / "77.new").write_bytes(b"half")
    made()
    assert not (folder_of(environment) / "77.new").exists()


def test_folders_on_the_class_path_are_refused_before_anything_runs(made: Make, tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("")
    with pytest.raises(ArchiveFault, match=r"a folder with files .* as .*/conf is"):
        made(lambda _: pytest.fail("it runs"), classpath=f"{tmp_path}/conf:a.jar")


# Whose it must be


def open_folder(path: Path) -> Path:
    path.parent.chmod(0o770)
    return path.parent


def open_file(path: Path) -> Path:
    path.chmod(0o622)
    return path


def open_above(path: Path) -> Path:
    path.parents[2].chmod(0o777)
    return path.parents[2]


def link(path: Path) -> Path:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")
    return path


def of_another(path: Path) -> Path:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(path, 12345, 12345)
    return path


def folder_of_another(path: Path) -> Path:
    of_another(path.parent)
    return path.parent


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (open_folder, "others can write {}: chmod go-w {}"),
        (open_file, "others can write {}: chmod go-w {}"),
        (open_above, "others can write {}: chmod go-w {}"),
        (link, "{} is not yours"),
        (of_another, "{} is not yours"),
        (folder_of_another, "{} is not yours"),
    ],
)
def test_what_others_can_write_is_not_run(
    environment: dict[str, str], made: Make, own_log_lines: list[str], change: Callable[[Path], Path], said: str
) -> None:
    place = change(Path(made().path))
    assert options(environment) is None
    assert options(environment) is None
    (line,) = own_log_lines
    assert "WARN  spark  an archive of Spark's classes is not used" in line
    assert said.replace("{}", os.path.realpath(place.parent) + os.sep + place.name) in line


def test_a_folder_that_all_may_write_but_none_may_rename_in_is_no_harm(environment: dict[str, str], made: Make) -> None:
    path = made().path
    Path(environment["XDG_CACHE_HOME"]).chmod(0o1777)
    assert archive_for(environment) == path


def test_none_is_made_where_others_can_write(environment: dict[str, str], made: Make) -> None:
    Path(environment["XDG_CACHE_HOME"]).chmod(0o777)
    with pytest.raises(ArchiveFault, match=r"others can write .*: chmod go-w"):
        made()


def test_ours_above_is_closed_to_the_group(environment: dict[str, str], made: Make) -> None:
    """A session has made it, of a user whose files are the group's too."""
    above = folder_of(environment).parent
    above.mkdir()
    above.chmod(0o775)
    assert archive_for(environment) is None
    made()
    assert above.stat().st_mode & 0o777 == 0o755
    assert archive_for(environment) is not None


@pytest.mark.parametrize("content", [b"", b"class", b"clasSes", b"classes\0"])
def test_a_part_or_another_content_is_not_run(
    environment: dict[str, str], made: Make, own_log_lines: list[str], content: bytes
) -> None:
    Path(made().path).write_bytes(content)
    assert options(environment) is None
    assert len(own_log_lines) == 1


def test_a_colon_in_the_folder(environment: dict[str, str], made: Make, tmp_path: Path) -> None:
    environment["XDG_CACHE_HOME"] = str(tmp_path / "a:b")
    with pytest.raises(ArchiveFault, match="it has a colon"):
        made()


# What a user has said


def test_options_of_the_user_stay_and_come_behind(environment: dict[str, str], made: Make) -> None:
    made()
    joined = options(environment, **{JAVA_OPTIONS: "-Da=b -Xlog:gc"})
    assert joined is not None
    assert joined.endswith('.jsa" -Xlog:cds*=off -Da=b -Xlog:gc')


@pytest.mark.parametrize("word", ["no", "0", "OFF", "false"])
def test_the_switch(environment: dict[str, str], made: Make, word: str) -> None:
    made()
    assert options({**environment, SWITCH: word}) is None
    assert options({**environment, SWITCH: "yes"}) is not None


@pytest.mark.parametrize(
    "option",
    ["-XX:SharedArchiveFile=/a", "-XX:ArchiveClassesAtExit=/a", "-Xshare:off", "-XX:AOTCache=/a", "-Xshare:dump"],
)
@pytest.mark.parametrize(
    "place", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "PYSPARK_SUBMIT_ARGS", "SPARK_SUBMIT_OPTS"]
)
@pytest.mark.in_turns
def test_who_says_how_classes_are_shared_has_it_so(
    environment: dict[str, str], made: Make, option: str, place: str
) -> None:
    made()
    assert options({**environment, place: f"-Da=b {option}"}) is None
    assert options({**environment, place: "-Da=b"}) is not None


@pytest.mark.parametrize("name", ["spark.driver.extraJavaOptions", "spark.driver.defaultJavaOptions"])
def test_in_properties_too(environment: dict[str, str], made: Make, name: str) -> None:
    made()
    assert options(environment, **{name: "-Dx=y -XX:SharedArchiveFile=/a"}) is None
    assert options(environment, **{name: "-Dx=y"}) is not None


def test_files_of_properties_keep_their_options(environment: dict[str, str], made: Make, tmp_path: Path) -> None:
    """A session's property would take the place of theirs; and Java takes no archive behind a folder with files."""
    made()
    environment["SPARK_CONF_DIR"] = str(tmp_path / "conf")
    assert options(environment) is not None
    (tmp_path / "conf").mkdir()
    assert options(environment) is not None
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.driver.extraJavaOptions -Da=b\n")
    assert options(environment) is None


def test_java_that_runs_already_is_given_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert driver._is_submitted()
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT")
    assert not driver._is_submitted()
