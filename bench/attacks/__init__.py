"""What one client may send to harm all others, a kind of attack a module: see `bench/attack.py`.

attack.py       what an attack is: what it sends, its bound, what came back
probe.py        the second connection, whose waits are the figures
long_frames.py  requests whose arrays are as long as a frame can carry, also for the tests
...             all others: attacks
"""
