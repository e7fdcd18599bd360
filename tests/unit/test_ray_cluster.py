"""What an embedded Ray needs to start, and where its workers look for modules; attaching to what is
no cluster, or not one of ours: one line, and soon. Without Ray processes."""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
import ray
from ray.core.generated import gcs_pb2, gcs_service_pb2

from parsync.runtime.live.plan import LiveOptions
from parsync.runtime.live.ray_glue import cluster, internals
from parsync.runtime.live.run import _absolute
from shared_state.errors import AgoraError

MISMATCH = """Version mismatch: The cluster was started with:
    Ray: 2.60.0
    Python: 3.11.7
This process on node 10.0.0.7 was started with:
    Ray: 2.59.0
    Python: 3.11.7
"""
TOKEN = "0123456789abcdef"


@pytest.fixture(autouse=True)
def no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **_: pytest.fail("Ray is not asked"))
    for name in ("RAY_USE_TLS", "RAY_ADDRESS", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A port of this machine where nothing is answered until the test does."""
    monkeypatch.setattr(cluster, "PROBE_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def address_of(server: socket.socket) -> str:
    return f"127.0.0.1:{server.getsockname()[1]}"


def answering(server: socket.socket, answer: bytes) -> None:
    """Give every connection the same answer."""

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.sendall(answer)

    threading.Thread(target=serve, daemon=True).start()


HeadNode = Callable[..., str]


@pytest.fixture
def head_node() -> Iterator[HeadNode]:
    """Start what answers like a head node: nodes(address of each), with a token or without."""
    servers = []

    def start(nodes: tuple[str, ...] = ("127.0.0.1",), token: str | None = None) -> str:
        def answer(request: object, context: grpc.ServicerContext) -> object:
            shown = dict(context.invocation_metadata()).get("authorization")
            if token is not None and shown != f"Bearer {token}":
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "InvalidAuthToken")
            reply = gcs_service_pb2.GetAllNodeInfoReply()
            for node in nodes:
                reply.node_info_list.add(node_manager_address=node, state=gcs_pb2.GcsNodeInfo.ALIVE)
            reply.node_info_list.add(
                node_manager_address="127.0.0.1", state=gcs_pb2.GcsNodeInfo.DEAD
            )
            return reply

        server = grpc.server(ThreadPoolExecutor(1))
        method = grpc.unary_unary_rpc_method_handler(
            answer,
            gcs_service_pb2.GetAllNodeInfoRequest.FromString,
            gcs_service_pb2.GetAllNodeInfoReply.SerializeToString,
        )
        service = grpc.method_handlers_generic_handler(
            "ray.rpc.NodeInfoGcsService", {"GetAllNodeInfo": method}
        )
        server.add_generic_rpc_handlers((service,))
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        servers.append(server)
        return f"127.0.0.1:{port}"

    yield start
    for server in servers:
        server.stop(None)


def refusal(where: str) -> str:
    with pytest.raises(AgoraError, match=f"^--address {where}: ") as caught:
        cluster.connect(where, 100, False)
    message = str(caught.value)
    assert "\n" not in message
    return message.removeprefix(f"--address {where}: ")


@pytest.mark.parametrize("answer", [None, b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0", b""])
def test_somebody_else_s_port(listener: socket.socket, answer: bytes | None) -> None:
    if answer is not None:
        answering(listener, answer)
    assert refusal(address_of(listener)) == "the server at this address is not a Ray head node"


def test_a_grpc_server_that_is_not_ray_s() -> None:
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    message = refusal(f"127.0.0.1:{port}")
    server.stop(None)
    assert message == "the server at this address is not a Ray head node"


def test_a_port_where_nobody_listens() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        closed = address_of(probe)
    assert refusal(closed).startswith("nothing answers at this address: [Errno 111]")


@pytest.mark.parametrize("where", ["127.0.0.1:99999999", "no.such.host.invalid:6379"])
def test_an_address_that_cannot_be(where: str) -> None:
    assert refusal(where).startswith("nothing answers at this address: ")


@pytest.mark.parametrize(
    "where", ["nowhere", "127.0.0.1:", ":6379", "127.0.0.1:http", "local", "ray://127.0.0.1:10001"]
)
def test_an_address_without_a_host_or_a_port(where: str) -> None:
    assert refusal(where) == "expected HOST:PORT of the head node, or auto"


def test_no_cluster_on_this_machine_for_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_found(where: str) -> str:
        raise ConnectionError("Could not find any running Ray instance.\nSpecify one.")

    monkeypatch.setattr(internals.ray_services, "canonicalize_bootstrap_address_or_die", none_found)
    assert refusal("auto") == "no Ray is running on this machine; give the HOST:PORT of one"


def test_auto_is_checked_like_any_address(
    head_node: HeadNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = head_node(token=TOKEN)
    monkeypatch.setattr(
        internals.ray_services, "canonicalize_bootstrap_address_or_die", lambda _: where
    )
    assert refusal("auto").startswith("the cluster asks for a token, and ")


def test_a_cluster_that_asks_for_a_token(
    head_node: HeadNode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    where = head_node(token=TOKEN)
    assert refusal(where) == "the cluster asks for a token, and RAY_AUTH_MODE=disabled here"
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("HOME", str(tmp_path))
    of_home = tmp_path / ".ray" / "auth_token"
    assert f", and {of_home} holds none" in refusal(where)
    of_home.parent.mkdir()
    of_home.write_text("another\n")
    assert refusal(where) == f"the token in {of_home} is not the cluster's"
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "missing"))
    assert f", and {tmp_path / 'missing'} holds none" in refusal(where)
    monkeypatch.setenv("RAY_AUTH_TOKEN", "another")
    assert refusal(where) == "the token in RAY_AUTH_TOKEN is not the cluster's"
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    (tmp_path / "missing").write_text(f"{TOKEN}\n")
    assert cluster.checked_address(where) == where


def test_the_right_token_is_shown_unless_that_is_forbidden(
    head_node: HeadNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(internals, "Config", SimpleNamespace(initialize=told.append))
    monkeypatch.setenv("RAY_AUTH_TOKEN", TOKEN)
    where = head_node(token=TOKEN)
    assert "RAY_AUTH_MODE=disabled" in refusal(where)
    monkeypatch.delenv("RAY_AUTH_MODE")
    assert cluster.checked_address(where) == where
    assert os.environ["RAY_AUTH_MODE"] == "token" and told == [""]


def test_a_token_for_a_cluster_without(
    head_node: HeadNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = head_node()
    assert cluster.checked_address(where) == where
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    assert refusal(where).startswith("the cluster runs without a token")


def test_a_machine_that_is_not_a_node_of_the_cluster(head_node: HeadNode) -> None:
    where = head_node(nodes=("198.51.100.77", "198.51.100.78"))
    assert refusal(where) == (
        "this machine is not a node of the cluster (its nodes: 198.51.100.77, 198.51.100.78); "
        f"run `ray start --address={where}` here first"
    )


def test_a_cluster_of_another_version_is_told_with_both(
    head_node: HeadNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise RuntimeError(MISMATCH)

    monkeypatch.setattr(ray, "init", refuse)
    line = refusal(head_node())
    assert "cluster was started with: Ray: 2.60.0" in line and "started with: Ray: 2.59.0" in line


def test_an_embedded_ray_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(AgoraError, match=r"^Ray does not start: .*No space left on device$"):
        cluster.connect(None, 100, False)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_ray_keeps_its_token_in_the_home_directory(home: Path) -> None:
    cluster._provide_token()
    assert "RAY_AUTH_TOKEN" not in os.environ


def test_without_a_home_directory_the_token_is_in_the_environment(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", os.devnull)
    try:
        cluster._provide_token()
        assert len(os.environ["RAY_AUTH_TOKEN"]) == 64
    finally:
        os.environ.pop("RAY_AUTH_TOKEN", None)


@pytest.mark.parametrize("variable", ["TMPDIR", "RAY_TMPDIR"])
def test_a_folder_too_long_for_sockets_is_named(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    monkeypatch.setenv(variable, "/tmp/" + "a" * 70)
    with pytest.raises(AgoraError, match=rf"^{variable}=/tmp/a+: \d+ bytes too long for the paths"):
        cluster.connect(None, 100, False)


@pytest.mark.parametrize(("fails", "attempts"), [(1, 2), (2, 2)])
def test_ray_gets_a_second_attempt_whatever_it_raises(
    monkeypatch: pytest.MonkeyPatch, fails: int, attempts: int
) -> None:
    made: list[int] = []

    def start(*_: Any) -> None:
        made.append(1)
        if len(made) <= fails:
            raise Exception("The current node timed out during startup.\nand more")

    monkeypatch.setattr(cluster, "_start", start)
    if fails < attempts:
        cluster.connect(None, 100, False)
    else:
        with pytest.raises(AgoraError) as raised:
            cluster.connect(None, 100, False)
        assert str(raised.value) == (
            "Ray does not start: The current node timed out during startup."
        )
    assert len(made) == attempts


def test_workers_look_where_the_driver_does() -> None:
    """Ray puts each folder before the others, in the order given, and adds none of its own."""
    config = internals.DriversPath(["/first", "/second"])
    path = [*sys.path]
    for folder in config._py_driver_sys_path:
        path.insert(0, folder)
    assert path[:2] == ["/first", "/second"]
    assert config._runtime_env_has_working_dir()


def test_actors_get_absolute_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They may work in another folder: on a cluster, a relative path is none of this command's."""
    monkeypatch.chdir(tmp_path)
    options = _absolute(LiveOptions(Path("run/log"), Path("run"), Path("run/workload")))
    assert options.journal_dir == tmp_path / "run" / "log"
    assert options.records_dir == tmp_path / "run"
    assert options.workload_dir == tmp_path / "run" / "workload"
    assert _absolute(LiveOptions(Path("log"))).records_dir is None


def test_what_ray_does_not_document_is_used_in_one_file() -> None:
    """A release of Ray may change it: internals.py says what happens then."""
    undocumented = re.compile(r"\bray(\._\w+|\.core\.generated)")
    folder = Path(internals.__file__).parents[1]
    uses = [path for path in folder.rglob("*.py") if undocumented.search(path.read_text())]
    assert uses == [Path(internals.__file__)]
