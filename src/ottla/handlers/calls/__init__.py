"""What requests of every API have: the call and the peer, checks, turns of long work, metrics."""
