"""The records of the offsets topic: keys, values, and how batches of them are read."""
