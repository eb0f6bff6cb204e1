"""Record batches, the unit in which Kafka's records travel and lie on disk (docs/formats/record-batch.md).

Read in this order: `batch` (the 61-byte header, all that the broker's hot path needs), `record` (records in and out),
`scan` (records as columns, without objects), `compression`, `control`, `validate` (what a broker refuses), `rewrite`.
Nothing is imported here, so that a broker that only looks at headers loads no compression library.
"""
