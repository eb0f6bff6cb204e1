"""Destructive verbs say what they would do, and do it when `--yes` was given."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from ottla.cli.faults import NOT_CONFIRMED, CommandFault
from ottla.cli.output import Row, show_rows


def show_plan(form: str, title: str, rows: Sequence[Row], columns: Mapping[str, str], *, confirmed: bool) -> None:
    """Prints the plan; returns only if it is to be carried out."""
    if form == "table":
        print(title)
    show_rows(form, rows, columns)
    sys.stdout.flush()
    if not confirmed:
        raise CommandFault("nothing was done; add --yes to do this", NOT_CONFIRMED)
