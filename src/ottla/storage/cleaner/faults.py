"""Why a pass ends early. Both cross the pipe from the worker process, and so carry one sentence and nothing else."""

from __future__ import annotations


class CannotClean(Exception):
    """This log cannot be cleaned as it is: it is set aside, reported, and tried again later."""


class Interrupted(Exception):
    """The log has changed under the pass, or is gone: nothing is wrong, and what was written is thrown away."""
