"""Checks of a cluster's address before Ray attaches to it.

Ray itself takes from twenty seconds to minutes to give up on a wrong address, port or token, and
does not name the cause. These checks ask the head node directly and take milliseconds.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import grpc
import ray._private.services as ray_services
from ray._raylet import Config  # type: ignore[attr-defined]
from ray.core.generated import gcs_pb2, gcs_service_pb2

from shared_state.errors import AgoraError

PROBE_S = 5.0
_NODES = "/ray.rpc.NodeInfoGcsService/GetAllNodeInfo"


def checked_address(address: str) -> str:
    """The HOST:PORT of the head node behind `address`, which is HOST:PORT or "auto" (the cluster
    whose node this machine is).

    Raises AgoraError naming the cause if no head node answers there, if this process has not the
    token that the cluster asks for, or if this machine is not one of the cluster's nodes.
    """
    wanted = f"--address {address}"
    if address == "auto":
        try:
            address = ray_services.canonicalize_bootstrap_address_or_die("auto")
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
        nodes = _nodes(channel, wanted)
    if not any(_is_here(node) for node in nodes):
        raise AgoraError(
            f"{wanted}: this machine is not a node of the cluster (its nodes: "
            f"{', '.join(nodes) or 'none'}); run `ray start --address={address}` here first"
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
        # Ray has read the variable when it was imported; this lets it look again
        os.environ["RAY_AUTH_MODE"] = "token"
        Config.initialize("")
    return answer


def _ask(channel: Any, wanted: str, token: str | None) -> list[str] | None:
    """The addresses of the living nodes; None if the token is refused."""
    call = channel.unary_unary(
        _NODES,
        request_serializer=gcs_service_pb2.GetAllNodeInfoRequest.SerializeToString,
        response_deserializer=gcs_service_pb2.GetAllNodeInfoReply.FromString,
    )
    metadata = () if token is None else (("authorization", f"Bearer {token}"),)
    try:
        reply = call(gcs_service_pb2.GetAllNodeInfoRequest(), timeout=PROBE_S, metadata=metadata)
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.UNAUTHENTICATED:
            return None
        raise AgoraError(f"{wanted}: the server at this address is not a Ray head node") from error
    return [
        node.node_manager_address
        for node in reply.node_info_list
        if node.state == gcs_pb2.GcsNodeInfo.ALIVE
    ]


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
