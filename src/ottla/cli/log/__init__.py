"""`ottla log`: work on files of a log directory, without a broker."""
