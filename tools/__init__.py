"""What tests and benchmarks run against: Apache Kafka's jars and a server made of them. Nothing here ships."""
