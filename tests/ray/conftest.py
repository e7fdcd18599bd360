"""One embedded Ray for all tests that need one, and one finished run for those that only look at
what a run leaves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    from parsync.runtime.live.liveness import RunStatus
    from parsync.runtime.live.run import LiveOutcome
    from parsync.spec.arm import SeededArm
    from parsync.workload.workload import Workload

os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # loopback only; read when Ray is imported


FIXTURES = Path(__file__).parents[1] / "fixtures"
PACKAGES = [str(FIXTURES / name) for name in ("schedulers", "protocols")]


class OneEmbeddedRay(LoadFileScheduling):
    """Gives each file to one process, and all files that use the embedded Ray to the same one. The
    others run commands that start a Ray of their own."""

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        text = (self.config.rootpath / file).read_text(encoding="utf-8")
        return "embedded_ray" if '"embedded_ray"' in text else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneEmbeddedRay:
    return OneEmbeddedRay(config, log)


@pytest.fixture(scope="session")
def embedded_ray() -> Iterator[None]:
    """Connected while any of the tests runs. The schedulers of bad_schedulers.py and the protocol
    of machine_queues.py are installed."""
    from parsync.runtime.live.ray_glue.cluster import connect, disconnect

    with pytest.MonkeyPatch.context() as patch:
        for package in PACKAGES:
            patch.syspath_prepend(package)
            patch.setenv("PYTHONPATH", package, prepend=os.pathsep)  # of the actors' processes
        connect(None, object_store_mb=100, dashboard=False)
        yield
        disconnect()


@dataclass(frozen=True)
class FinishedRun:
    """A run that came to its end undisturbed. Its folder has a journal and records."""

    directory: Path
    arm: SeededArm
    workload: Workload
    outcome: LiveOutcome
    statuses: list[RunStatus]


@pytest.fixture(scope="session")
def mixed_run(embedded_ray: None, tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """Two random schedulers and a flow scheduler on a full cell. The logs of records are kept, as
    after a run that was killed."""
    from parsync.runtime.live import run as live_run
    from parsync.runtime.live.plan import LiveOptions
    from tests.fixtures.live_runs import metrics_of, mixed_arm, small_workload

    directory = tmp_path_factory.mktemp("mixed")
    workload, arm = small_workload(machines=60), mixed_arm()
    options = LiveOptions(directory / "journal", directory / "records", checkpoint_bytes=4096)
    statuses: list[RunStatus] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(live_run, "remove_records", lambda directory: None)
        outcome = live_run.run_live(
            arm, workload, options, 20_000_000, metrics_of(workload, arm), statuses.append
        )
    assert outcome.drained and not outcome.partial, outcome.notes
    return FinishedRun(directory, arm, workload, outcome, statuses)
