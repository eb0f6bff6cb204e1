"""The wire: frames, headers, and one message class for each request and response of Kafka."""
