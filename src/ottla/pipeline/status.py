"""What `ottla pipeline status` shows: a file for each flow, which the run replaces as the flow goes on.

    {"flow": "orders", "kind": "table", "state": "running", "batch": 41, "in": 5000, "out": 4990, "dropped": 10,
     "dead": 10, "failed": {"positive amount": 10}, "passed": {"positive amount": 4990}, "lag": 120, "lag_unknown": 0,
     "late": 0, "rows_a_second": 812.5, "error": null, "updated_ms": 1763856000000}

Of a table the counts come out of its log, where they were written with the rows: they are exact over any crash.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Final

from ottla.pipeline.errors import BadState
from ottla.pipeline.places import Places, read_json, write_json

RUNNING: Final = "running"
DONE: Final = "done"
STOPPED: Final = "stopped"
FAILED: Final = "failed"


@dataclass(slots=True, kw_only=True)
class FlowStatus:
    flow: str
    kind: str
    state: str = RUNNING
    batch: int | None = None
    rows_in: int = 0
    rows_out: int = 0
    #: Left out by rules.
    dropped: int = 0
    #: Of these in the topic of dead letters.
    dead: int = 0
    #: Rows that broke a rule, by the rule's name.
    failed: dict[str, int] = field(default_factory=dict)
    #: Rows that kept it.
    passed: dict[str, int] = field(default_factory=dict)
    #: Records of topics, or versions of tables, that are not read yet; None before that is known.
    lag: int | None = None
    #: Sources of which that is not known: the lag lacks theirs.
    lag_unknown: int = 0
    #: Rows that Spark itself dropped, as they came behind a watermark.
    late: int = 0
    rows_a_second: float | None = None
    error: str | None = None
    updated_ms: int = 0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def write_status(places: Places, status: FlowStatus) -> None:
    """Not flushed: after the machine's death the run begins by writing it anew."""
    write_json(places.status(status.flow), status.as_json(), flushed=False)


def read_statuses(places: Places) -> list[FlowStatus]:
    """Of all flows that ever ran here."""
    found = []
    for name in places.names_with_status():
        fields = read_json(places.status(name))
        if fields is None:
            continue
        try:
            found.append(FlowStatus(**fields))
        except TypeError as error:
            raise BadState(f"{places.status(name)} is damaged ({error}): delete it") from error
    return found
