"""How Java is started for tests: what they run lives for seconds, so that it shall start quickly and stay small."""

from __future__ import annotations

#: One quick compiler, one thread that collects garbage: a Kafka then starts and stops for half of the processor's time.
QUICK_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")


def java_command(classpath: str, *words: str, flags: tuple[str, ...] = ()) -> list[str]:
    """The command that runs a class or a source file, and its arguments, with the classes of ``classpath``."""
    return ["java", *QUICK_FLAGS, *flags, "-cp", classpath, *words]
