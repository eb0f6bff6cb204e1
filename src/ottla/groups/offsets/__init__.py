"""Committed offsets, of classic and consumer groups alike: kept, committed, read, deleted and expired."""
