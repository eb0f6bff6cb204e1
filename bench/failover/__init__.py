"""What a cluster of three processes does when some of them die, pause or are cut off; and whether it keeps its word."""
