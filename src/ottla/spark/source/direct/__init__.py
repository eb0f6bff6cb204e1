"""Direct reading: a partition's sealed segments are read from a log directory that this process sees.

`folders` (a partition's folder, held open), `segments` (whole batches out of its files, checked against nothing but
themselves), and `reading` (which folder is taken, and how far the leader says that it may be trusted). What is not read
here is read over the wire, by the same loop (`ottla.spark.source.ranges`).
"""
