"""Tables: Parquet files, and a log that says which of them count (docs/formats/pipeline-tables.md).

Read in this order: `log` (versions), `files` (rows into files), `reading`, `stream` (a table as a stream of Spark's),
`upkeep` (small files, old rows, files that nobody needs).
"""
