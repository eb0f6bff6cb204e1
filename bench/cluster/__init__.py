"""Three brokers that replicate, beside one of ours alone and three of Apache Kafka: ``python -m bench.cluster``."""
