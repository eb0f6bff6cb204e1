"""The consumer: partitions are read ahead, alone or as a member of a group."""
