"""`ottla topic`: what can be done to topics."""
