"""The checks of client histories: one that is in order has no fault, and each lie is found under its name."""

from __future__ import annotations

import pytest

from ottla.testing.histories import ClientHistory, FaultKind, Row, counted, summary

TP = ("t", 0)
WRITTEN: list[Row] = [(0, "a0"), (1, "b0"), (2, "a1"), (3, "b1"), (5, "a2")]


def history(
    *,
    final: list[Row] = WRITTEN,
    polls: tuple[list[Row], ...] = (WRITTEN,),
    acknowledged: list[Row] = WRITTEN,
    refused: tuple[str, ...] = (),
    unsent: tuple[str, ...] = (),
) -> ClientHistory:
    """Two producers, `a` and `b`, each poll by a reader of its own."""
    made = ClientHistory()
    for value in ("a0", "a1", "a2", "a3", "b0", "b1"):
        if value not in unsent:
            made.sent(value[0], TP, value)
    for offset, value in acknowledged:
        made.acknowledged(value[0], TP, value, offset)
    for value in refused:
        made.refused(value[0], TP, value)
    for number, rows in enumerate(polls):
        made.assigned(f"reader {number}", TP)
        made.polled(f"reader {number}", TP, rows)
    made.ended(TP, final)
    return made


def without(*offsets: int) -> list[Row]:
    return [row for row in WRITTEN if row[0] not in offsets]


def kinds(made: ClientHistory, *, idempotent: bool = True) -> dict[FaultKind, int]:
    return counted(made.faults(idempotent=idempotent))


def test_what_is_in_order_has_no_fault() -> None:
    made = history()
    assert made.faults() == []
    assert summary([]) == "no fault"
    assert (made.sent_count, made.acknowledged_count, made.polled_count) == (6, 5, 5)
    # One that was never answered may be there or not, a reader may begin anywhere and stop anywhere, and not every
    # offset has a record.
    assert kinds(history(final=[*WRITTEN, (6, "a3")], polls=(WRITTEN[2:4], WRITTEN[:1], []))) == {}
    # An answer need not say where (the first one is of a duplicate).
    made = history()
    made.acknowledged("a", TP, "a0", None)
    assert made.faults() == []


def test_a_partition_that_nobody_reads_at_the_end_has_lost_everything() -> None:
    made = ClientHistory()
    made.sent("a", TP, "a0")
    made.acknowledged("a", TP, "a0", 0)
    assert kinds(made) == {FaultKind.LOST: 1}


@pytest.mark.parametrize(
    ("made", "found"),
    [
        (history(final=without(2), polls=()), {FaultKind.LOST: 1}),
        (history(final=without(5), acknowledged=without(5)), {FaultKind.UNREAD: 1}),
        (history(final=[*WRITTEN, (6, "b1")]), {FaultKind.DOUBLED: 1, FaultKind.REORDERED: 0}),
        (history(polls=(WRITTEN, [(3, "b1"), (5, "a3")]), final=WRITTEN), {FaultKind.CLASH: 1, FaultKind.UNREAD: 1}),
        (history(final=[*without(5), (6, "a2")], polls=()), {FaultKind.MOVED: 1}),
        (history(acknowledged=without(5), polls=([(6, "a2")],)), {FaultKind.MOVED: 1}),
        (
            history(final=[(0, "a1"), (1, "b0"), (2, "a0")], acknowledged=[], polls=()),
            {FaultKind.REORDERED: 1},
        ),
        (
            history(final=WRITTEN, acknowledged=[(2, "a0"), (0, "a1")], polls=()),
            {FaultKind.REORDERED: 1, FaultKind.MOVED: 2},
        ),
        (history(refused=("b1",), acknowledged=without(3)), {FaultKind.UNWRITTEN: 1}),
        (history(unsent=("b1",), acknowledged=without(3)), {FaultKind.UNWRITTEN: 1}),
        (history(polls=(without(2),)), {FaultKind.SKIPPED: 1}),
        (history(polls=([*WRITTEN[:3], *WRITTEN[1:]],)), {FaultKind.BACKWARDS: 1}),
        (history(polls=([*WRITTEN[:2], WRITTEN[1]],)), {FaultKind.BACKWARDS: 1}),
    ],
    ids=[
        "lost",
        "read and lost",
        "doubled",
        "two values at one offset",
        "moved behind its acknowledgement",
        "moved behind a reading",
        "reordered in the log",
        "reordered in the answers",
        "refused and read",
        "never sent and read",
        "skipped",
        "went back",
        "read twice",
    ],
)
def test_each_lie_is_found_under_its_name(made: ClientHistory, found: dict[FaultKind, int]) -> None:
    wanted = {kind: count for kind, count in found.items() if count}
    assert kinds(made) == wanted
    assert all(kind.value in summary(made.faults()) for kind in wanted)


def test_retries_of_a_producer_that_is_not_idempotent_double_and_reorder() -> None:
    made = history(final=[(0, "a1"), (1, "b0"), (2, "a0"), (3, "b0")], acknowledged=[], polls=())
    assert kinds(made, idempotent=False) == {}
    assert set(kinds(made)) == {FaultKind.DOUBLED, FaultKind.REORDERED}
