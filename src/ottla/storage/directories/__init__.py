"""A broker's log directories: which partition is where, and what is done to whole partitions."""
