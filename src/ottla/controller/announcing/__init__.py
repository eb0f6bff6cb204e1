"""What the controller announces to brokers: a queue a broker, which no turn waits for."""
