"""Partitions on disk: logs of segments with their indexes, and the log directories that hold them."""
