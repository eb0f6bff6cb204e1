"""Writing a micro-batch exactly once: each task in a transaction of its own, which the driver commits.

    executors   a task begins a transaction, writes, and leaves it open; it says to the driver which one it is
    driver      a  fences the drivers before it
                b  reads the ledger
                c  looks whether all transactions are still open, and writes PREPARED with their list
                d  commits each of them, as often as need be
                e  writes DONE
                f  aborts what attempts that do not count have left open

Until PREPARED is in the ledger nothing of the batch is seen, and nothing has to be undone: what is open is aborted when
its time is over. From then on the batch is to be committed, whoever does it: a driver that finds the list commits it,
and to commit twice is to commit once. So a crash between two steps loses no row and writes none twice.

A transaction whose time is over before it is committed is the one way out: the batch is then PARTIAL, and planned again
the tasks that are committed only compare their rows with what the ledger has, while the others write.

Read in this order: `checksum`, `naming`, `tasks` (on executors), `core` (the driver's decisions, without a clock or a
connection), `outcomes` and `committing` (which ask the brokers), `writer` (what Spark calls).
"""

from __future__ import annotations
