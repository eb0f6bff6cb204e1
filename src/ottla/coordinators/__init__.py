"""What all coordinators have: partitions that they lead, shards loaded from them, journals, timers, long work."""
