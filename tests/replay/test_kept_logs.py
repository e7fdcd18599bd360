"""Logs of live runs that are kept in tests/golden/live replay: the participants of today handle
every entry, and do the same as those that wrote it.

All runs but one are those of tests/fixtures/hand_driven_run.py, which must still write the same
logs, entry by entry. ON_RAY ran on Ray, where no run is like another; its cell and a scheduler host
were killed. When they have to change, say so in CHANGELOG.md and write them anew:

    python -m tests.replay.test_kept_logs [on_ray]
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from parsync.core.codec import Codec, decode
from parsync.core.events import DecisionDone
from parsync.runtime.arm_directory import read_assembly
from parsync.runtime.live.liveness import RunStatus
from parsync.runtime.live.logs import CELL_LOG, read_handled
from parsync.runtime.live.replay import replay
from parsync.spec.arm import ArmConfig, SeededArm, check_protocols
from parsync.spec.decision_times import MeasuredTime
from parsync.workload.workload import Workload
from shared_state.journal import read_journal
from tests.fixtures.feature_runs import (
    CROWDED,
    GROUPED,
    SHARED_DEMAND,
    failing,
    guest_group,
    guests,
    with_quotas,
)
from tests.fixtures.hand_driven_run import write_run
from tests.fixtures.live_runs import metrics_of
from tests.fixtures.overloaded_cell import group, locking_arm, locking_group

LIVE = Path(__file__).parents[1] / "golden" / "live"
SMALL = {
    "machines": 20,
    "machines_per_rack": 4,
    "batch_tasks": 8,
    "phase_s": 0.25,
    "mean_duration_s": 0.2,
}


@dataclass(frozen=True)
class KeptRun:
    """A run whose logs are kept.

    Args:
        arm: Makes its arm, of three agents.
        make_workload: Makes its workload.
        handles: Names of events that its participants handle.
        counts: Counts of the audit that are not 0.
    """

    arm: Callable[[], ArmConfig]
    make_workload: Callable[[], Workload]
    handles: tuple[str, ...]
    counts: tuple[str, ...] = ("rejected", "lost")


def mixed_cell() -> ArmConfig:
    """ParSync, Omega and a flow scheduler that preempts."""
    return locking_arm(
        group(
            name="parsync",
            count=1,
            gap_s=0.1,
            strategy="adaptive",
            tau_s=0.02,
            freed_at_once=True,
            head_of_line_s=0.1,
            options=SHARED_DEMAND,
        ),
        group(
            name="omega",
            count=1,
            sync="every_attempt",
            losers="requeue",
            requeue_s=0.05,
            conflict_check="sequence_number",
        ),
        group(
            "flow",
            1,
            name="flow",
            sync="state_aligned",
            gap_s=0.1,
            options={**SHARED_DEMAND, "preemption": True},
        ),
    )


def quotas_with_reclaim() -> ArmConfig:
    """ParSync, Omega and weighted sampling, which give room back at once."""
    config = locking_arm(
        group(
            name="parsync",
            count=1,
            gap_s=0.1,
            strategy="quality_first",
            commit_pipelining=False,
        ),
        group("first_fit", 1, name="omega", sync="every_attempt", losers="requeue", requeue_s=0.05),
        group(
            "weighted_sampling",
            1,
            name="weighted",
            sync="diff_single",
            gap_s=0.1,
            cut_at_sync=False,
        ),
    )
    return with_quotas(config, reclaim_after_s=0.0, interval_s=0.05)


def evictions_by_priority() -> ArmConfig:
    """Two schedulers that take the room of others' tasks, and one that limits itself."""
    groups = (
        group(name="parsync", count=1, gap_s=0.1),
        group(name="omega", count=1, sync="every_attempt", losers="requeue", requeue_s=0.05),
    )
    preempting = (one.model_copy(update={"kind": "preempting"}) for one in groups)
    limited = group("best_fit", 1, gap_s=0.1, hold_max=0.3)
    return ArmConfig(
        name="arm", partitions=6, groups=(*preempting, limited), evictions="lower_priority"
    )


def other_protocols() -> ArmConfig:
    """A participant beside the master, queues at the machines, and locks."""
    return locking_arm(
        guest_group("lottery", {"kind": "lottery"}, None, 1),
        guest_group("queues", {"kind": "machine_queues"}, None, 1),
        locking_group(count=1, locked_partitions=2, hold_s=0.01),
    )


def on_ray() -> ArmConfig:
    """ParSync, Omega and a flow scheduler at its own speed."""
    config = mixed_cell()
    parsync, omega, flow = (one.model_copy(update={"options": {}}) for one in config.groups)
    flow = flow.model_copy(update={"decision": MeasuredTime()})
    return config.model_copy(update={"groups": (parsync, omega, flow)})


HAND_DRIVEN = {
    "mixed_cell": KeptRun(
        mixed_cell,
        failing(**SMALL, gang_permille=400, load_percent=(90, 150, 30)),
        ("DecisionDone", "DemandReply", "SyncDue", "RequeueDue"),
    ),
    "quotas_with_reclaim": KeptRun(
        quotas_with_reclaim,
        failing(**{**GROUPED, **SMALL}),
        ("QuotaRequest", "QuotaReport", "QuotaGrant"),
        ("rejected", "lost", "evicted"),
    ),
    "evictions_by_priority": KeptRun(
        evictions_by_priority,
        failing(**{**CROWDED, **SMALL, "load_percent": (150, 200, 30)}),
        ("TasksEnded",),
        ("rejected", "lost", "evicted"),
    ),
    "other_protocols": KeptRun(
        other_protocols,
        failing(**SMALL, load_percent=(60, 90, 30)),
        ("Drawn", "Reserved"),
    ),
}
ON_RAY = KeptRun(
    on_ray,
    failing(
        **{**SMALL, "machines": 16, "phase_s": 0.5, "mean_duration_s": 0.4},
        gang_permille=400,
        load_percent=(90, 150, 30),
    ),
    ("DecisionDone", "SyncDue", "RequeueDue"),
)
KEPT = {**HAND_DRIVEN, "on_ray": ON_RAY}


def spec_of(run: KeptRun, heartbeat_us: int = 1_000, sample_us: int = 50_000) -> SeededArm:
    """What the runtime runs."""
    arm = run.arm().seeded(3, heartbeat_us, sample_us, live=True)
    check_protocols(arm)
    return arm


def write(directory: Path, name: str) -> None:
    """Let a hand-driven run write its logs into an empty directory."""
    run = HAND_DRIVEN[name]
    with guests():
        write_run(directory, spec_of(run), run.make_workload())


def write_on_ray(directory: Path) -> None:
    """Let ON_RAY write its logs into an empty directory. Its cell and a scheduler host are killed
    once."""
    # Ray takes a second to import, and is not needed where logs are read
    from parsync.runtime.live.plan import LiveOptions
    from parsync.runtime.live.ray_glue.cluster import connect, disconnect
    from parsync.runtime.live.run import run_live
    from tests.ray.test_live_runs import Killer

    arm, workload = spec_of(ON_RAY, 10_000, 100_000), ON_RAY.make_workload()
    killers = Killer("cell", 400_000), Killer("schedulers-0", 700_000)

    def on_status(status: RunStatus) -> None:
        for killer in killers:
            killer(status)

    connect(None, object_store_mb=100, dashboard=False)
    with tempfile.TemporaryDirectory() as records:
        options = LiveOptions(directory, Path(records), checkpoint_bytes=4096)
        run_live(arm, workload, options, 20_000_000, metrics_of(workload, arm), on_status)
    disconnect()


def pack(name: str, directory: Path) -> None:
    """Keep the logs in a directory."""
    with tarfile.open(LIVE / f"{name}.tar.xz", "w:xz", preset=9) as archive:
        archive.add(directory, ".", filter=anonymous)


def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """A file of an archive without its time and owner."""
    return member.replace(mtime=0, uid=0, gid=0, uname="", gname="", deep=False)


@pytest.fixture
def kept(name: str, tmp_path: Path) -> Path:
    """The kept logs of a run."""
    with tarfile.open(LIVE / f"{name}.tar.xz") as archive:
        archive.extractall(tmp_path / name, filter="data")
    return tmp_path / name


def entries(path: Path, codec: Codec) -> list[object]:
    """The entries of a log, but for the times that computing a plan took."""
    found: list[object] = []
    for payload in read_journal(path):
        entry: object = payload
        if path.name != CELL_LOG:
            logged, digest = decode(payload)
            address, at_us, event = codec.decode(logged)
            if isinstance(event, DecisionDone):
                entry = address, at_us, event.decision, digest
        found.append(entry)
    return found


@pytest.mark.parametrize("name", KEPT)
def test_every_entry_of_the_kept_logs_is_handled_as_it_was(name: str, kept: Path) -> None:
    with guests():
        assembly, _ = read_assembly(kept)
        replayed = replay(kept)
        handled = {
            type(event).__name__
            for path in kept.glob("*-*.journal")
            for _, _, event in read_handled(assembly.codec, path)
        }
    assert replayed.divergence is None and replayed.gaps == ()
    assert replayed.end is not None and replayed.counts is not None and replayed.epochs == 2
    for actor, events in replayed.events.items():
        logs = [log for file, log in replayed.end.logs.items() if file.startswith(f"{actor}-")]
        assert events == sum(log.events for log in logs) > 3
    assert set(KEPT[name].handles) <= handled, "the run is empty of what it is for"
    assert all(getattr(replayed.counts, count) for count in KEPT[name].counts)


@pytest.mark.parametrize("name", HAND_DRIVEN)
def test_the_run_still_writes_the_kept_logs(name: str, kept: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    again.mkdir()
    write(again, name)
    with guests():
        codec = read_assembly(kept)[0].codec
        logs = sorted(path.name for path in kept.glob("*.journal"))
        assert logs == sorted(path.name for path in again.glob("*.journal"))
        for log in logs:
            assert entries(again / log, codec) == entries(kept / log, codec), log


if __name__ == "__main__":
    writers: dict[str, Callable[[Path], None]] = {
        name: partial(write, name=name) for name in HAND_DRIVEN
    }
    if "on_ray" in sys.argv:
        writers = {"on_ray": write_on_ray}
    for written, write_logs in writers.items():
        with tempfile.TemporaryDirectory() as directory:
            write_logs(Path(directory))
            pack(written, Path(directory))
