"""Decisions of the controller as data: pure functions over what it knows. No clock, no tree, no broker is asked."""
