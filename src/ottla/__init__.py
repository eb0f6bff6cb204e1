"""Ottla: a Kafka-compatible event log in Python."""

__version__ = "0.1.0"
