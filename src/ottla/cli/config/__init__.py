"""`ottla config`: settings of topics and brokers."""
