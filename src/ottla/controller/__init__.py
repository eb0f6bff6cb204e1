"""The controller: one event queue over the znode tree, and what it announces to brokers."""
