"""What `deploy/` holds is run as far as a machine without Docker can: its commands, its settings, its listeners."""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.server_process import free_port

from ottla.client.sync import Consumer, Producer
from ottla.config import Config
from ottla.config.files import parse_properties
from ottla.protocol.generated.metadata import MetadataRequest, MetadataResponse
from tests.server.conftest import Peer
from tests.shell import without_settings

REPOSITORY = Path(__file__).resolve().parents[1]
DEPLOY = REPOSITORY / "deploy"
CONTAINERFILE = (DEPLOY / "Containerfile").read_text()


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} (.*)$", CONTAINERFILE, re.MULTILINE)


def image_environment() -> dict[str, str]:
    """What the image sets, but for the search path."""
    pairs = (line.split("=", 1) for line in instructions("ENV"))
    return {name: value for name, value in pairs if name != "PATH"}


def local(listeners: str, ports: Mapping[str, int]) -> str:
    """The same listeners on this machine only, and on free ports."""
    for port, free in ports.items():
        listeners = listeners.replace(f"0.0.0.0:{port}", f"127.0.0.1:{free}")
    assert "0.0.0.0" not in listeners
    return listeners


@contextmanager
def running(command: list[str], environment: Mapping[str, str]) -> Iterator[str]:
    """`ottla ...` as it stands there; gives the line that it prints, and stops it as an init system does."""
    assert command[0].rpartition("/")[2] == "ottla"
    kept = without_settings("KAFKA_", "OTTLA_")
    child = subprocess.Popen(
        [sys.executable, "-m", "ottla", *command[1:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**kept, "PYTHONPATH": str(REPOSITORY / "src"), **environment},
    )
    try:
        assert child.stdout is not None
        line = child.stdout.readline()
        assert line.startswith("Ottla is listening on "), (line, child.stderr and child.stderr.read())
        yield line.removeprefix("Ottla is listening on ").rstrip()
        child.send_signal(signal.SIGTERM)
        assert child.wait(60) == 0
    finally:
        child.kill()
        child.communicate()


def advertised(bootstrap: str) -> dict[int, str]:
    """By broker id what a client is told to connect to that asks there, and nowhere else: what is told may be the
    address of somebody's broker on this machine."""
    with Peer(int(bootstrap.rpartition(":")[2])) as peer:
        told = peer.ask(MetadataRequest(topics=[]), 9, MetadataResponse)
    return {broker.node_id: f"{broker.host}:{broker.port}" for broker in told.brokers}


def written_and_read(bootstrap: str) -> list[bytes]:
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send_and_wait("greetings", b"hello", timeout=60)
    with Consumer(bootstrap_servers=bootstrap, group_id="readers", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["greetings"])
        return [record.value for record in consumer.poll(timeout_ms=60_000)]


def test_the_images_command_serves_this_machine(tmp_path: Path) -> None:
    (command,) = instructions("CMD")
    environment = image_environment()
    port = free_port()
    environment["KAFKA_LISTENERS"] = local(environment["KAFKA_LISTENERS"], {"9092": port})
    assert environment["KAFKA_ADVERTISED_LISTENERS"] == "PLAINTEXT://localhost:9092"
    environment["KAFKA_ADVERTISED_LISTENERS"] = f"PLAINTEXT://localhost:{port}"
    assert environment["KAFKA_LOG_DIRS"] == "/var/lib/ottla/data"
    environment["KAFKA_LOG_DIRS"] = str(tmp_path / "data")
    environment["CLUSTER_ID"] = "5L6g3nShT-eMCtK--X86sw"
    with running(yaml.safe_load(command), environment) as address:
        assert address == f"127.0.0.1:{port}"
        assert advertised(address) == {1: f"localhost:{port}"}
        assert written_and_read(address) == [b"hello"]
    assert "cluster.id=5L6g3nShT-eMCtK--X86sw" in (tmp_path / "data" / "meta.properties").read_text()


@pytest.mark.slow
def test_what_the_image_copies_is_enough_to_build_the_package(tmp_path: Path) -> None:
    copied = [name for line in instructions("COPY") if "--from" not in line for name in shlex.split(line)[:-1]]
    assert "src" in copied
    for name in copied:
        source = REPOSITORY / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.egg-info")
            shutil.copytree(source, tmp_path / name, ignore=ignored)
        else:
            shutil.copy(source, tmp_path / name)
    code = "from setuptools import build_meta; print(build_meta.build_wheel('.'))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("ottla-*.whl"))


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def test_the_compose_example_serves_both_sides(tmp_path: Path) -> None:
    service = compose()["services"]["ottla"]
    inside, outside = free_port(), free_port()
    environment = {**image_environment(), **service["environment"], "KAFKA_LOG_DIRS": str(tmp_path / "data")}
    environment["KAFKA_LISTENERS"] = local(environment["KAFKA_LISTENERS"], {"29092": inside, "9092": outside})
    with running(yaml.safe_load(instructions("CMD")[0]), environment) as addresses:
        assert addresses == f"127.0.0.1:{inside},127.0.0.1:{outside}"
        assert advertised(f"127.0.0.1:{inside}") == {1: "ottla:29092"}
        assert advertised(f"127.0.0.1:{outside}") == {1: "localhost:9092"}
        healthy = service["healthcheck"]["test"]
        assert healthy[:3] == ["CMD", "python", "-c"]
        code = healthy[3].replace("9092", str(outside))
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert subprocess.run([sys.executable, "-c", code], check=False, stderr=subprocess.DEVNULL).returncode != 0


def test_the_compose_examples_other_service_makes_its_topic(tmp_path: Path) -> None:
    """Twice: it is started again with the first. The names of that network mean this machine here."""
    services = compose()["services"]
    inside, outside = free_port(), free_port()
    ports = {"29092": inside, "9092": outside}
    environment = {
        **image_environment(),
        **services["ottla"]["environment"],
        "KAFKA_LOG_DIRS": str(tmp_path / "data"),
        "KAFKA_ADVERTISED_LISTENERS": f"CONTAINERS://127.0.0.1:{inside},HOST://127.0.0.1:{outside}",
    }
    environment["KAFKA_LISTENERS"] = local(environment["KAFKA_LISTENERS"], ports)
    other = services["topics"]
    assert other["depends_on"] == {"ottla": {"condition": "service_healthy"}}
    assert other["image"] == services["ottla"]["image"]
    program, *words, bootstrap = other["command"]
    assert (program, bootstrap) == ("ottla", "ottla:29092")
    with running(yaml.safe_load(instructions("CMD")[0]), environment):
        for _ in range(2):
            command = [sys.executable, "-m", "ottla", *words, f"127.0.0.1:{inside}"]
            assert subprocess.run(command, check=False, capture_output=True, timeout=60).returncode == 0


def test_the_compose_example_is_of_one_piece() -> None:
    found = compose()
    service = found["services"]["ottla"]
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).resolve() == DEPLOY / "Containerfile"
    assert {volume.partition(":")[0] for volume in service["volumes"]} == set(found["volumes"])
    assert {volume.partition(":")[2] for volume in service["volumes"]} == set(instructions("VOLUME"))
    assert service["ports"] == ["127.0.0.1:9092:9092"]
    assert instructions("EXPOSE") == ["9092"]


def unit(name: str) -> list[str]:
    text = (DEPLOY / "ottla.service").read_text()
    return re.findall(rf"^{name}=(.*)$", text, re.MULTILINE)


def test_the_units_command_line_starts_and_stops(tmp_path: Path) -> None:
    """With the file beside it, whose folder and port are others here."""
    (command,) = unit("ExecStart")
    text = (DEPLOY / "server.properties").read_text()
    port = free_port()
    text = text.replace("0.0.0.0:9092", f"127.0.0.1:{port}").replace("/var/lib/ottla", str(tmp_path))
    text = text.replace("ottla.metrics.port=9308", "ottla.metrics.port=0").replace(
        "localhost:9092", f"127.0.0.1:{port}"
    )
    (tmp_path / "server.properties").write_text(text)
    words = [word.replace("/etc/ottla/", f"{tmp_path}/") for word in shlex.split(command)]
    assert words[1:] == ["broker", "--config", str(tmp_path / "server.properties")]
    assert unit("KillSignal") == [f"{signal.SIGTERM.name}"]
    with running(words, {}) as address:
        assert address == f"127.0.0.1:{port}"
        assert written_and_read(address) == [b"hello"]
    assert unit("StateDirectory") == ["ottla"]  # which is /var/lib/ottla, where the file puts the data


def test_the_services_file_is_taken_without_a_warning() -> None:
    config = Config.parse(parse_properties((DEPLOY / "server.properties").read_bytes()))
    assert (config.warnings, config.without_effect) == ((), ())


def test_the_pages_commands_install_what_the_unit_starts(tmp_path: Path) -> None:
    """Those that put files run, below another root; the others name what the unit and the image name."""
    page = (REPOSITORY / "docs" / "deploying.md").read_text()
    blocks = [block.splitlines() for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL)]
    (image,) = (block for block in blocks if block[0].startswith("docker "))
    (service,) = (block for block in blocks if block[0].startswith("useradd "))
    for line in service:
        if line.startswith("install "):
            words = [f"{tmp_path}{word}" if word.startswith("/") else word for word in shlex.split(line)]
            subprocess.run(words, cwd=REPOSITORY, check=True)
    assert (tmp_path / "etc/systemd/system/ottla.service").read_bytes() == (DEPLOY / "ottla.service").read_bytes()
    assert (tmp_path / "etc/ottla/server.properties").read_bytes() == (DEPLOY / "server.properties").read_bytes()
    (command,) = unit("ExecStart")
    started, config = shlex.split(command)[0], shlex.split(command)[-1]
    assert (tmp_path / config.lstrip("/")).is_file()
    useradd, venv, *_, systemctl = map(shlex.split, service)
    assert [useradd[-1]] == unit("User") == unit("StateDirectory")
    assert useradd[useradd.index("--home-dir") + 1] == f"/var/lib/{useradd[-1]}"
    assert Path(started) == Path(venv[venv.index("venv") + 1]) / "bin" / "ottla"
    assert venv[-2:] == ["install", "."]
    assert systemctl[-1] == "ottla"
    build, start = map(shlex.split, image)
    assert build[build.index("-f") + 1] == "deploy/Containerfile"
    assert build[build.index("-t") + 1] == start[-1]
    assert start[start.index("-p") + 1] == "127.0.0.1:9092:9092"


def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        assert "[Service]" in (DEPLOY / "ottla.service").read_text()
        return
    copy = tmp_path / "ottla.service"
    copy.write_text((DEPLOY / "ottla.service").read_text().replace("/opt/ottla/bin/ottla", sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if "ottla.service" in line]
    assert (done.returncode, said) == (0, [])


@pytest.mark.parametrize("name", ["Containerfile", "compose.yaml", "ottla.service", "server.properties"])
def test_the_page_names_the_file(name: str) -> None:
    assert f"deploy/{name}" in (REPOSITORY / "docs" / "deploying.md").read_text()
