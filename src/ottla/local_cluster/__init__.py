"""Several brokers on this host, a process each, with a process that serves their tree: started, watched, ended."""
