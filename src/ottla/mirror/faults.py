"""What keeps a partition from being copied: what passes is tried again, and what does not is named and stops it."""

from __future__ import annotations


class CopyStopped(Exception):
    """The copy of a partition cannot go on without somebody's decision; says what is wrong and what can be done."""


class StrangeRecords(CopyStopped):
    """The target has records that the mirror did not write."""


class LostRecords(CopyStopped):
    """Records are gone that were there: the source's, of which the copy has some, or the copy's own."""
