"""JSON of znodes, checked: what is not as it should be raises `DamagedZnode`, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from ottla.coordination.errors import CoordinationError
from ottla.model import BrokerId
from ottla.steps import Steps

#: What looking into a value of the wrong shape may raise.
FAULTS: Final = (KeyError, TypeError, ValueError, AttributeError, OverflowError)

#: Of the text of a member, decoded in one piece: some two hundred partitions, 0.1 ms.
PIECE_CHARACTERS: Final = 4_096
#: Stands for a member that is decoded by itself.
_TAKEN_OUT: Final = "<taken out>"


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


def decoding_object(path: str, data: bytes, large: Collection[str]) -> Steps[dict[str, Any]]:
    """As `decode_object`, with the members that may be `large` decoded in steps: objects of lists of numbers.

    One that is something else, or is written in another way than Kafka's, is decoded in one piece.
    """
    text = data.decode(errors="replace")
    found: dict[str, dict[str, Any]] = {}
    if len(text) > PIECE_CHARACTERS and _TAKEN_OUT not in text:
        for name in large:
            head, _, rest = text.partition(f'"{name}":{{')
            end = rest.find("}")
            if end > PIECE_CHARACTERS and (members := (yield from _members(rest[:end]))) is not None:
                found[name] = members
                text = f'{head}"{name}":"{_TAKEN_OUT}"{rest[end + 1 :]}'
    if not found:
        return decode_object(path, data)
    try:
        data.decode()
        value: dict[str, Any] = json.loads(text)
        if all(value[name] == _TAKEN_OUT for name in found):
            return value | found
    except (*FAULTS, RecursionError):
        pass
    return decode_object(path, data)


def _members(text: str) -> Steps[dict[str, Any] | None]:
    """Of an object, without its brackets; None where it is not cut as it is thought to be.

    It is cut between two members where a list ends and a name begins. What reads so elsewhere, in a name or within a
    list, leaves a piece that is no JSON, since whatever stands before a right cut is whole.
    """
    found: dict[str, Any] = {}
    at = 0
    while at < len(text):
        cut = text.find('],"', at + PIECE_CHARACTERS) + 1 or len(text)
        try:
            found.update(json.loads(f"{{{text[at:cut]}}}"))
        except (ValueError, RecursionError):
            return None
        yield
        at = cut + 1
    return found


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
