"""One partition's log: `log.py` is its face, `staging.py` its writing end, `reader.py` what a read gives."""
