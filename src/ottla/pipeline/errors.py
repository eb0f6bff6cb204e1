"""What is wrong with a pipeline: each message says which table or file, and what to do next."""

from __future__ import annotations

from typing import Final

#: The end of a message about a flow that cannot go on from where it stood.
ANEW: Final = "delete the flow's folders in checkpoints/ and tables/, and run it anew"


class PipelineError(Exception):
    """The root."""


class BadDefinition(PipelineError):
    """The file cannot be meant like that."""


class NotFound(PipelineError):
    """A file, a topic or a table that was named is not there."""


class BadState(PipelineError):
    """The folder of the pipeline is not what this pipeline left there."""


class ExpectationFailed(PipelineError):
    """Rows broke a rule of `expect_or_fail`: nothing of their micro-batch was written."""


class FlowFailed(PipelineError):
    """A flow ended with an error; others were stopped."""
