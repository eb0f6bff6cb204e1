"""Elections: who leads a partition, and which broker is the controller."""
