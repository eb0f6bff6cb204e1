"""Mirrors: topics of one cluster copied into another, partition for partition, as `ottla mirror` runs them.

properties   MirrorMaker 2's property file, read into flows (A->B)
names        what a topic is called on the other side, and which are never copied
batches      source batches made ready for the target: copied as they are, or made anew where they have gaps
pairs        which source offset lies at which target offset, for every offset
record_forms bytes of the records that a mirror keeps in topics of its own
journal      the pairs in a compacted topic of the target, written before what they speak of
partition    one partition's copy: its place, its requests in flight, what an answer means (`faults`: what stops it)
single_fetch the one record that a copy's last is compared with
clients      the clients of a flow in one process, and what all of its copies share
ranges       some partitions copied up to given offsets, without a group: Spark's tasks
flow         one direction between two clusters: its reader, its partitions, their beginnings and ends
topics       new topics, partition counts and settings, followed
groups       what groups have committed, translated
metrics      a flow's numbers, for Prometheus
"""
