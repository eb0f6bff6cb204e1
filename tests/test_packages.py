"""What is handed out: a wheel holds the program and nothing to build it from, an sdist all that `./test` needs."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
#: What is no part of a checkout.
LEFT_OUT = (".git", ".venv*", ".cache", "build", "dist", "*.egg-info", "__pycache__", "*.so", ".*_cache", ".hypothesis")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy: building writes into the tree."""
    folder = tmp_path_factory.mktemp("checkout") / "ottla"
    shutil.copytree(REPOSITORY, folder, ignore=shutil.ignore_patterns(*LEFT_OUT))
    return folder


def build(checkout: Path, kind: str, into: Path) -> Path:
    """By the backend that pip calls, without the download of another one."""
    code = f"import sys; from setuptools import build_meta; print(build_meta.build_{kind}(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(into)], capture_output=True, text=True, check=False, cwd=checkout
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return into / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    with zipfile.ZipFile(build(checkout, "wheel", tmp_path_factory.mktemp("wheel"))) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="module")
def sdist(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    with tarfile.open(build(checkout, "sdist", tmp_path_factory.mktemp("sdist"))) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def test_a_wheel_holds_no_source_in_c_and_nothing_beside_the_package(wheel: set[str]) -> None:
    assert {name for name in wheel if name.endswith((".c", ".h", ".pyx"))} == set()
    assert {name.split("/")[0].partition("-")[0] for name in wheel} == {"ottla"}
    assert {name for name in wheel if "/tests/" in name or "__pycache__" in name} == set()


def test_a_wheel_holds_what_the_program_reads(wheel: set[str]) -> None:
    code = {path.relative_to(REPOSITORY / "src").as_posix() for path in (REPOSITORY / "src" / "ottla").rglob("*.py")}
    assert code <= wheel
    assert "ottla/py.typed" in wheel
    assert {name for name in wheel if name.endswith(".pyi")}


def test_an_sdist_holds_the_tests_and_what_they_use(sdist: set[str]) -> None:
    kept = ("tests", "tools", "bench", "docs", "deploy", "examples", "src", ".ci")
    wanted = {
        path.relative_to(REPOSITORY).as_posix()
        for folder in kept
        for path in (REPOSITORY / folder).rglob("*")
        if path.is_file() and not {"__pycache__", ".hypothesis"} & set(path.parts)
    }
    wanted = {name for name in wanted if not name.endswith((".so", ".pyc")) and ".egg-info/" not in name}
    wanted |= {
        "test",
        ".gitignore",
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "LICENSE",
        "pyproject.toml",
        "setup.py",
    }
    assert wanted - sdist == set()
    assert {name for name in sdist if name.endswith((".so", ".pyc"))} == set()
