"""`ottla perf`: how fast a broker takes and gives records."""
