"""Reads what a batch in a log says of transactions, for the invariants."""

from __future__ import annotations

from ottla.records.batch import batch_size, parse_header
from ottla.records.control import ControlType, parse_control
from ottla.records.record import Record, decode_batch
from ottla.testing.sim.invariants.shadow_transactions import SeenDecision, SeenTransaction
from ottla.transactions.records import read_key, read_short_value


def seen_transaction(data: bytearray, at: int) -> SeenTransaction:
    """Of the batch there, which has the transactional bit."""
    header = parse_header(data, at)
    if not header.is_control:
        return SeenTransaction(header.producer_id, header.producer_epoch)
    (record,) = _records(data, at)
    control = parse_control(record.key, record.value)
    assert control.coordinator_epoch is not None, "the only control records here are ends of transactions"
    is_commit = control.type is ControlType.COMMIT
    return SeenTransaction(header.producer_id, header.producer_epoch, control.coordinator_epoch, is_commit)


def seen_decisions(data: bytearray, at: int) -> tuple[SeenDecision, ...]:
    """Of a batch of the transaction topic there."""
    found = []
    for record in _records(data, at):
        if record.value is not None:
            known = read_short_value(record.value)
            found.append(SeenDecision(read_key(record.key), known.producer_id, known.producer_epoch, known.status))
    return tuple(found)


def _records(data: bytearray, at: int) -> list[Record]:
    return decode_batch(bytes(data[at : at + batch_size(data, at)]))
