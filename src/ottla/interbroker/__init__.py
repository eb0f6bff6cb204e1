"""Links to the other brokers of the cluster: requests that brokers send to each other."""
