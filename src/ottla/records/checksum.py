"""CRC-32C, from the `crc32c` package's extension module.

The package itself reads its version from its metadata when it is imported, which brings in email, zipfile and argparse:
40 ms of a broker's start, against 1 ms for the extension alone. So the extension is loaded by its file, and the package
only where that does not work.
"""

from __future__ import annotations

from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from typing import Protocol

    from ottla.records.batch import Readable

    class Checksum(Protocol):
        def __call__(self, data: Readable, before: int = 0, /) -> int: ...


def _load() -> Checksum:
    package = PathFinder.find_spec("crc32c")
    if package is not None:
        spec = PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
        if spec is not None and spec.loader is not None:
            extension = module_from_spec(spec)
            spec.loader.exec_module(extension)
            function: Checksum = extension.crc32c
            return function
    from crc32c import crc32c as packaged

    return packaged


#: The checksum of bytes or of a view on them, without a copy; with the sum of what stands before them, that of both.
#: Releases the interpreter's lock on large ones.
crc32c: Final = _load()
