"""`ottla znode`: the tree that brokers keep in a ZooKeeper, or in `ottla tree`."""
