"""The `ottla` command: one file a verb; nothing that a verb does not use is imported."""
