"""Reading in Spark: batches and streams.

`settings` (what is asked for), `offsets` (Kafka's source's JSON), `topics` and `bounds` (from there to offsets that
exist), `splits` (tasks), `links` and `ranges` (what a task does), and on top what Spark calls: `batch`, `frames`,
`stream` with `limits`, and `progress`, which gives a group what a query has come to.
"""
