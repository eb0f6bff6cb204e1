"""Show transactions: state, producer, epoch, how long they have been open, and the partitions that are in them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ottla.cli import options as shared
from ottla.cli.faults import OK, UsageFault

if TYPE_CHECKING:
    from ottla.client.admin.transaction_results import TransactionDescription

_COLUMNS = {
    "transactional_id": "ID",
    "coordinator": "COORDINATOR",
    "producer_id": "PRODUCER",
    "producer_epoch": "EPOCH",
    "state": "STATE",
    "timeout_ms": "TIMEOUT MS",
    "duration_ms": "OPEN MS",
    "partitions": "PARTITIONS",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", nargs="*", metavar="ID", help="transactional ids")
    parser.add_argument(
        "--transactional-id", metavar="ID", action="append", default=[], help="the same, as Kafka's script has it"
    )
    shared.connection(parser)
    shared.output(parser)


def run(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import run as run_on_loop

    return run_on_loop(_describe(options))


async def _describe(options: argparse.Namespace) -> int:
    from ottla.cli.connecting import admin
    from ottla.cli.output import show, table_of

    ids = list(dict.fromkeys([*options.ids, *options.transactional_id]))
    if not ids:
        raise UsageFault("an id is missing: give ID; `ottla txn list` names them")
    async with admin(options) as client:
        described = await client.describe_transactions(ids)
        now_ms = client.cluster.world.clock.wall_ms()
    rows = [_row(described[one], now_ms) for one in ids]
    table = table_of([{**row, "partitions": ",".join(row["partitions"]) or None} for row in rows], _COLUMNS)
    show(options.output, rows, table)
    return OK


def _row(one: TransactionDescription, now_ms: int) -> dict[str, Any]:
    return {
        "transactional_id": one.transactional_id,
        "coordinator": None if one.coordinator is None else one.coordinator.id,
        "producer_id": one.producer_id,
        "producer_epoch": one.producer_epoch,
        "state": one.state,
        "timeout_ms": one.timeout_ms,
        "start_time_ms": one.start_time_ms,
        "duration_ms": None if one.start_time_ms is None else max(0, now_ms - one.start_time_ms),
        "partitions": sorted(map(str, one.partitions)),
    }
