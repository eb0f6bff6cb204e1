"""The broker's shell: listeners, connections, rounds and dispatch, and the broker's life."""
