"""What is in a partition's folder at the start, and how the log comes out of it."""
