"""`ottla cluster`: the cluster as a whole."""
