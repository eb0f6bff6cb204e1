"""From an offset, a time or a transaction to a place in a segment."""
