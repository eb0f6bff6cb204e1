"""The plugin as another project's tests have it: in a pytest of its own, over files of its own."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytest_plugins = "pytester"

#: Where the package is installed pytest finds the plugin by itself; where only its sources are on the path it does not.
NAMED = (
    [] if any(found.name == "ottla" for found in entry_points(group="pytest11")) else ["ottla.testing.pytest_plugin"]
)
ARGUMENTS = [f"-p{name}" for name in NAMED] + ["-pno:cacheprovider", "-pno:randomly"]


def run(pytester: pytest.Pytester, source: str, *arguments: str) -> pytest.RunResult:
    pytester.makepyfile(source)
    # It starts a pytest, workers of it or a cluster of processes: seconds, and minutes where others have the cores.
    return pytester.runpytest_subprocess(*ARGUMENTS, *arguments, timeout=300)


def test_each_test_has_a_topic_of_its_own_on_the_broker_that_all_share(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        seen = []

        @pytest.mark.parametrize("value", ["a/b", "c"])
        def test_one(ottla_broker, topic, value):
            assert ottla_broker.topics() == [topic]
            assert topic not in seen
            seen.append(topic)

        @pytest.mark.ottla_topic(partitions=3, configs={"cleanup.policy": "compact"})
        def test_with_a_marker(ottla_broker, topic):
            assert f'kafka_topic_partitions{{topic="{topic}"}} 3' in ottla_broker.metrics()
            assert ottla_broker.topics() == [topic]

        def test_that_deletes_its_topic_itself(ottla_broker, topic):
            ottla_broker.delete_topic(topic)

        def test_nothing_is_left(ottla_broker):
            assert ottla_broker.topics() == []
        """,
        "--strict-markers",
    )
    result.assert_outcomes(passed=5)


def test_a_broker_of_ones_own_goes_with_its_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        seen = []

        def test_first(ottla_broker, ottla_own_broker):
            assert ottla_own_broker.port != ottla_broker.port
            ottla_own_broker.create_topic("mine")
            ottla_own_broker.advance("8d")
            seen.append(ottla_own_broker)

        def test_second(ottla_own_broker):
            assert not seen[0].is_running
            assert ottla_own_broker.topics() == []
        """,
    )
    result.assert_outcomes(passed=2)


def test_properties_of_the_broker_can_be_set(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        @pytest.fixture(scope="session")
        def ottla_properties():
            return {"num.partitions": "0"}

        def test_it(ottla_broker):
            pass
        """,
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*num.partitions*"])


def test_the_brokers_log_stands_in_the_report_of_a_failing_test_and_in_no_other(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import ottla.testing

        def test_first(ottla_broker):
            pass

        def test_failing(ottla_broker):
            with ottla.testing.broker():
                pass
            assert False

        def test_failing_without_a_broker():
            assert False
        """,
        "-rA",
    )
    result.assert_outcomes(passed=1, failed=2)
    report = result.stdout.str()
    assert report.count("- Ottla broker log (call) -") == 1
    section = report.split("- Ottla broker log (call) -")[1].split("____")[0]
    assert section.count("broker started") == 1
    assert section.count("broker stopped") == 1
    assert "[broker ottla-" in section


def test_each_worker_of_xdist_has_a_broker(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    result = run(
        pytester,
        """
        import pytest

        @pytest.mark.parametrize("number", range(8))
        def test_it(ottla_broker, topic, number):
            assert ottla_broker.topics() == [topic]
        """,
        "-n2",
    )
    result.assert_outcomes(passed=8)


def test_a_cluster_goes_with_its_test_and_a_failing_one_shows_its_log(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        @pytest.mark.ottla_cluster(n=2, properties={"min.insync.replicas": "1"})
        def test_it(ottla_cluster):
            ottla_cluster.create_topic("orders")
            led = ottla_cluster.kill_leader("orders")
            ottla_cluster.until(lambda: ottla_cluster.leader("orders") not in (-1, led))
            assert sorted(ottla_cluster.addresses) == [1, 2]
            assert False, f"pid {ottla_cluster.pid(ottla_cluster.until_led('orders'))}"
        """,
        "--strict-markers",
    )
    result.assert_outcomes(failed=1)
    report = result.stdout.str()
    section = report.split("- Ottla cluster log (call) -")[1]
    assert "the controller is active" in section
    pid = int(report.split("AssertionError: pid ")[1].split()[0])
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("5", "its arguments are named, as in @pytest.mark.ottla_cluster(n=5, *and 5 is not"),
        ("brokers=3", "it has no argument brokers: write @pytest.mark.ottla_cluster(n=5, *"),
        ("n=0", "n must be an int from 1, not 0"),
        ("properties={'min.insync.replicas': 2}", "properties must map names to text, as Kafka has it, *"),
    ],
)
def test_a_mark_of_a_cluster_that_cannot_be_meant_is_refused(pytester: pytest.Pytester, mark: str, said: str) -> None:
    result = run(
        pytester,
        f"""
import pytest

@pytest.mark.ottla_cluster({mark})
def test_it(ottla_cluster):
    pass
""",
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*@pytest.mark.ottla_cluster: {said}"])


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ("5", "its arguments are named, as in @pytest.mark.ottla_topic(partitions=3, *and 5 is not"),
        ("partition=3", "it has no argument partition: write @pytest.mark.ottla_topic(partitions=3, *"),
        ("partitions='3'", "partitions must be an int from 1, not '3'"),
        ("partitions=0", "partitions must be an int from 1, not 0"),
        ("partitions=True", "partitions must be an int from 1, not True"),
        ("configs=['a']", "configs must be a mapping of names to values, not *"),
        ("configs={'retention.ms': 5}", "configs must map names to text, as Kafka has it, not 'retention.ms' to 5"),
    ],
)
def test_a_mark_that_cannot_be_meant_is_refused(pytester: pytest.Pytester, mark: str, said: str) -> None:
    result = run(
        pytester,
        f"""
        import pytest

        @pytest.mark.ottla_topic({mark})
        def test_it(topic):
            pass
        """,
    )
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"@pytest.mark.ottla_topic: {said}"])
