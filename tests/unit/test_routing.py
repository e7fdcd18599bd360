"""Which agent gets which job."""

import numpy as np
import pytest

from parsync.core.arrivals import Route, route_jobs
from shared_state.errors import AgoraError
from shared_state.tasks import TaskClass


def jobs_of(count: int, batches_each: int) -> tuple[np.ndarray, np.ndarray]:
    job = np.repeat(np.arange(count, dtype=np.int64) * 7 + 3, batches_each)
    return job, np.zeros(len(job), np.int8)


def test_a_job_stays_with_one_agent_and_agents_take_turns() -> None:
    job, task_class = jobs_of(1000, 3)
    agent = route_jobs([Route("all", 0, 8, 1000, None)], job, task_class, seed=5)
    assert all(len(set(agent[job == j])) == 1 for j in job[:60])
    assert np.bincount(agent[::3], minlength=8).tolist() == [125] * 8
    assert agent[::3][:8].tolist() == list(range(8))


def test_shares_are_met_by_hash_and_depend_on_the_seed() -> None:
    job, task_class = jobs_of(20_000, 1)
    routes = [Route("greedy", 0, 8, 750, None), Route("flow", 8, 1, 250, None)]
    agent = route_jobs(routes, job, task_class, seed=5)
    assert np.mean(agent == 8) == pytest.approx(0.25, abs=0.01)
    assert np.array_equal(agent, route_jobs(routes, job, task_class, seed=5))
    assert not np.array_equal(agent, route_jobs(routes, job, task_class, seed=6))


def test_a_jobs_group_does_not_depend_on_what_else_arrives() -> None:
    job, task_class = jobs_of(500, 1)
    routes = [Route("greedy", 0, 1, 750, None), Route("flow", 1, 1, 250, None)]
    agent = route_jobs(routes, job, task_class, seed=5)
    assert np.array_equal(agent[100:], route_jobs(routes, job[100:], task_class[100:], seed=5))


def test_classes_go_to_their_groups() -> None:
    job, task_class = jobs_of(300, 1)
    task_class[::3] = TaskClass.SERVICE
    routes = [
        Route("services", 0, 2, 1000, TaskClass.SERVICE),
        Route("batch", 2, 4, 1000, TaskClass.BATCH),
    ]
    agent = route_jobs(routes, job, task_class, seed=1)
    assert set(agent[task_class == TaskClass.SERVICE]) == {0, 1}
    assert set(agent[task_class == TaskClass.BATCH]) == {2, 3, 4, 5}


def test_shares_that_do_not_sum_are_refused() -> None:
    job, task_class = jobs_of(10, 1)
    with pytest.raises(AgoraError, match=r"batch jobs sum to 0\.9"):
        route_jobs([Route("a", 0, 1, 900, None)], job, task_class, seed=1)
    with pytest.raises(AgoraError, match="batch jobs sum to 0,"):
        route_jobs([Route("a", 0, 1, 1000, TaskClass.SERVICE)], job, task_class, seed=1)


def test_nothing_to_route() -> None:
    assert len(route_jobs([], np.zeros(0, np.int64), np.zeros(0, np.int8), seed=1)) == 0
