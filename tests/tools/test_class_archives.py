"""Java maps classes out of an archive where there is one that fits, and otherwise starts as it always does."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
import tools.java
from tools.java import archive_flags, archive_of, java_command, making_flags

needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java here")
PROGRAM = """
public class Hello {
    public static void main(String[] arguments) {
        System.out.println("hello");
    }
}
"""


@pytest.fixture(autouse=True)
def archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tools.java, "ARCHIVES", tmp_path)
    return tmp_path


def test_nothing_is_said_of_an_archive_that_is_not_there() -> None:
    assert archive_flags("jars/*", "kafka.Kafka") == ()
    archive_of("jars/*", "kafka.Kafka").write_bytes(b"")
    assert archive_flags("jars/*", "kafka.Kafka") != ()
    assert archive_flags("others/*", "kafka.Kafka") == ()
    assert archive_flags("jars/*", "kafka.Other") == ()


def test_all_programs_in_source_have_one() -> None:
    assert archive_of("jars/*", "a/One.java") == archive_of("jars/*", "b/Another.java")


@needs_java
def test_what_is_no_archive_is_left_unused_without_a_word(tmp_path: Path) -> None:
    program = tmp_path / "Hello.java"
    program.write_text(PROGRAM)
    archive_of("jars/*", str(program)).write_bytes(b"no archive")
    done = subprocess.run(java_command("jars/*", str(program)), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")


@needs_java
@pytest.mark.slow
def test_what_one_has_written_the_next_ones_use(tmp_path: Path) -> None:
    program, jars = tmp_path / "Hello.java", f"{tmp_path}/*"
    program.write_text(PROGRAM)
    archive = archive_of(jars, str(program))
    command = ["java", *making_flags(archive), "-cp", jars, str(program)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "hello\n"
    assert str(archive) in " ".join(java_command(jars, str(program)))
    done = subprocess.run(java_command(jars, str(program)), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")
