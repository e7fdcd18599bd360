"""One embedded Ray for all tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # loopback only; read when Ray is imported


@pytest.fixture(scope="session")
def embedded_ray() -> Iterator[None]:
    """Connected while any of the tests runs."""
    from parsync.runtime.live.cluster import connect, disconnect

    connect(None, object_store_mb=100, dashboard=False)
    yield
    disconnect()
