"""Resamples of a trace: jobs or blocks of time are drawn again, whole, and the rest stays."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from experiments.workloads.building import arriving_tasks, equal_machines
from experiments.workloads.inspection import digest, offered_permille
from experiments.workloads.registry import get as kind_of
from experiments.workloads.registry import kinds
from experiments.workloads.resampling import ResampleOptions, resampled, seeds_of_trace
from parsync.workload.checks import validate
from parsync.workload.workload import InitialPlacement, MachineEvents, QuotaMembership, Workload
from shared_state.errors import AgoraError
from shared_state.tasks import NO_GANG

SECOND = 1_000_000
JOBS = ResampleOptions(resample="jobs")
BLOCKS = ResampleOptions(resample="blocks", block_s=10)


def trace() -> Workload:
    """Forty jobs in 400 s. Job k comes at 10 k - 9 + k % 7 s, with k % 3 + 1 tasks there and, if
    k is even, two more 15 s later; those of every fifth job are a gang. Jobs 1 and 2 are there at
    0: a task of job 1 runs, the others wait."""
    rows: list[tuple[int, int, int]] = []  # job, submit, run time
    for k in range(1, 41):
        at = (10 * k - 9 + k % 7) * SECOND if k > 2 else 0
        rows += [(k, at, (k + j) * SECOND) for j in range(k % 3 + 1)]
        if k % 2 == 0:
            rows += [(k, at + 15 * SECOND, (50 + k) * SECOND)] * 2
    job, submit, run = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    cell = equal_machines(10, {"slots": 20})
    made = arriving_tasks("small", cell, submit, run, {"slots": run % 3 + 1}, job, 400 * SECOND)
    tasks = made.tasks
    gang = np.where(tasks.job % 5 == 4, 1000 + tasks.job + tasks.submit_us, NO_GANG)
    # The first task of job 1 has run since before the trace.
    assert tasks.job[0] == 0 and made.arrival_offsets[1] > 1
    offsets = made.arrival_offsets.copy()
    offsets[1:] -= 1
    return replace(
        made,
        tasks=replace(tasks, gang=gang, priority=(tasks.job % 4).astype(np.int32)),
        arrival_offsets=offsets,
        arrival_rows=made.arrival_rows[1:],
        initial=InitialPlacement(np.zeros(1, np.int64), np.array([3], np.int32)),
        machine_events=MachineEvents(
            np.array([SECOND], np.int64), np.array([2], np.int32), np.array([False])
        ),
        quotas=QuotaMembership(("a", "b"), (tasks.job % 2).astype(np.int32)),
    )


TRACE = trace()


def bodies(workload: Workload) -> list[tuple[int, int, tuple[object, ...]]]:
    """Each job: its first arrival, its number, and all that its tasks are, relative to it."""
    tasks, found = workload.tasks, []
    assert workload.quotas is not None
    for job in np.unique(tasks.job).tolist():
        of = np.flatnonzero(tasks.job == job)
        begin = int(tasks.submit_us[of].min())
        gangs = {gang: k for k, gang in enumerate(dict.fromkeys(tasks.gang[of].tolist()))}
        body = tuple(
            (
                int(tasks.submit_us[row]) - begin,
                int(workload.duration_us[row]),
                *tasks.request[row].tolist(),
                int(tasks.priority[row]),
                tasks.gang[row] != NO_GANG and gangs[tasks.gang[row]],
                int(workload.quotas.group[row]),
            )
            for row in of.tolist()
        )
        found.append((begin, job, body))
    return found


def starting(workload: Workload) -> list[tuple[object, ...]]:
    return [body for begin, _, body in bodies(workload) if begin == 0]


@pytest.mark.parametrize("options", [JOBS, BLOCKS], ids=["jobs", "blocks"])
def test_jobs_are_drawn_whole_and_the_rest_stays(options: ResampleOptions) -> None:
    known = {body for _, _, body in bodies(TRACE)}
    for seed in range(20):
        made = resampled(TRACE, options, seed)
        validate(made)
        assert made.cell is TRACE.cell and made.machine_events is TRACE.machine_events
        assert made.initial.task.tolist() == [0] and made.initial.machine.tolist() == [3]
        assert sorted(starting(made)) == sorted(starting(TRACE))
        jobs = bodies(made)
        assert [job for _, job, _ in jobs] == list(range(len(jobs)))  # dense
        for begin, _, body in jobs:
            # whole, or without the batch that would come after the end
            cut = {one for one in known if one[: len(body)] == body}
            assert body in known or (cut and begin + 15 * SECOND >= TRACE.end_us)
        gangs = made.tasks.gang[made.tasks.gang != NO_GANG]
        by_gang = {gang: set(made.tasks.job[made.tasks.gang == gang]) for gang in gangs.tolist()}
        assert all(len(jobs_of) == 1 for jobs_of in by_gang.values())
        assert sorted(by_gang) == list(range(len(by_gang)))


def test_jobs_keep_the_times_at_which_jobs_arrive() -> None:
    at = [begin for begin, _, _ in bodies(TRACE)]
    drawn = Counter[tuple[object, ...]]()
    for seed in range(50):
        made = resampled(TRACE, JOBS, seed)
        assert sorted(begin for begin, _, _ in bodies(made)) == sorted(at)
        drawn.update(body for begin, _, body in bodies(made) if 0 < begin < 380 * SECOND)
    whole = {body for begin, _, body in bodies(TRACE) if begin}
    assert whole <= set(drawn)  # any job may be drawn
    assert made.facts["resample_jobs"] == 38


def test_blocks_move_by_whole_blocks() -> None:
    origin = {body: begin for begin, _, body in bodies(TRACE) if begin}
    made = resampled(TRACE, BLOCKS, 4)
    moves = {begin - origin[body] for begin, _, body in bodies(made) if begin and body in origin}
    assert len(moves) > 5 and all(move % (10 * SECOND) == 0 for move in moves)
    assert made.facts["resample_blocks"] == 40 and made.facts["resample_block_s"] == 10
    # A block takes the place of another with all that begins in it.
    uneven = resampled(TRACE, ResampleOptions(resample="blocks", block_s=31), 4)
    assert uneven.facts["resample_blocks"] == 13


@pytest.mark.parametrize("options", [JOBS, BLOCKS], ids=["jobs", "blocks"])
def test_the_seed_decides_and_the_mean_load_is_that_of_the_trace(options: ResampleOptions) -> None:
    made = [resampled(TRACE, options, seed) for seed in range(300)]
    assert digest(made[5]) == digest(resampled(TRACE, options, 5))
    assert len({digest(one) for one in made}) == 300
    loads = np.array([offered_permille(one) for one in made])
    assert loads.std() > 5
    mean, error = loads.mean(), loads.std() / np.sqrt(len(made))
    # A job that is drawn for a later place may reach less far into the run.
    assert abs(mean - offered_permille(TRACE)) < 4 * error + 0.03 * mean
    for one, load in zip(made, loads, strict=True):
        assert one.facts["offered_percent_of_resample"] == load / 10
        assert one.facts["offered_percent_of_trace"] == offered_permille(TRACE) / 10


def test_the_offered_load_is_counted_inside_the_run() -> None:
    cell = equal_machines(2, {"cpu": 10, "mem": 100})
    request = {"cpu": [5, 2, 1], "mem": [10, 20, 30]}
    made = arriving_tasks("own", cell, [0, 50, 60], [10, 20, -1], request, end_us=100)
    # cpu: 5 x 10 + 2 x 20 + 1 x 40 of 20 x 100; mem: 100 + 400 + 1200 of 200 x 100
    assert offered_permille(made) == 85
    assert offered_permille(replace(made, duration_us=np.array([10, 1000, -1]))) == 115


def test_too_little_to_draw_from_is_refused_in_a_line() -> None:
    with pytest.raises(AgoraError, match="expected at least 10 blocks of 45 s, got 9"):
        resampled(TRACE, ResampleOptions(resample="blocks", block_s=45), 1)
    few = arriving_tasks("few", equal_machines(1, {"slots": 1}), [1, 2], [1, 1], {"slots": [1, 1]})
    with pytest.raises(AgoraError, match="expected at least 10 jobs that arrive after the st"):
        resampled(few, JOBS, 1)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"resample": "weeks"}, "resample"),
        ({"resample": "blocks"}, "block_s: expected with resample 'blocks'"),
        ({"resample": "jobs", "block_s": 3}, "block_s: only with resample 'blocks'"),
        ({"block_s": 3}, "block_s: only with resample 'blocks'"),
    ],
    ids=str,
)
def test_options_that_do_not_fit_are_refused(options: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ResampleOptions.model_validate(options)


def test_nothing_changes_without_the_option() -> None:
    assert resampled(TRACE, ResampleOptions(), 1) is TRACE
    assert seeds_of_trace(ResampleOptions()).startswith("The trace is the same under every seed.")


def test_every_kind_says_what_seeds_vary() -> None:
    required = {"google2011": {"directory": "x"}}
    for kind in ("google2011", "service_batch", "synthetic"):
        assert kind in kinds()
        spec = kind_of(kind)
        assert "seed draws" in spec.seeds_vary(spec.parse_options(required.get(kind, {})))
    trace_kind = kind_of("google2011")
    options = {"directory": "x", "resample": "blocks", "block_s": 5.0}
    said = trace_kind.seeds_vary(trace_kind.parse_options(options))
    assert "blocks of about 5 s" in said and "not about other hours or weeks" in said
    assert "where input data lie" in said
