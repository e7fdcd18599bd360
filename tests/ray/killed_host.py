"""A live run whose first scheduler host is killed, and its replay, which makes its tables again."""

from __future__ import annotations

from pathlib import Path

from parsync.runtime.effect_interpreter import ignore
from parsync.runtime.live.liveness import RunStatus
from parsync.runtime.live.plan import LiveOptions
from parsync.runtime.live.replay import Replayed, replay
from parsync.runtime.live.run import LiveOutcome, run_live
from parsync.runtime.recomputed_tables import compare_tables
from parsync.runtime.records import merge_parts
from parsync.spec.arm import SeededArm
from parsync.workload.workload import Workload
from tests.fixtures.live_runs import metrics_of
from tests.ray.test_killed_actors import kill

HOST = "schedulers-0"


def run_with_killed_host(
    directory: Path, arm: SeededArm, workload: Workload, at_us: int
) -> tuple[LiveOutcome, Replayed]:
    """Run an arm to its end on Ray, kill the first scheduler host once, and replay the logs. The
    run must be complete and must obey every invariant.

    Args:
        directory: Receives the logs, in journal, and the records, in records.
        at_us: The time of the run at which the host is killed.
    """
    todo = [HOST]

    def killer(status: RunStatus) -> None:
        if todo and status.at_us >= at_us:
            kill(todo.pop())

    options = LiveOptions(directory / "journal", directory / "records")
    outcome = run_live(arm, workload, options, 20_000_000, metrics_of(workload, arm), killer)
    assert outcome.drained and not outcome.partial, outcome.notes
    assert not todo and outcome.epochs[HOST] == 2

    replayed = replay_with_tables(outcome, directory / "made")
    assert replayed.end is not None and replayed.end.recovered == (HOST,)
    assert replayed.tables is not None and 0 in replayed.tables.lost_agents
    assert len(replayed.tables.lost_agents) < arm.agents
    return outcome, replayed


def replay_with_tables(outcome: LiveOutcome, made: Path) -> Replayed:
    """Replay a run, whose tables must be those that the replay makes again.

    Args:
        made: A folder to create for these.
    """
    records = outcome.records_dir
    assert records is not None
    merge_parts(records, outcome.metrics.tables)
    made.mkdir()
    replayed = replay(outcome.journal_dir, ignore, records, made)  # raises InvariantViolation
    assert replayed.divergence is None and replayed.gaps == ()
    assert replayed.tables is not None
    compared = compare_tables(records, replayed.tables)
    assert compared.differences == () and {"tasks", "commits", "cell"} <= set(compared.equal)
    return replayed
