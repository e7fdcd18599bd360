"""Where to look at a running Ray, and how to get in."""

from __future__ import annotations

import ray._private.worker


def dashboard_note() -> str:
    """The dashboard's address of the Ray this process is connected to, and how to log in."""
    address = ray._private.worker.get_dashboard_url()
    if not address:
        return "Ray runs without a dashboard."
    return (
        f"Ray dashboard: http://{address} (Actors page: what each actor is doing). "
        "It asks for a token: `ray get-auth-token` prints it."
    )
