"""The view of a running Ray: where its dashboard is, how to get in, and what the actors are
doing."""

from __future__ import annotations

import ray
import ray._private.worker

from parsync.runtime.live.ray_glue.actors import answer
from parsync.runtime.live.ray_glue.cluster import NAMESPACE, connect, disconnect
from parsync.runtime.live.steps import ActorFailed, Unavailable

STATUS_S = 5.0
_OBJECT_STORE_MB = 0  # of a Ray that runs already


def dashboard_note() -> str:
    """The addresses of the Ray this process is connected to and of its dashboard, and how to log
    in."""
    address = ray._private.worker.get_dashboard_url()
    ask = f"agora actors --address {ray.get_runtime_context().gcs_address}"
    if not address:
        return f"Ray runs without a dashboard. To see what each actor is doing: `{ask}`."
    return (
        f"Ray dashboard: http://{address} (its Actors page lists the actors; the last line of an "
        "actor's log says what it is doing). It asks for a token: `ray get-auth-token` prints it.\n"
        f"To see what each actor is doing: `{ask}`."
    )


def statuses(address: str) -> list[str]:
    """What each actor of each live run on a running Ray is doing, a line each. Raises AgoraError
    as connect()."""
    connect(address, _OBJECT_STORE_MB, False)
    try:
        found = [
            (entry["namespace"], entry["name"])
            for entry in ray.util.list_named_actors(all_namespaces=True)
            if entry["namespace"].startswith(NAMESPACE)
        ]
        return [_status(namespace, name) for namespace, name in sorted(found)]
    finally:
        disconnect()


def _status(namespace: str, name: str) -> str:
    try:
        actor = ray.get_actor(name, namespace=namespace)
        status: str = answer(actor.status.remote(), STATUS_S)
    except (Unavailable, ActorFailed, ValueError) as error:  # ValueError: gone since
        return f"{name}: {error}"
    return status
