"""The tests of the compiled code once more, built so that a step outside of its memory ends the process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src/ottla/native"
TESTS = Path(__file__).parent
SANITIZERS = ("address", "undefined")

#: Runs pytest with these builds in the place of the installed ones.
RUN = """
import sys
from importlib.util import module_from_spec, spec_from_file_location
import ottla.native
import pytest

built, tests, names, *options = sys.argv[1:]
names = names.split(",")
for name in names:
    spec = spec_from_file_location("ottla.native." + name, f"{built}/{name}.abi3.so")
    module = module_from_spec(spec)
    sys.modules["ottla.native." + name] = module
    setattr(ottla.native, name, module)
    spec.loader.exec_module(module)
asked = [f"{tests}/test_{name}.py" for name in names]
sys.exit(pytest.main([*asked, "-p", "no:cacheprovider", "-p", "no:xdist", *options]))
"""
OF_SOCKETS = ("fetch_lane", "followed", "lane")
NAMES = (
    *("avro", "batches", "columns", "dumped", "fetch_lane", "followed", "indexed", "json", "keys", "lane"),
    *("protobuf", "records"),
)


def libraries(compiler: str) -> list[str]:
    names = [f"lib{'asan' if each == 'address' else 'ubsan'}.so" for each in SANITIZERS]
    found = [subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip() for name in names]
    if not all(os.path.isabs(path) for path in found):
        pytest.skip("the C compiler has no sanitizers")
    return found


@pytest.mark.timeout(1800)  # all is several times slower there, and the machine may be busy with others
def test_no_step_outside_of_its_memory_for_what_comes_over_sockets(tmp_path: Path) -> None:
    run_sanitized(OF_SOCKETS, tmp_path, 1700)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_no_step_outside_of_its_memory(tmp_path: Path) -> None:
    run_sanitized(NAMES, tmp_path, 1100)


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_a_million_damaged_logs(tmp_path: Path) -> None:
    """How many there are can be said with OTTLA_DAMAGED_LOGS."""
    run_sanitized(["columns"], tmp_path, 4 * 3600, "-m", "slow", "-o", "timeout=0")


def run_sanitized(names: Sequence[str], tmp_path: Path, timeout: int, *options: str) -> None:
    """The tests of these modules of compiled code, with these options for pytest."""
    compiler, headers = shutil.which("cc"), sysconfig.get_paths()["include"]
    if compiler is None or not Path(headers, "Python.h").exists():
        pytest.skip("there is no C compiler, or Python's headers are missing")
    preloaded = " ".join(libraries(compiler))
    switches = ["-shared", "-fPIC", "-g", "-O1", f"-fsanitize={','.join(SANITIZERS)}", "-fno-sanitize-recover=all"]
    for name in names:
        target = str(tmp_path / f"{name}.abi3.so")
        subprocess.run([compiler, *switches, f"-I{headers}", str(SOURCES / f"{name}.c"), "-o", target], check=True)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "OTTLA_PURE"))},
        "LD_PRELOAD": preloaded,
        # The interpreter itself keeps some memory to the end; its own pools would hide what is out of bounds.
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    command = [sys.executable, "-c", RUN, str(tmp_path), str(TESTS), ",".join(names), *options]
    ran = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=timeout)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert "passed" in ran.stdout
    assert "skipped" not in ran.stdout
