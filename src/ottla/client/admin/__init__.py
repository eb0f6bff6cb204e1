"""What is asked of a cluster beside its records."""
