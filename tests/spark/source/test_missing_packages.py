"""Without what Spark needs, one line says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("missing", ["pyspark", "pyarrow"])
def test_one_line_says_what_to_install(missing: str) -> None:
    program = f"""
import sys
sys.modules["{missing}"] = None
try:
    import ottla.spark
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == f"SparkMissing this needs {missing}: pip install 'ottla[spark]'\n"


def test_importing_loads_neither_spark_nor_arrow() -> None:
    program = "import sys, ottla.spark; print({'pyspark', 'pyarrow', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
