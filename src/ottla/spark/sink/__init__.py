"""Writing to topics: `batch_writer` and `stream_writer` are what `OttlaDataSource` calls.

Read in this order: `target` (where to, and how), `columns` (of what), `task` (one task's rows), `ledger` (which
micro-batches are finished), `clients` (what a process keeps) and `writers` (what Spark calls). `exactly_once` is a
room of its own.
"""

from __future__ import annotations

from ottla.spark.sink.writers import batch_writer, stream_writer

__all__ = ["batch_writer", "stream_writer"]
