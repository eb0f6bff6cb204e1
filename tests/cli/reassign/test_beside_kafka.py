"""The verbs for replicas against Apache Kafka: one broker of it has nowhere to move anything, and answers them all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.interop.broker import Broker

pytestmark = [pytest.mark.java, pytest.mark.xdist_group("kafka-tools")]


def test_plans_moves_and_elections(apache_kafka: Broker, in_process: Command, tmp_path: Path) -> None:
    at = ("-b", apache_kafka.bootstrap)
    assert in_process("topic", "create", "moved", "--partitions", "2", *at).code == 0
    described = json.loads(in_process("topic", "describe", "moved", "-o", "json", *at).out)
    assert described
    plan = in_process("reassign", "plan", "--topic", "moved", *at)
    assert json.loads(plan.out) == {"version": 1, "partitions": []}
    broker = int(json.loads(in_process("cluster", "describe", "-o", "json", *at).out)["brokers"][0]["id"])
    moves = tmp_path / "moves.json"
    moves.write_text(
        json.dumps(
            {
                "version": 1,
                "partitions": [{"topic": "moved", "partition": number, "replicas": [broker]} for number in range(2)],
            }
        )
    )
    planned = in_process("reassign", "run", "--file", str(moves), *at)
    assert planned.code == 6
    assert "WANTED" in planned.out
    assert in_process("reassign", "run", "--file", str(moves), "--yes", *at).code == 0
    assert "no partition is on its way" in in_process("reassign", "status", *at).out
    assert "no partition is on its way" in in_process("reassign", "cancel", "--all", *at).out
    elected = in_process("elect", "--preferred", "--topic", "moved:0,1", *at)
    assert (elected.code, elected.out.count("leads already")) == (0, 2)
    assert in_process("elect", "--preferred", "--all", *at).code == 0


def test_what_it_refuses_is_said(apache_kafka: Broker, in_process: Command, tmp_path: Path) -> None:
    at = ("-b", apache_kafka.bootstrap)
    in_process("topic", "create", "refused", *at)
    moves = tmp_path / "moves.json"
    moves.write_text('{"version": 1, "partitions": [{"topic": "refused", "partition": 0, "replicas": [77]}]}')
    ran = in_process("reassign", "run", "--file", str(moves), "--yes", *at)
    assert ran.code == 3
    assert "there is no broker 77 now" in ran.err
    ran = in_process("reassign", "plan", "--topic", "refused", "--replication-factor", "3", *at)
    assert (ran.code, ran.err.splitlines()[0]) == (2, "ottla: --replication-factor 3: there is 1 broker to use")
    assert in_process("elect", "--unclean", "--all", *at).code == 0  # nobody lacks a leader
