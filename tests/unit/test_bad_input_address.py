"""Attaching to what is no cluster, or not one of ours: one line, and soon. Without Ray
processes."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import pytest
import ray

from parsync.runtime.live import cluster
from shared_state.errors import AgoraError

MISMATCH = """Version mismatch: The cluster was started with:
    Ray: 2.60.0
    Python: 3.11.7
This process on node 10.0.0.7 was started with:
    Ray: 2.59.0
    Python: 3.11.7
"""


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A port of this machine where nothing is answered until the test does."""
    monkeypatch.setattr(cluster, "PROBE_S", 0.3)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.delenv("RAY_USE_TLS", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def address_of(server: socket.socket) -> str:
    return f"127.0.0.1:{server.getsockname()[1]}"


def answering(server: socket.socket, answer: bytes) -> threading.Thread:
    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(1024)
            connection.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("answer", [None, b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0", b""])
def test_somebody_else_s_port(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch, answer: bytes | None
) -> None:
    monkeypatch.setattr(ray, "init", lambda **_: pytest.fail("whoever answers is not Ray"))
    if answer is not None:
        answering(listener, answer)
    with pytest.raises(
        AgoraError, match=f"^--address {address_of(listener)}: whoever answers there is not Ray$"
    ):
        cluster.connect(address_of(listener), 100, False)


def test_a_cluster_of_another_version_is_told_with_both(
    listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise RuntimeError(MISMATCH)

    monkeypatch.setattr(ray, "init", refuse)
    # an HTTP/2 SETTINGS frame, as gRPC servers send
    answering(listener, bytes((0, 0, 0, 4, 0, 0, 0, 0, 0)))
    with pytest.raises(AgoraError) as caught:
        cluster.connect(address_of(listener), 100, False)
    line = str(caught.value)
    assert (
        "\n" not in line
        and "cluster was started with: Ray: 2.60.0" in line
        and "started with: Ray: 2.59.0" in line
    )


def test_an_embedded_ray_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(AgoraError, match=r"^Ray does not start: .*No space left on device$"):
        cluster.connect(None, 100, False)
