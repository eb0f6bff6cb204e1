"""Who someone is, what they may do, and how much of it: the hooks that every handler goes through."""
