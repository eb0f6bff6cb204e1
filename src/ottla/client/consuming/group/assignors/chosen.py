"""`partition.assignment.strategy`: from names, classes and instances to the assignors of one consumer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ottla.client.arguments import shown
from ottla.client.consuming.group.assignors.assignor import Assignor
from ottla.client.consuming.group.assignors.cooperative import CooperativeStickyAssignor
from ottla.client.consuming.group.assignors.range import RangeAssignor
from ottla.client.consuming.group.assignors.round_robin import RoundRobinAssignor
from ottla.client.consuming.group.assignors.sticky import StickyAssignor
from ottla.client.errors import SettingsError

_BY_NAME: Final[dict[str, type[Assignor]]] = {
    kind.name: kind for kind in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
}
_JAVA_PACKAGE: Final = "org.apache.kafka.clients.consumer."


def chosen_assignors(setting: Any) -> list[Assignor]:
    """In the order of preference, each of them new or the caller's own instance. Raises SettingsError."""
    pieces: Iterable[Any]
    if isinstance(setting, str):
        pieces = [piece.strip() for piece in setting.split(",") if piece.strip()]
    elif isinstance(setting, Iterable):
        pieces = list(setting)
    else:
        pieces = [setting]
    found: dict[str, Assignor] = {}
    for piece in pieces:
        assignor = _assignor(piece)
        if assignor.name in found:
            raise SettingsError(f"partition.assignment.strategy names {assignor.name} twice")
        found[assignor.name] = assignor
    if not found:
        raise SettingsError("partition.assignment.strategy names no assignor")
    return list(found.values())


def _assignor(piece: Any) -> Assignor:
    kind: Any = piece
    if isinstance(piece, str):
        java = {f"{_JAVA_PACKAGE}{one.__name__}": one for one in _BY_NAME.values()}
        kind = _BY_NAME.get(piece) or java.get(piece)
        if kind is None:
            raise SettingsError(
                f"partition.assignment.strategy: there is no {shown(piece)}, only {', '.join(_BY_NAME)}; "
                "an assignor of your own is given as a class"
            )
    found = kind() if isinstance(kind, type) else kind
    if not isinstance(found, Assignor):
        raise SettingsError(f"partition.assignment.strategy: {shown(piece)} does not derive from ottla.client.Assignor")
    if not isinstance(getattr(found, "name", None), str) or not found.name:
        raise SettingsError(f"partition.assignment.strategy: {type(found).__name__} has no name")
    return found
