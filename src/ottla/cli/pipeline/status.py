"""Show what the flows of a pipeline have done: rows in, out and left out, lag, and the last error.

The exit code is 10 where a flow has failed, and 3 where the pipeline never ran.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from ottla.cli import options as shared
from ottla.cli.faults import NOT_FOUND, OK, UNHEALTHY, CommandFault
from ottla.cli.pipeline import explained, file_and_folder, places_of

if TYPE_CHECKING:
    from ottla.pipeline.places import Places
    from ottla.pipeline.status import FlowStatus

COLUMNS: Final = {
    "flow": "FLOW",
    "kind": "KIND",
    "state": "STATE",
    "batch": "BATCH",
    "rows_in": "IN",
    "rows_out": "OUT",
    "dropped": "DROPPED",
    "dead": "DEAD",
    "late": "LATE",
    "lag": "LAG",
    "expectations": "FAILED EXPECTATIONS",
    "error": "ERROR",
}
#: A table's cell; JSON and YAML have all of it.
_ERROR_CHARACTERS_MAX: Final = 80


def arguments(parser: argparse.ArgumentParser) -> None:
    file_and_folder(parser)
    parser.add_argument("--watch", action="store_true", help="show it again every second until Ctrl-C")
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    import time

    from ottla.cli.output import table_of
    from ottla.cli.watching import show_again

    places = places_of(options)
    first = True
    while True:
        flows = _flows(places, options)
        if not options.watch:
            show_flows(options.output, flows)
            return UNHEALTHY if any(flow.error for flow in flows) else OK
        rows = rows_of(flows)
        shown = rows if options.output == "table" else [flow.as_json() for flow in flows]
        show_again(options.output, shown, table_of(rows, COLUMNS), is_first=first)
        first = False
        time.sleep(1)


def show_flows(form: str, flows: list[FlowStatus]) -> None:
    from ottla.cli.output import show, table_of

    show(form, [flow.as_json() for flow in flows], table_of(rows_of(flows), COLUMNS))


def rows_of(flows: list[FlowStatus]) -> list[dict[str, Any]]:
    """As a table shows them."""
    rows = []
    for flow in flows:
        row = flow.as_json()
        broken = [f"{name}: {count}" for name, count in flow.failed.items() if count]
        row["lag"] = lag_of(flow)
        row["expectations"] = "; ".join(broken) or None
        error = flow.error
        row["error"] = (
            error if error is None or len(error) <= _ERROR_CHARACTERS_MAX else f"{error[:_ERROR_CHARACTERS_MAX]}..."
        )
        rows.append(row)
    return rows


def lag_of(flow: FlowStatus) -> int | str | None:
    """`120`, and `120, of 1 source unknown` where that is not all."""
    from ottla.cli.counting import counted

    if flow.lag is None or not flow.lag_unknown:
        return flow.lag
    return f"{flow.lag}, of {counted(flow.lag_unknown, 'source')} unknown"


def _flows(places: Places, options: argparse.Namespace) -> list[FlowStatus]:
    from ottla.pipeline.status import read_statuses

    with explained():
        flows = read_statuses(places)
    if not flows:
        raise CommandFault(
            f"no pipeline has run in {places.folder}: `ottla pipeline run {options.file}` runs it, and --folder says "
            "where it is",
            NOT_FOUND,
        )
    return flows
