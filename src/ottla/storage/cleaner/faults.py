"""Why a pass ends early. All cross the pipe from the worker process, and so carry plain values and nothing else."""

from __future__ import annotations


class CannotClean(Exception):
    """This log cannot be cleaned as it is: it is set aside, reported, and tried again later."""


class PassInterrupted(Exception):
    """The log has changed under the pass, or is gone: nothing is wrong, and what was written is thrown away."""


class DiskRefused(Exception):
    """The worker's disk: `errno` and what it means. An OSError of the pipe, or of starting a process, is none of it."""
