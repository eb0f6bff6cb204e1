"""Fetch: `handler.py` takes a request; the ways that it can go from there are this folder's other files."""
