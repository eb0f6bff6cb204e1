"""How `zookeeper.connect` is read, and what paths become under a chroot."""

from __future__ import annotations

import pytest

from ottla.coordination.zookeeper.addresses import BadConnectString, Chroot, ServerAddress, parse_connect_string


@pytest.mark.parametrize(
    ("text", "servers", "prefix"),
    [
        ("one:2181", [("one", 2181)], ""),
        ("one", [("one", 2181)], ""),
        ("one:1, two:65535 ,three/", [("one", 1), ("two", 65535), ("three", 2181)], ""),
        ("one:2181,two:2181/kafka/main", [("one", 2181), ("two", 2181)], "/kafka/main"),
        ("[::1]:2182,[fe80::1%eth0]/a", [("::1", 2182), ("fe80::1%eth0", 2181)], "/a"),
        ("::1/a", [("::1", 2181)], "/a"),
        ("one,,two", [("one", 2181), ("two", 2181)], ""),
    ],
)
def test_servers_and_chroot(text: str, servers: list[tuple[str, int]], prefix: str) -> None:
    found = parse_connect_string(text)
    assert list(found.servers) == servers
    assert found.chroot.prefix == prefix


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/a",
        ",",
        "one:0",
        "one:65536",
        "one:x",
        "one:",
        ":2181",
        "[::1",
        "[::1]2181",
        "one:21 81",
        "one:²",
        "one//a",
        "one/a/",
        "one/../a",
        "one/a\x00",
    ],
)
def test_what_is_no_connect_string(text: str) -> None:
    with pytest.raises(BadConnectString, match=r"zookeeper\.connect"):
        parse_connect_string(text)


def test_paths_under_a_chroot() -> None:
    assert Chroot().on_server("/a") == Chroot().of_client("/a") == "/a"
    chroot = Chroot("/kafka")
    assert [chroot.on_server(path) for path in ("/", "/a")] == ["/kafka", "/kafka/a"]
    assert [chroot.of_client(path) for path in ("/kafka", "/kafka/a")] == ["/", "/a"]


def test_addresses_are_written_as_they_are_read() -> None:
    assert str(ServerAddress("::1", 2181)) == "[::1]:2181"
    assert str(ServerAddress("one", 2181)) == "one:2181"
