"""What must hold in a cluster after every turn of the loop, whatever has failed.

The names are those of the TLA+ models of Kafka's replication by Jason Gustafson and Jack Vanlightly, where these have
one. `cluster.py` is the state that they speak of; it knows nothing of brokers. `ottla.testing.sim.observation` reads
brokers and trees into it, after each turn and only what has changed; then each invariant is called for that.
"""

from ottla.testing.sim.invariants.catalogue import ALL, every_invariant
from ottla.testing.sim.invariants.cluster import Cluster, Replica, TreeChange, TreeState
from ottla.testing.sim.invariants.invariant import Invariant, InvariantBroken

__all__ = [
    "ALL",
    "Cluster",
    "Invariant",
    "InvariantBroken",
    "Replica",
    "TreeChange",
    "TreeState",
    "every_invariant",
]
