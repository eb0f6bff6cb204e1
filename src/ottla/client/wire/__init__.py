"""Connections to brokers, and questions to whichever broker can answer."""
