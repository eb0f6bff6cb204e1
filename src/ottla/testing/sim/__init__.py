"""The simulation: real brokers and their clients in one process, in virtual time, from one seed.

    with Simulation(seed) as simulation:
        broker = simulation.broker("broker-1")
        simulation.run(scenario(simulation, broker))

Everything that happens is chosen by the seed: the order of call-backs, the delays of the network and of the disk, what
a power cut leaves. A run that failed is repeated with its seed, and its trace is the same byte for byte.
"""

from ottla.testing.sim.machines import BrokerFault, SimulatedMachine
from ottla.testing.sim.world import SimulatedBroker, Simulation

__all__ = ["BrokerFault", "SimulatedBroker", "SimulatedMachine", "Simulation"]
