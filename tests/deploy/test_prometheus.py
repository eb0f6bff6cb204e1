"""What lies in `deploy/` for Prometheus and Grafana: each rule and query, in a real Prometheus beside a busy broker."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, Producer
from tests.conftest import REPOSITORY, WatchServer
from tools.server_process import HOST, ServerProcess, free_port

from ottla import testing

DEPLOY = REPOSITORY / "deploy"
ALERTS = DEPLOY / "prometheus" / "ottla-alerts.yml"
DASHBOARD = DEPLOY / "grafana" / "ottla.json"
#: In place of Grafana's own. A rate needs two scrapes, and on a busy machine some fail between them.
RATE_INTERVAL = "1m"
SECONDS_MAX = 90.0
#: Names in expressions that are ours to keep.
OURS = re.compile(r"\b(?:kafka|ottla|process)_[a-z_]+")
#: How Grafana asks for what can be chosen: a metric, and one of its labels.
CHOICE = re.compile(r"label_values\((\w+), (\w+)\)")


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian's package prometheus has it)")
    return found


def promtool(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([program("promtool"), *words], input=text, capture_output=True, text=True, check=False)


def expressions() -> list[str]:
    """Of all panels of the dashboard."""
    board = json.loads(DASHBOARD.read_text())
    return [target["expr"] for panel in board["panels"] for target in panel.get("targets", ())]


def choices() -> list[tuple[str, str]]:
    """What the dashboard asks to fill its lists: a metric, and the label whose values it wants."""
    variables = json.loads(DASHBOARD.read_text())["templating"]["list"]
    asked = [CHOICE.fullmatch(each["query"]["query"]) for each in variables if each["type"] == "query"]
    return [(found[1], found[2]) for found in asked if found]


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def test_the_example_and_the_rules_are_sound() -> None:
    checked = promtool("check", "config", str(DEPLOY / "prometheus" / "prometheus.yml"))
    assert checked.returncode == 0, checked.stderr
    tested = promtool("test", "rules", str(DEPLOY / "prometheus" / "ottla-alerts-test.yml"))
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_each_rule_is_tested() -> None:
    """That it fires is in the file of their tests, and no name there is one of a rule that is gone."""
    written = (DEPLOY / "prometheus" / "ottla-alerts-test.yml").read_text()
    assert {rule["alert"] for rule in rules()} == set(re.findall(r"Ottla[A-Z]\w+", written))


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    board = json.loads(DASHBOARD.read_text())
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    taken = set()
    for panel in board["panels"]:
        place = panel["gridPos"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert x < 24
                assert (x, y) not in taken, panel["title"]
                taken.add((x, y))
        for target in panel.get("targets", ()):
            assert target["datasource"]["uid"] == "${datasource}"
            assert '"$job"' in target["expr"]


class Prometheus(ServerProcess):
    def __init__(self, folder: Path, target: str) -> None:
        config = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text())
        # Who is scraped is in the test's process, beside two clients: it may take long, and no scrape more than this.
        config["global"] = {"scrape_interval": "2s", "scrape_timeout": "2s", "evaluation_interval": "500ms"}
        config["rule_files"] = [str(ALERTS)]
        (job,) = config["scrape_configs"]
        (job["static_configs"][0]["targets"],) = [[target]]
        path = folder / "prometheus.yml"
        path.write_text(yaml.safe_dump(config))
        port = free_port()
        command = [program("prometheus"), f"--config.file={path}", f"--storage.tsdb.path={folder / 'data'}"]
        command += [f"--web.listen-address={HOST}:{port}", "--log.level=warn"]
        super().__init__(command, port=port, log=folder / "prometheus.out")

    def wait_until_answering(self, deadline: float) -> None:
        while not self._is_ready():
            assert self.running, self.log_tail()
            assert time.monotonic() < deadline, self.log_tail()
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.bootstrap}/-/ready", timeout=60) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def asked(self, path: str, **parameters: str) -> Any:
        url = f"http://{self.bootstrap}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as refused:
            raise AssertionError(f"{parameters}: {refused.read().decode()}") from refused

    def numbers(self, expression: str) -> list[float]:
        found = self.asked("query", query=expression)["result"]
        return [float(sample["value"][1]) for sample in found]


@contextmanager
def busy(bootstrap: str) -> Iterator[None]:
    """A producer and a group with a member, which work until the block ends."""
    over = threading.Event()

    def write() -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        while not over.wait(0.01):
            for _ in range(20):
                producer.produce("orders", b"x" * 100)
            producer.flush(60)

    def read() -> None:
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        while not over.is_set():
            if consumer.consume(100, 0.1):
                consumer.commit(asynchronous=False)
        consumer.close()

    working = [threading.Thread(target=each, daemon=True) for each in (write, read)]
    for thread in working:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in working:
            thread.join(SECONDS_MAX)


def test_a_real_prometheus_answers_every_query(tmp_path: Path, watch_server: WatchServer) -> None:
    program("prometheus")
    properties = {"ottla.metrics.port": "0", "group.initial.rebalance.delay.ms": "0"}
    with testing.broker(properties=properties) as broker:
        broker.create_topic("orders", partitions=3)
        address = broker.metrics_address
        assert address is not None
        prometheus = Prometheus(tmp_path, address)
        with busy(broker.bootstrap), watch_server(prometheus), prometheus:
            for expression in expressions():
                assert_answered(prometheus, expression)
            assert_answered(prometheus, 'kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.99"}')
            assert ("ottla_build_info", "job") in choices()
            for metric, label in choices():
                assert prometheus.asked(f"label/{label}/values", **{"match[]": metric}) == ["ottla"]
            assert_loaded(prometheus)
            shown = broker.metrics()
            firing = prometheus.numbers('ALERTS{alertstate="firing"}')
    assert not firing
    for expression in (*expressions(), *(rule["expr"] for rule in rules())):
        for name in OURS.findall(expression):
            assert re.search(rf"^{name}[{{ ]", shown, re.MULTILINE), f"{name} of {expression}"


def assert_answered(prometheus: Prometheus, expression: str) -> None:
    """Until there are numbers: rates need two scrapes, and a group its first commit."""
    asked = expression.replace("$__rate_interval", RATE_INTERVAL).replace("$job", "ottla")
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        found = prometheus.numbers(asked)
        if found and not all(number != number for number in found):  # noqa: PLR0124 - not a number
            return
        assert time.monotonic() < deadline, f"no answer to {asked}"
        time.sleep(0.1)


def assert_loaded(prometheus: Prometheus) -> None:
    """All rules were evaluated, and none of them failed."""
    deadline = time.monotonic() + SECONDS_MAX
    while True:
        loaded = [rule for group in prometheus.asked("rules")["groups"] for rule in group["rules"]]
        if loaded and all(rule["health"] == "ok" for rule in loaded):
            break
        assert time.monotonic() < deadline, loaded
        time.sleep(0.1)
    assert {rule["name"] for rule in loaded} == {rule["alert"] for rule in rules()}


def test_a_scrape_is_what_prometheus_reads() -> None:
    """Names are Kafka's and not to its taste, which it says with 3; 1 would be a text that it cannot read."""
    with testing.broker() as broker:
        broker.create_topic("orders", partitions=2)
        checked = promtool("check", "metrics", text=broker.metrics())
    assert checked.returncode in {0, 3}, checked.stderr
    ours = [line for line in checked.stderr.splitlines() if line.startswith(("ottla_", "process_"))]
    assert not ours, ours
