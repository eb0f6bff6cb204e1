"""Name the transactional ids, with the producer, the state and the coordinator of each.

--state takes the words of the table, in any case: --state ongoing,preparecommit. --duration-filter leaves those that
have been open for longer, and --transactional-id-pattern those whose whole id a regular expression (RE2) matches.
"""

from __future__ import annotations

import argparse

from ottla.cli import options as shared
from ottla.cli.faults import OK, UsageFault
from ottla.cli.numbers import milliseconds, offset_number

#: In the order in which a transaction goes through them.
STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "PrepareEpochFence",
    "Dead",
)


def arguments(parser: argparse.ArgumentParser) -> None:
    shared.connection(parser)
    parser.add_argument("--state", metavar="STATE,...", help="only ids in these states")
    parser.add_argument(
        "--producer-id",
        type=offset_number,
        metavar="ID",
        action="append",
        help="only this producer's; may be given again",
    )
    parser.add_argument("--duration-filter", type=milliseconds, metavar="MS", help="only what is open for longer")
    parser.add_argument("--transactional-id-pattern", metavar="REGEX", help="only ids that match as a whole")
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_list(options))


async def _list(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.output import show_rows

    states = _states(options.state)
    async with admin(options) as client:
        found = await client.list_transactions(
            states=states,
            producer_ids=options.producer_id,
            duration_ms=options.duration_filter,
            pattern=options.transactional_id_pattern,
        )
    rows = [
        {
            "transactional_id": one.transactional_id,
            "coordinator": one.coordinator,
            "producer_id": one.producer_id,
            "state": one.state,
        }
        for one in found
    ]
    columns = {"transactional_id": "ID", "coordinator": "COORDINATOR", "producer_id": "PRODUCER", "state": "STATE"}
    show_rows(options.output, rows, columns)
    return OK


def _states(text: str | None) -> list[str]:
    """As brokers spell them."""
    spelt = {word.lower(): word for word in STATES}
    found = []
    for word in (text or "").split(","):
        if not word.strip():
            continue
        if word.strip().lower() not in spelt:
            raise UsageFault(f"--state: there is no {word.strip()}; known are {', '.join(STATES)}")
        found.append(spelt[word.strip().lower()])
    return found
