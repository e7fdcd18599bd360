"""Synthetic Record batches: small random ones for oracles, and arms of realistic shape for the
report and its figures."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsync.metrics.kinds.conflicts import OUTCOMES
from parsync.metrics.tables import TABLES
from parsync.workload.workload import Phase
from schedulers.interface import ChangeKind
from shared_state.tasks import Int64
from shared_state.transaction import Reason

SECOND = 1_000_000
Batch = tuple[str, dict[str, Any]]


PHASES = tuple(
    Phase(6 * SECOND * i, 6 * SECOND * (i + 1), load) for i, load in enumerate((50, 80, 95, 80, 50))
)


def columns_of(table: str, **given: Any) -> dict[str, Any]:
    """The columns of rows of a table: 0 in those that are not given."""
    assert given.keys() <= TABLES[table].keys()
    zero = [0] * len(next(iter(given.values())))
    return {name: given.get(name, zero) for name in TABLES[table]}


@dataclass
class Recorded:
    """What an arm recorded, batch by batch, and the job of each task."""

    batches: list[Batch] = field(default_factory=list)
    job_of: Int64 = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def services(self) -> NDArray[np.bool_]:
        """Which tasks are of a service: those of every third job."""
        return self.job_of % 3 == 0

    @property
    def run_us(self) -> Int64:
        """What the workload says of the run times of tasks, which the records need not keep to."""
        return 100_000 * (1 + np.arange(len(self.job_of)) % 7)

    def add(self, table: str, **columns: Any) -> None:
        self.batches.append((table, columns_of(table, **columns)))

    def rows(self, table: str) -> list[dict[str, int]]:
        """All rows of a table as dictionaries, for slow oracles."""
        rows = []
        for name, columns in self.batches:
            if name == table:
                lists = {key: np.asarray(column).tolist() for key, column in columns.items()}
                rows += [
                    dict(zip(lists, values, strict=True))
                    for values in zip(*lists.values(), strict=True)
                ]
        return rows


def random_records(seed: int, agents: int, partitions: int, tasks: int, end_us: int) -> Recorded:
    """Anything that can happen, with no attention to plausible sizes: censored tasks, evictions,
    second commits, every reason.

    Batches are in random order, as those of several actors would be.
    """
    rng = np.random.default_rng(seed)
    made = Recorded()
    jobs = max(tasks // 3, 1)
    made.job_of = rng.integers(0, jobs, tasks)
    made.job_of[rng.random(tasks) < 0.1] = -1
    made.job_of[:jobs] = np.arange(jobs)  # no empty job
    agent_of_job = rng.integers(0, agents, jobs)
    submit_of_job = rng.integers(0, end_us, jobs)
    prefers = (rng.random(tasks) < 0.7).astype(int)
    for job in range(jobs):
        members = np.flatnonzero(made.job_of == job)
        made.add(
            "submissions",
            agent=[int(agent_of_job[job])],
            job=[job],
            submit_us=[int(submit_of_job[job])],
            tasks=[len(members)],
            prefers=[int(prefers[members].sum())],
        )
    for task in range(tasks):
        job = int(made.job_of[task])
        if job < 0 or rng.random() < 0.2:
            continue
        at_us = int(submit_of_job[job] + rng.integers(0, end_us // 2))
        for placement in range(int(rng.choice([1, 1, 1, 1, 2, 3]))):
            made.add(
                "tasks",
                task=[task],
                job=[job],
                agent=[int(agent_of_job[job])],
                machine=[int(rng.integers(0, 50))],
                submit_us=[int(submit_of_job[job])],
                commit_us=[at_us],
                start_us=[at_us],
                attempts=[int(rng.integers(1, 5))],
                first=[int(placement == 0)],
                prefers=[int(prefers[task])],
                preferred=[int(prefers[task] * (rng.random() < 0.5))],
                cost=[int(rng.integers(0, 1 << 40))],
                age_us=[int(rng.integers(0, 600_000))],
            )
            at_us += int(rng.integers(1, end_us))
            change = (
                ChangeKind.FINISHED
                if rng.random() < 0.6
                else rng.choice([ChangeKind.EVICTED, ChangeKind.LOST])
            )
            due = int(change == ChangeKind.FINISHED and rng.random() < 0.4)
            if due and rng.random() < 0.5:
                break  # runs for ever
            made.add(
                "ends",
                task=[task],
                agent=[int(agent_of_job[job])],
                end_us=[at_us + due * 10 * end_us],  # beyond all that happened
                change=[int(change)],
                due=[due],
            )
            if change == ChangeKind.FINISHED:
                break
            at_us += int(rng.integers(1, 1000))
    for sequence in range(tasks // 2):
        outcome = rng.integers(0, 4, len(OUTCOMES))
        outcome[rng.random(len(outcome)) < 0.5] = 0
        commit_us = int(rng.integers(0, 2 * end_us))
        agent = int(rng.integers(0, agents))
        made.add(
            "commits",
            agent=[agent],
            sequence=[sequence],
            start_us=[commit_us - 10],
            commit_us=[commit_us],
            decision_us=[int(rng.integers(0, 10_000))],
            claims=[int(outcome.sum())],
            **{name: [int(n)] for name, n in zip(OUTCOMES, outcome, strict=True)},
        )
        rejected = np.repeat(np.arange(1, len(OUTCOMES)), outcome[1:]).tolist()
        if rejected:
            made.add(
                "rejections",
                agent=[agent] * len(rejected),
                sequence=[sequence] * len(rejected),
                reason=rejected,
                rival=rng.integers(-1, agents, len(rejected)).tolist(),
                age_us=rng.integers(0, 600_000, len(rejected)).tolist(),
                rejected_us=[commit_us] * len(rejected),
                at_us=[commit_us] * len(rejected),
            )
        made.add(
            "syncs",
            agent=[agent],
            partition=[int(rng.integers(0, partitions))],
            at_us=[commit_us],
            age_us=[int(rng.integers(0, 600_000))],
            rows=[int(rng.integers(0, 1000))],
        )
        if rng.random() < 0.1:
            abandoned = int(rng.integers(0, 2))
            task = [sequence * 7 % tasks]
            of_it = {"agent": [agent], "at_us": [commit_us], "abandoned": [abandoned]}
            made.add("unplaceable", task=task, **of_it)
    order = rng.permutation(len(made.batches))
    made.batches = [made.batches[i] for i in order]
    busy = np.zeros(agents, np.int64)
    for at_us in range(0, 2 * end_us, max(end_us // 20, 1)):
        busy += rng.integers(0, end_us // 20 + 1, agents)
        made.add(
            "cell",
            at_us=[at_us],
            running=[5],
            machines_up=[50],
            used_permille=[int(rng.integers(0, 1000))],
        )
        made.add(
            "agents",
            at_us=[at_us] * agents,
            agent=list(range(agents)),
            queued=rng.integers(0, 100, agents).tolist(),
            latency_first=rng.integers(0, 2, agents).tolist(),
            busy_us=busy.copy(),
            wasted_us=busy // 3,
        )
    return made


@dataclass(frozen=True)
class Character:
    """How a synthetic arm behaves: decision capacity over the needed one, conflict level, quality
    and staleness."""

    capacity: float
    conflicts: float
    preferred: float
    gap_us: int
    flow_agents: int = 0


def arm_records(
    seed: int,
    character: Character,
    agents: int,
    partitions: int,
    step_us: int,
    rate_per_s: int = 1000,
) -> Recorded:
    """An arm over PHASES: a fluid queue per scheduler, conflicts that grow with load and age,
    quality that falls with load.

    step_us: one batch and one sample per scheduler and step; divides a second. rate_per_s: tasks
    submitted per second at 100 % load, over all schedulers.
    """
    rng = np.random.default_rng(seed)
    made = Recorded()
    jobs_of: list[Int64] = []
    task = job = 0
    queue = np.zeros(agents)
    busy_us, wasted_us = np.zeros(agents, np.int64), np.zeros(agents, np.int64)
    load_now = 0.5
    for at_us in range(0, PHASES[-1].end_us, step_us):
        load = (
            next(phase.load_percent for phase in PHASES if phase.start_us <= at_us < phase.end_us)
            / 100
        )
        # the cell fills with the tasks' time constant
        load_now += (load - load_now) * step_us / (2 * SECOND)
        pressure = character.conflicts * load_now**3
        for agent in range(agents):
            count = int(rng.poisson(rate_per_s * load * step_us / SECOND / agents))
            served = character.capacity * rate_per_s * step_us / SECOND / agents * (1 - pressure)
            queue[agent] = max(queue[agent] + count - served, 0)
            wait_us = queue[agent] / served * step_us
            if count == 0:
                continue
            ids = np.arange(task, task + count)
            jobs_of.append(np.full(count, job))
            prefers = (rng.random(count) < 0.8).astype(np.int8)
            submit = np.full(count, at_us + int(rng.integers(0, step_us)))
            delay = (wait_us + rng.lognormal(9.5, 0.7, count) * (1 + 3 * pressure)).astype(np.int64)
            commit = submit + delay
            age = rng.integers(0, character.gap_us, count)
            share = character.preferred * (1 - 0.45 * load_now**4)
            preferred = (prefers == 1) & (rng.random(count) < share)
            made.add(
                "submissions",
                agent=[agent],
                job=[job],
                submit_us=submit[:1],
                tasks=[count],
                prefers=[int(prefers.sum())],
            )
            done = commit < PHASES[-1].end_us + SECOND // 2
            made.add(
                "tasks",
                task=ids[done],
                job=np.full(count, job)[done],
                agent=np.full(count, agent)[done],
                machine=rng.integers(0, 2000, count)[done],
                submit_us=submit[done],
                commit_us=commit[done],
                start_us=commit[done],
                attempts=rng.geometric(1 - min(pressure, 0.9), count)[done],
                first=np.ones(count, np.int8)[done],
                prefers=prefers[done],
                preferred=preferred.astype(np.int8)[done],
                cost=np.where(preferred, 10, 100)[done],
                age_us=age[done],
            )
            run_us = (rng.lognormal(14, 0.8, count) * np.where(preferred, 0.7, 1)).astype(np.int64)
            ended = done & (commit + run_us < PHASES[-1].end_us + SECOND // 2)
            made.add(
                "ends",
                task=ids[ended],
                agent=np.full(int(ended.sum()), agent),
                end_us=(commit + run_us)[ended],
                change=np.full(int(ended.sum()), ChangeKind.FINISHED),
            )
            lost_age = rng.integers(0, character.gap_us, rng.poisson(count * pressure))
            lost_age = lost_age[rng.random(len(lost_age)) < lost_age / character.gap_us]
            lost = len(lost_age)
            decision_us = int(step_us * min(1.0, (count + lost) / max(served, 1e-9)))
            busy_us[agent] += decision_us
            wasted_us[agent] += decision_us * bool(lost)
            made.add(
                "commits",
                agent=[agent],
                sequence=[at_us // step_us + 1],
                start_us=[int(commit[0]) - decision_us],
                commit_us=[int(commit[0])],
                decision_us=[decision_us],
                ranking=[1],
                claims=[count + lost],
                accepted=[count],
                full=[lost],
            )
            if lost:
                made.add(
                    "rejections",
                    task=ids[:1].repeat(lost),
                    agent=np.full(lost, agent),
                    sequence=np.full(lost, at_us // step_us + 1),
                    reason=np.full(lost, Reason.FULL),
                    rival=(agent + rng.integers(1, agents, lost)) % agents,
                    age_us=lost_age,
                    rejected_us=np.full(lost, int(commit[0])),
                    at_us=np.full(lost, int(commit[0])),
                )
            task += count
            job += 1
        if at_us % (2 * step_us) == 0:
            made.add(
                "cell",
                at_us=[at_us],
                running=[int(20_000 * load_now)],
                machines_up=[2000],
                used_permille=[int(1000 * min(load_now + rng.normal(0, 0.005), 1))],
            )
            made.add(
                "agents",
                at_us=[at_us] * agents,
                agent=list(range(agents)),
                queued=queue.astype(np.int64),
                ema_us=(queue * 1000).astype(np.int64),
                latency_first=(queue > 50).astype(np.int8),
                busy_us=busy_us.copy(),
                wasted_us=wasted_us.copy(),
                staleness_us=np.full(agents, character.gap_us // 2),
            )
        if at_us % (2 * step_us) == 0:
            made.add(
                "syncs",
                agent=np.repeat(np.arange(agents), partitions),
                partition=np.tile(np.arange(partitions), agents),
                at_us=np.full(agents * partitions, at_us),
                age_us=np.full(agents * partitions, character.gap_us)
                + rng.integers(0, 5000, agents * partitions),
                rows=rng.integers(0, 250, agents * partitions),
            )
            for agent in range(agents - character.flow_agents, agents):
                solve = int(rng.lognormal(9, 0.5) * (1 + load_now))
                made.add(
                    "rounds",
                    at_us=[at_us],
                    agent=[agent],
                    tasks=[200],
                    graph_us=[solve // 3],
                    solve_us=[solve],
                    extract_us=[solve // 5],
                    arcs_scanned=[10 * solve],
                    nodes=[2500],
                    arcs=[12_000],
                    oversubscribed=[solve % 3],
                    repaired=[solve % 2],
                    held_back=[0],
                    unrouted=[solve % 5],
                )
    made.job_of = np.concatenate(jobs_of)
    return made


CHARACTERS: dict[str, Character] = {
    "StateSync aligned quality-first": Character(1.05, 0.35, 0.97, 200_000),
    "StateSync staggered quality-first": Character(1.15, 0.25, 0.97, 200_000),
    "ParSync quality-first": Character(1.25, 0.2, 0.95, 200_000),
    "ParSync adaptive": Character(1.6, 0.12, 0.9, 200_000),
    "Flow": Character(1.3, 0.02, 0.99, 200_000, 8),
    "Mix": Character(1.5, 0.15, 0.92, 200_000, 1),
}
