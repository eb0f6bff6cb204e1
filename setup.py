"""What pyproject.toml cannot say: compiled code that is built where there is a C compiler, and left out elsewhere."""

from glob import glob

from setuptools import Extension, setup

NAMES = (
    *("avro", "batches", "columns", "dumped", "fetch_lane", "followed", "indexed", "json", "keys", "lane"),
    *("protobuf", "records"),
)

setup(
    ext_modules=[
        Extension(
            f"ottla.native.{name}",
            [f"src/ottla/native/{name}.c"],
            extra_compile_args=["-O2", "-Wall", "-Wextra"],
            py_limited_api=True,
            depends=sorted(glob("src/ottla/native/*.h")),
            optional=True,
        )
        for name in NAMES
    ],
    # One build serves Python 3.11 and all that follow.
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
