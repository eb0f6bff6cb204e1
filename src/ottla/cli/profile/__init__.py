"""`ottla profile`: clusters by name."""
