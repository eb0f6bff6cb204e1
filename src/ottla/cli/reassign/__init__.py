"""Verbs for partitions that go to other brokers."""
