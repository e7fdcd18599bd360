"""Starting an embedded Ray, or attaching to a cluster, and leaving it.

Ray itself takes from twenty seconds to minutes to give up on a wrong address, port or token, and
does not name the cause. checked_address() asks the head node directly and takes milliseconds.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc
import ray

from parsync.runtime.live.ray_glue import internals, nodes
from parsync.runtime.live.ray_glue.watchdog import watched
from parsync.runtime.stop_signals import STOP_SIGNALS
from shared_state.errors import AgoraError

PROBE_S = 5.0
_LONGEST_SOCKET = 107  # bytes, on Linux
_SOCKET = "session_2026-01-01_00-00-00_000000_0000000/sockets/plasma_store"
_REPEATED = (ValueError, OSError)  # what a second attempt would raise again


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
        internals.silence_deaths()
        return
    address = checked_address(address)
    with tempfile.TemporaryDirectory(prefix="agora-") as folder:
        nodes.fill(Path(folder))
        common["runtime_env"] = nodes.runtime_env(Path(folder))
        try:
            with _signal_handlers_kept():
                ray.init(address=address, job_config=internals.DriversPath([]), **common)
        except Exception as error:  # Ray raises plain exceptions, too
            raise AgoraError(
                f"--address {address}: cannot attach: {_in_one_line(error)}"
            ) from error
    internals.silence_deaths()


def _start(object_store_mb: int, dashboard: bool, common: Mapping[str, Any]) -> None:
    """Start an embedded Ray."""
    with _signal_handlers_kept(), watched() as watchdog:
        ray.init(
            address="local",
            include_dashboard=dashboard,
            object_store_memory=object_store_mb << 20,
            job_config=internals.DriversPath([os.path.abspath(entry) for entry in sys.path]),
            **common,
        )
        watchdog.watch(*internals.embedded_session())


def _check_socket_paths() -> None:
    """Raise AgoraError if the paths of Ray's sockets would be longer than the system allows."""
    folder = internals.temporary_folder()
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
        with internals.no_signal_handlers():
            yield
    finally:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _in_one_line(error: BaseException) -> str:
    """The first line of Ray's message; all of them where that one only announces the others (a
    mismatch of versions)."""
    lines = [line.strip() for line in str(error).strip().splitlines()]
    if not lines:
        return type(error).__name__
    return " ".join(lines) if lines[0].endswith(":") else lines[0]


def checked_address(address: str) -> str:
    """The HOST:PORT of the head node behind `address`, which is HOST:PORT or "auto" (the cluster
    whose node this machine is).

    Raises AgoraError naming the cause if no head node answers there, if this process has not the
    token that the cluster asks for, or if this machine is not one of the cluster's nodes.
    """
    wanted = f"--address {address}"
    if address == "auto":
        try:
            address = internals.address_of_this_machine()
        except ConnectionError as error:
            raise AgoraError(
                f"{wanted}: no Ray is running on this machine; give the HOST:PORT of one"
            ) from error
        except ValueError as error:
            raise AgoraError(f"{wanted}: {' '.join(str(error).split())}") from error
    host, separator, port = address.rpartition(":")
    if not separator or not host or not port.isdecimal() or "/" in host:
        raise AgoraError(f"{wanted}: expected HOST:PORT of the head node, or auto")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=PROBE_S).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise AgoraError(
            f"{wanted}: nothing answers at this address: {error}; is the head node started?"
        ) from error
    if os.environ.get("RAY_USE_TLS", "0").lower() in ("1", "true"):
        return address  # Ray has the certificates, and finds out itself
    with grpc.insecure_channel(address) as channel:
        living = _nodes(channel, wanted)
    if not any(_is_here(node) for node in living):
        raise AgoraError(
            f"{wanted}: this machine is not a node of the cluster (its nodes: "
            f"{', '.join(living) or 'none'}); run `ray start --address={address}` here first"
        )
    return address


def _nodes(channel: Any, wanted: str) -> list[str]:
    """The addresses of the cluster's living nodes; AgoraError if there is no cluster, or if this
    process will not be let in."""
    mode = os.environ.get("RAY_AUTH_MODE", "").lower()
    answer = _ask(channel, wanted, None)
    if answer is not None:
        if mode == "token":
            raise AgoraError(
                f"{wanted}: the cluster runs without a token, but RAY_AUTH_MODE=token is set "
                "here; start every node with RAY_AUTH_MODE=token, or unset it here"
            )
        return answer
    if mode not in ("", "token"):
        raise AgoraError(f"{wanted}: the cluster asks for a token, and RAY_AUTH_MODE={mode} here")
    token, source = _token()
    if not token:
        raise AgoraError(
            f"{wanted}: the cluster asks for a token, and {source} holds none; set "
            "RAY_AUTH_TOKEN_PATH to the file with the token of its nodes"
        )
    answer = _ask(channel, wanted, token)
    if answer is None:
        raise AgoraError(f"{wanted}: the token in {source} is not the cluster's")
    if not mode:
        os.environ["RAY_AUTH_MODE"] = "token"
        internals.read_environment_again()
    return answer


def _ask(channel: grpc.Channel, wanted: str, token: str | None) -> list[str] | None:
    """The addresses of the living nodes; None if the token is refused."""
    try:
        return internals.living_nodes_at(channel, token, PROBE_S)
    except grpc.RpcError as error:
        raise AgoraError(f"{wanted}: the server at this address is not a Ray head node") from error


def _token() -> tuple[str, str]:
    """The token this process would show, and where it comes from: Ray's three places, in Ray's
    order."""
    if "RAY_AUTH_TOKEN" in os.environ:
        return os.environ["RAY_AUTH_TOKEN"].strip(), "RAY_AUTH_TOKEN"
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    try:
        return path.read_text(encoding="utf-8").strip(), str(path)
    except (OSError, UnicodeDecodeError):
        return "", str(path)


def _is_here(address: str) -> bool:
    """Whether it is an address of this machine."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def dashboard_note() -> str:
    """The addresses of the Ray this process is connected to and of its dashboard, and how to log
    in."""
    address = internals.dashboard_address()
    ask = f"agora actors --address {ray.get_runtime_context().gcs_address}"
    if not address:
        return f"Ray runs without a dashboard. To see what each actor is doing: `{ask}`."
    return (
        f"Ray dashboard: http://{address} (its Actors page lists the actors; the last line of an "
        "actor's log says what it is doing). It asks for a token: `ray get-auth-token` prints it.\n"
        f"To see what each actor is doing: `{ask}`."
    )
