"""A mirror's flow as one streaming query: `ottla.spark.mirror` (docs/mirror.md).

    driver     planning   topics, settings and groups followed; how far the source goes now
    executors  source     each task copies some partitions that far, from cluster to cluster and not through Spark

The query's rows say what was copied. Its checkpoint says only what was planned: where a copy goes on is read from the
target, so that a batch that Spark repeats, and a task that it runs twice at once, copy nothing twice.

Read in this order: `frame`, `source`, `planning`.
"""
