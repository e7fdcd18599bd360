"""What the live runtime uses of Ray's inside: everything that Ray does not document.

Ray has no other way to these. Each function says what it is for, and what happens if a release of
Ray no longer has what it uses. A name that is imported here and is gone ends every live run, and
every other use of a cluster, at its start with an ImportError that says so.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import grpc
import ray._private.services as ray_services
import ray._private.utils
import ray._private.worker
from ray._common.utils import get_default_ray_temp_dir
from ray._private import ray_constants
from ray._private.state import available_resources_per_node
from ray._raylet import Config  # type: ignore[attr-defined]
from ray.core.generated import gcs_pb2, gcs_service_pb2
from ray.job_config import JobConfig

_NODES = "/ray.rpc.NodeInfoGcsService/GetAllNodeInfo"


def temporary_folder() -> str:
    """Where Ray will put its sockets, whose paths may be too long."""
    folder: str = get_default_ray_temp_dir()
    return folder


class DriversPath(JobConfig):  # type: ignore[misc]  # Ray has no types
    """Workers look for modules in these folders first, in this order.

    Ray would put the script's folder and the working directory before all others. A file there that
    has the name of a package, such as schedulers.py, would then end every actor.

    If JobConfig takes no `_py_driver_sys_path` any more, Ray does not start. If it does not ask
    `_runtime_env_has_working_dir`, the two folders are first again.
    """

    def __init__(self, path: Sequence[str]) -> None:
        super().__init__(_py_driver_sys_path=[*reversed(path)])  # each is put before the others

    def _runtime_env_has_working_dir(self) -> bool:
        return True  # what makes Ray leave its own two folders out


@contextlib.contextmanager
def no_signal_handlers() -> Iterator[None]:
    """Keep ray.init in the block from handling SIGTERM and fatal signals.

    If these names are gone, it does so, and the caller puts the handlers back only afterwards.
    """
    with (
        _replaced(ray._private.utils, "set_sigterm_handler", lambda handler: None),
        _replaced(ray_constants, "RAY_DISABLE_FAILURE_SIGNAL_HANDLER", True),
    ):
        yield


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """An attribute has another value inside."""
    before = getattr(owner, name, None)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def embedded_session() -> tuple[Path, int]:
    """The directory of the Ray that this process has started, and the process id of its raylet: the
    watchdog kills what is left of the one, and ends with the other.

    If the node object has no such parts any more, Ray does not start.
    """
    node = ray._private.worker._global_node
    (raylet,) = node.all_processes[ray_constants.PROCESS_TYPE_RAYLET]
    return Path(node.get_session_dir_path()), raylet.process.pid


def silence_deaths() -> None:
    """Keep Ray from printing a paragraph for every process that dies, whatever log_to_driver says:
    ids, addresses, and guesses at the cause. Whoever uses an actor tells of its loss, by its name.

    If the flag is gone, the paragraphs are back.
    """
    ray._private.worker._worker_logs_enabled = False


def last_log_line(error: BaseException | None) -> str:
    """The last line that a process of this node wrote before it ended, in parentheses and after a
    space; "" if there is none.

    If the process id is no longer in Ray's messages, there is none.

    Args:
        error: Ray's, of an actor whose process is gone.
    """
    found = re.search(r"\bpid: (\d+)", str(error))
    node = ray._private.worker._global_node
    if found is None or node is None:
        return ""
    for path in sorted(Path(node.get_logs_dir_path()).glob(f"worker-*-{found[1]}.err")):
        try:
            lines = path.read_text(errors="replace").split("\n")
        except OSError:
            continue
        words = [line.strip() for line in lines if line.strip() and not line.startswith(":")]
        if words:
            return f" (the last line of its log: {words[-1]})"
    return ""


def dashboard_address() -> str:
    """The address of the dashboard of the Ray that this process is connected to; "" if there is
    none. If it cannot be asked for, a run that holds its actors (`--hold`) ends with an error."""
    return ray._private.worker.get_dashboard_url() or ""


def address_of_this_machine() -> str:
    """The address of the cluster whose node this machine is, for `--address auto`. If it cannot be
    asked for, only HOST:PORT can be given.

    Raises:
        ConnectionError: No Ray runs here.
        ValueError: Several do.
    """
    address: str = ray_services.canonicalize_bootstrap_address_or_die("auto")
    return address


def living_nodes_at(channel: grpc.Channel, token: str | None, timeout_s: float) -> list[str] | None:
    """Ask the head node for the addresses of its living nodes, without attaching to the cluster.

    If the head node does not know the question any more, no cluster is taken for one: the message
    says that the server is not a Ray head node.

    Returns:
        None if the token is refused.

    Raises:
        grpc.RpcError: No head node answers.
    """
    call = channel.unary_unary(
        _NODES,
        request_serializer=gcs_service_pb2.GetAllNodeInfoRequest.SerializeToString,
        response_deserializer=gcs_service_pb2.GetAllNodeInfoReply.FromString,
    )
    metadata = () if token is None else (("authorization", f"Bearer {token}"),)
    try:
        reply = call(gcs_service_pb2.GetAllNodeInfoRequest(), timeout=timeout_s, metadata=metadata)
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.UNAUTHENTICATED:
            return None
        raise
    return [
        node.node_manager_address
        for node in reply.node_info_list
        if node.state == gcs_pb2.GcsNodeInfo.ALIVE
    ]


def read_environment_again() -> None:
    """Let Ray read RAY_AUTH_MODE, which it has read when it was imported. If it cannot, a user must
    set the variable before the command."""
    Config.initialize("")


def free_resources() -> Mapping[str, Mapping[str, float]]:
    """What no job has reserved of each living node's resources, by the node's id. Ray's own
    available_resources() is of all nodes together."""
    free: Mapping[str, Mapping[str, float]] = available_resources_per_node()
    return free
