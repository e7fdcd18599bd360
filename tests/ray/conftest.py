"""One embedded Ray for all tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # loopback only; read when Ray is imported


PACKAGES = Path(__file__).parents[1] / "fixtures" / "schedulers"


@pytest.fixture(scope="session")
def embedded_ray() -> Iterator[None]:
    """Connected while any of the tests runs; schedulers of bad_schedulers.py are installed."""
    from parsync.runtime.live.cluster import connect, disconnect

    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(PACKAGES)
        patch.setenv("PYTHONPATH", str(PACKAGES), prepend=os.pathsep)  # of the actors' processes
        connect(None, object_store_mb=100, dashboard=False)
        yield
        disconnect()
