"""The tests of the compiled code once more, built so that a step outside of its memory ends the process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src/ottla/native"
TESTS = Path(__file__).parent
SANITIZERS = ("address", "undefined")

#: Runs pytest with this build in the place of the installed one.
RUN = """
import sys
from importlib.util import module_from_spec, spec_from_file_location
import ottla.native
import pytest

name, built, tests, *options = sys.argv[1:]
spec = spec_from_file_location("ottla.native." + name, built)
module = module_from_spec(spec)
sys.modules["ottla.native." + name] = module
setattr(ottla.native, name, module)
spec.loader.exec_module(module)
sys.exit(pytest.main([tests, "-p", "no:cacheprovider", "-p", "no:xdist", *options]))
"""


def libraries(compiler: str) -> list[str]:
    names = [f"lib{'asan' if each == 'address' else 'ubsan'}.so" for each in SANITIZERS]
    found = [subprocess.check_output([compiler, f"-print-file-name={name}"], text=True).strip() for name in names]
    if not all(os.path.isabs(path) for path in found):
        pytest.skip("the C compiler has no sanitizers")
    return found


@pytest.mark.parametrize("name", ["batches", "columns", "keys", "lane", "records"])
def test_no_step_outside_of_its_memory(name: str, tmp_path: Path) -> None:
    run_sanitized(name, tmp_path, 150)


@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_a_million_damaged_logs(tmp_path: Path) -> None:
    """How many there are can be said with OTTLA_DAMAGED_LOGS."""
    run_sanitized("columns", tmp_path, 4 * 3600, "-m", "slow", "-o", "timeout=0")


def run_sanitized(name: str, tmp_path: Path, timeout: int, *options: str) -> None:
    """The tests of one module of compiled code, with these options for pytest."""
    compiler, headers = shutil.which("cc"), sysconfig.get_paths()["include"]
    if compiler is None or not Path(headers, "Python.h").exists():
        pytest.skip("there is no C compiler, or Python's headers are missing")
    preloaded = " ".join(libraries(compiler))
    built = str(tmp_path / f"{name}.abi3.so")
    switches = ["-shared", "-fPIC", "-g", "-O1", f"-fsanitize={','.join(SANITIZERS)}", "-fno-sanitize-recover=all"]
    subprocess.run([compiler, *switches, f"-I{headers}", str(SOURCES / f"{name}.c"), "-o", built], check=True)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "OTTLA_PURE"))},
        "LD_PRELOAD": preloaded,
        # The interpreter itself keeps some memory to the end; its own pools would hide what is out of bounds.
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    command = [sys.executable, "-c", RUN, name, built, str(TESTS / f"test_{name}.py"), *options]
    ran = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=timeout)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert "passed" in ran.stdout
    assert "skipped" not in ran.stdout
