"""JSON of znodes, checked: what is not as it should be raises `DamagedZnode`, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ottla.coordination.errors import CoordinationError
from ottla.model import BrokerId

#: What looking into a value of the wrong shape may raise.
FAULTS: Final = (KeyError, TypeError, ValueError, AttributeError, OverflowError)


class DamagedZnode(CoordinationError):
    """The data of a node is not what should stand there."""

    def __init__(self, path: str, fault: object) -> None:
        super().__init__(f"the znode {path} is damaged: {fault}")
        self.path = path


def encode_object(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def decode_object(path: str, data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data.decode())
    except (ValueError, RecursionError) as fault:
        raise DamagedZnode(path, f"{data[:40]!r} is not JSON") from fault
    if not isinstance(value, dict):
        raise DamagedZnode(path, "it is not a JSON object")
    return value


def require(holds: bool, fault: str) -> None:
    if not holds:
        raise ValueError(fault)


def integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a whole number")
    return value


def text_of(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def broker_ids(value: Iterable[object]) -> tuple[BrokerId, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list of broker ids")
    return tuple(BrokerId(integer(one)) for one in value)


def words(fault: Exception) -> str:
    return f"{fault.args[0]!r} is missing" if isinstance(fault, KeyError) else str(fault)
