"""Which strings are paths: ZooKeeper's rules."""

from __future__ import annotations

import re
from typing import Final

from ottla.coordination.errors import DataTooLarge, InvalidPath
from ottla.coordination.interface import REQUEST_BYTES_MAX

#: Control characters, surrogates (so everything beyond the basic plane), private use, specials: what ZooKeeper
#: refuses anywhere in a path.
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")
#: The common case, without a look at the parts: names that start with neither a dot nor a slash.
_PLAIN: Final = re.compile(r"(?:/[A-Za-z0-9_<>-][A-Za-z0-9_<>.-]*)+")


def check_path(path: str) -> None:
    """Raises InvalidPath unless `path` is one that ZooKeeper would take."""
    if _PLAIN.fullmatch(path) or path == "/":
        return
    if fault := _fault(path):
        raise InvalidPath(f"{path!r} is not the path of a znode: {fault}")


def is_path(path: str) -> bool:
    return bool(_PLAIN.fullmatch(path)) or path == "/" or _fault(path) is None


def check_data(path: str, data: bytes) -> None:
    if len(data) > REQUEST_BYTES_MAX:
        raise DataTooLarge(f"{len(data)} bytes for {path}: a znode holds {REQUEST_BYTES_MAX} at most")


def parent_of(path: str) -> str:
    """Of a valid path other than the root."""
    return path[: path.rindex("/")] or "/"


def name_of(path: str) -> str:
    return path[path.rindex("/") + 1 :]


def _fault(path: str) -> str | None:
    if not path.startswith("/"):
        return "it must start with /"
    if path.endswith("/"):
        return "it must not end with /"
    for part in path[1:].split("/"):
        if not part:
            return "a name is empty"
        if part in {".", ".."}:
            return "names . and .. are not allowed"
    if found := _FORBIDDEN.search(path):
        return f"the character {found.group()!r} is not allowed"
    return None
