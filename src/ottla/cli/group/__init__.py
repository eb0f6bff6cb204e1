"""`ottla group`: who reads what, how far they are, and where they go on."""
