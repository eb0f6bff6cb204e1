"""The benchmark: our broker, a null server and Apache Kafka side by side in one run: ``python -m bench``."""
