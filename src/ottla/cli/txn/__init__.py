"""`ottla txn`: which transactions there are, what they wait for, and an end for those that nobody will end."""
