"""Starting and finding Ray, and making actors of the plain classes."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import re
import secrets
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import ray
import ray._private.worker
from ray._common.utils import get_default_ray_temp_dir
from ray._private import ray_constants
from ray.exceptions import RayError
from ray.job_config import JobConfig
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from parsync.runtime.live import shipping
from parsync.runtime.live.ray_glue.internals import checked_address
from parsync.runtime.live.ray_glue.nodes import nodes_with_room
from parsync.runtime.live.ray_glue.watchdog import watched
from parsync.runtime.live.status import StatusLine
from parsync.runtime.stop_signals import STOP_SIGNALS
from shared_state.errors import AgoraError

_LONGEST_SOCKET = 107  # bytes, on Linux
_SOCKET = "session_2026-01-01_00-00-00_000000_0000000/sockets/plasma_store"
_REPEATED = (ValueError, OSError)  # what a second attempt would raise again
NAMESPACE = "agora-"  # what the names of all runs' namespaces begin with


def connect(address: str | None, object_store_mb: int, dashboard: bool) -> None:
    """Start an embedded Ray, or attach to the cluster at `address` and ship the code to its nodes;
    nothing if this process is connected already.

    Raises AgoraError for an address or a token that does not lead to a cluster, for a cluster of
    another Ray or Python version, and for a Ray that does not start at two attempts.
    """
    if ray.is_initialized():
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")
    common: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address is None:
        _check_socket_paths()
        _provide_token()
        try:
            _start(object_store_mb, dashboard, common)
        except _REPEATED as error:
            raise AgoraError(f"Ray does not start: {_in_one_line(error)}") from error
        except Exception:  # such as a time-out of Ray's on a busy machine, which is a plain one
            ray.shutdown()
            try:
                _start(object_store_mb, dashboard, common)
            except Exception as error:
                ray.shutdown()
                raise AgoraError(f"Ray does not start: {_in_one_line(error)}") from error
        _silence()
        return
    address = checked_address(address)
    with tempfile.TemporaryDirectory(prefix="agora-") as folder:
        shipping.fill(Path(folder))
        common["runtime_env"] = shipping.runtime_env(Path(folder))
        try:
            with _signal_handlers_kept():
                ray.init(address=address, job_config=_DriversPath([]), **common)
        except Exception as error:  # Ray raises plain exceptions, too
            raise AgoraError(
                f"--address {address}: cannot attach: {_in_one_line(error)}"
            ) from error
    _silence()


def _start(object_store_mb: int, dashboard: bool, common: Mapping[str, Any]) -> None:
    """Start an embedded Ray."""
    with _signal_handlers_kept(), watched() as watchdog:
        ray.init(
            address="local",
            include_dashboard=dashboard,
            object_store_memory=object_store_mb << 20,
            job_config=_DriversPath([os.path.abspath(entry) for entry in sys.path]),
            **common,
        )
        node = ray._private.worker._global_node
        (raylet,) = node.all_processes[ray_constants.PROCESS_TYPE_RAYLET]
        watchdog.watch(Path(node.get_session_dir_path()), raylet.process.pid)


class _DriversPath(JobConfig):  # type: ignore[misc]  # Ray has no types
    """Workers look for modules in these folders first, in this order.

    Ray would put the script's folder and the working directory before all others. A file there that
    has the name of a package, such as schedulers.py, would then end every actor.
    """

    def __init__(self, path: Sequence[str]) -> None:
        super().__init__(_py_driver_sys_path=[*reversed(path)])  # each is put before the others

    def _runtime_env_has_working_dir(self) -> bool:
        return True  # what makes Ray leave its own two folders out


def _check_socket_paths() -> None:
    """Raise AgoraError if the paths of Ray's sockets would be longer than the system allows."""
    folder = get_default_ray_temp_dir()
    too_long = len(os.fsencode(os.path.join(folder, _SOCKET))) - _LONGEST_SOCKET
    if too_long > 0:
        variable = "RAY_TMPDIR" if "RAY_TMPDIR" in os.environ else "TMPDIR"
        raise AgoraError(
            f"{variable}={os.environ.get(variable, '')}: {too_long} bytes too long for the paths "
            f"of Ray's sockets (at most {_LONGEST_SOCKET} bytes); set RAY_TMPDIR to a shorter one"
        )


def _provide_token() -> None:
    """Give the embedded Ray a token in this process's environment, if it can keep none in the
    user's home directory."""
    if os.environ.get("RAY_AUTH_MODE", "token").lower() != "token":
        return
    if "RAY_AUTH_TOKEN" in os.environ or "RAY_AUTH_TOKEN_PATH" in os.environ:
        return
    try:
        folder = Path.home() / ".ray"
        if (folder / "auth_token").is_file():
            return
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except (OSError, RuntimeError):  # RuntimeError: there is no home directory
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


def _silence() -> None:
    """Ray prints a paragraph for every process that dies, whatever log_to_driver says: ids,
    addresses, and guesses at the cause. Whoever uses an actor tells of its loss, by its name."""
    ray._private.worker._worker_logs_enabled = False


def connected() -> bool:
    """Whether this process is connected to a Ray. A call of Ray would start one if it is not."""
    return bool(ray.is_initialized())


def disconnect() -> None:
    """Shut an embedded Ray down, or leave the cluster."""
    ray.shutdown()


@contextlib.contextmanager
def _signal_handlers_kept() -> Iterator[None]:
    """Keep ray.init in the block from changing this process's handlers of stop signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})  # children inherit it
    try:
        with (
            _replaced(ray._private.utils, "set_sigterm_handler", lambda handler: None),
            _replaced(ray_constants, "RAY_DISABLE_FAILURE_SIGNAL_HANDLER", True),
        ):
            yield
    finally:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """An attribute has another value inside."""
    before = getattr(owner, name, None)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _in_one_line(error: BaseException) -> str:
    """The first line of Ray's message; all of them where that one only announces the others (a
    mismatch of versions)."""
    lines = [line.strip() for line in str(error).strip().splitlines()]
    if not lines:
        return type(error).__name__
    return " ".join(lines) if lines[0].endswith(":") else lines[0]


def last_log_line(error: BaseException | None) -> str:
    """The last line that a process of this node wrote before it ended, in parentheses and after a
    space; "" if there is none.

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


class RunActors:
    """The actors of one run, by name, in a namespace of their own.

    Every actor has a node: the caller's, where the run's directory is, or one of the cluster's
    nodes in turn. Ray replaces a node that is gone. An actor asks for a byte of memory, because Ray
    places actors that ask for nothing on random nodes, whatever their strategy.
    """

    def __init__(self, namespace: str, arm: str) -> None:
        self.namespace = namespace
        self._arm = arm
        self._handles: dict[str, Any] = {}
        self._home = ray.get_runtime_context().get_node_id()
        self._in_turn = itertools.cycle(nodes_with_room(self._home))

    def create(self, name: str, cls: type, restarts: bool, spread: bool, *args: Any) -> Any:
        """Create an actor of a plain class.

        Args:
            restarts: Whether it is built again from the same arguments after a crash; calls are
                never repeated by Ray.
            spread: Whether it goes to the next of the cluster's nodes, else on the caller's.
        """
        node = next(self._in_turn) if spread else self._home
        options: dict[str, Any] = {
            "name": name,
            "namespace": self.namespace,
            "num_cpus": 0,
            "memory": 1,
            "max_restarts": -1 if restarts else 0,
            "max_task_retries": 0,
            "scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=True),
        }
        titled = _titled(cls, f"agora:{StatusLine(name, self._arm)}")
        handle = ray.remote(**options)(titled).remote(*args)
        self._handles[name] = handle
        return handle

    def end(self, name: str) -> None:
        """Kill an actor for good."""
        with contextlib.suppress(RayError):
            ray.kill(self._handles[name], no_restart=True)

    def dismiss(self) -> None:
        """Kill every actor for good."""
        for name in self._handles:
            self.end(name)


def _titled(cls: type, title: str) -> type:
    """The class by another name. Ray calls an actor's process by the name of its class: so `ps` and
    the dashboard tell processes of one class, and of several arms, apart."""
    return type(title, (cls,), {"__module__": cls.__module__, "__doc__": cls.__doc__})


def node_ip() -> str:
    """The address of this process's node, as the cluster's nodes reach it."""
    ip: str = ray.util.get_node_ip_address()
    return ip


def member(namespace: str, name: str) -> Any:
    """An actor of a run that was created before the caller."""
    return ray.get_actor(name, namespace=namespace)


def share(value: Any) -> Any:
    """Put a value into the object store once: a handle for shared(). Whoever shares keeps the
    handle for as long as actors may be built from it."""
    return [ray.put(value)]


def shared(handle: Any) -> Any:
    """The value, its arrays read-only and without a copy."""
    return ray.get(handle[0])


def shared_by(keeper: Any) -> Any:
    """The value whose handle the actor `keeper` keeps.

    If the keeper has none any more, the calling actor ends for good: after an exception Ray would
    restart it again and again. The handle is not an argument of actors, because Ray warns of every
    restartable actor that has one.
    """
    handle = ray.get(keeper.kept.remote())
    if handle is None:
        ray.actor.exit_actor()
    return shared(handle)
