"""One embedded Ray for all tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # loopback only; read when Ray is imported


FIXTURES = Path(__file__).parents[1] / "fixtures"
PACKAGES = [str(FIXTURES / name) for name in ("schedulers", "protocols")]


@pytest.fixture(scope="session")
def embedded_ray() -> Iterator[None]:
    """Connected while any of the tests runs. The schedulers of bad_schedulers.py and the protocol
    of machine_queues.py are installed."""
    from parsync.runtime.live.cluster import connect, disconnect

    with pytest.MonkeyPatch.context() as patch:
        for package in PACKAGES:
            patch.syspath_prepend(package)
            patch.setenv("PYTHONPATH", package, prepend=os.pathsep)  # of the actors' processes
        connect(None, object_store_mb=100, dashboard=False)
        yield
        disconnect()
