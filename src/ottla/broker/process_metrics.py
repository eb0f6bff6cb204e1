"""The process in numbers, under the names that all of Prometheus' own client libraries use.

Of this process alone: what cleans logs and looks into batches are processes of their own.
"""

from __future__ import annotations

from ottla.metrics import Registry
from ottla.ports.real import process


def register_process_metrics(registry: Registry) -> None:
    registry.gauges(
        "process_cpu_seconds_total",
        "Seconds on a processor, in user mode and in the system.",
        (),
        lambda: [((), process.cpu_seconds())],
        type_="counter",
    )
    gauge = registry.gauge
    gauge("process_resident_memory_bytes", "Memory that is resident.", lambda: process.memory().resident_bytes)
    gauge("process_virtual_memory_bytes", "Memory that is mapped.", lambda: process.memory().virtual_bytes)
    gauge("process_start_time_seconds", "When the process was started, since 1970.", process.started_seconds)
    gauge("process_max_fds", "How many files may be open.", process.files_max)
    registry.sum("process_open_fds", "Open files, sockets among them.", process.open_files)
