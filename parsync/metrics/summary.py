"""The figures a run is judged by, made of the counts in metrics.py.

Every figure is JSON-ready: an int, a float, or None where there is nothing to rest it on (never
NaN). Definitions:

- delay: commit minus submission of a task's first commit. `censored` tasks were submitted and not
  committed by the end of the run; quantiles are over all submitted tasks with the censored ones
  beyond every value (None if the quantile is one of them), the mean over committed ones.
- at_least: figures that leave out what did not get there, with it charged until the run was last
  seen: lower bounds, by the figure's name. The mean and quantiles of the delay where more than
  NEGLIGIBLE of the tasks are censored (then the scope is also `incomplete`); jsd_mean_us and
  jct_mean_us where more than NEGLIGIBLE of the jobs were not all committed, or could have ended and
  did not. A figure with a bound is no match for one without.
- throughput_per_s: first commits in a window / its length, but for tasks that waited at the start
  (metrics.py).
- conflict_rate: claims rejected as stale, full or evicted / claims submitted; gang_rate and
  machine_down_rate apart. conflict_fraction: Omega's failed / successful transactions, a
  transaction with any conflict counting as failed.
- preferred_share: first commits on a preferred machine / submitted tasks with preferences, censored
  ones included; preferred_time_share: of the time such tasks ran, the share on a preferred machine.
- the values that RunMetrics was given: what first commits got over what there was to get.
- unplaceable, abandoned: tasks larger than every machine, and those given up; they are among the
  censored.
- jsd, jct, stet (ParSync section 6.4): submission of a job to its last first commit; to its last
  end; summed execution times of its tasks. Means over the jobs that got there, counted in
  jobs_committed and jobs_finished beside jobs.
- busy_useful_share, busy_wasted_share (Omega's busyness): decision time / time, per scheduler;
  wasted: rounds with a conflict.
- staleness: age of a partition in a view. staleness_mean_us is its average over time (it grows from
  0 to its age at the next sync).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from parsync.metrics import histogram
from parsync.metrics.jobs import JobTotals
from parsync.metrics.run_metrics import BY_END, COUNTERS, SERIES, RunMetrics
from shared_state.tasks import Int64

Figures = dict[str, Any]

NEGLIGIBLE = 0.001  # of the tasks or jobs: so few may be missing from a mean
DELAY_PERCENTILES = (50, 90, 99)


def summarise(metrics: RunMetrics) -> Figures:
    """All figures: `overall` and `phases` (counting windows only), `groups`, `agents`, `totals`
    (the whole run), `start` and matrices.

    start: delay and quality of the tasks submitted at time 0, if no window holds that; None if
    there are none.

    Phases carry start_us, end_us and load_percent beside their figures; groups and agents their
    `name` or `agent`.
    """
    metrics.flush()
    jobs = metrics.jobs.totals(metrics.last_us) if metrics.jobs is not None else None
    scopes = _Scopes(metrics, jobs)
    everyone = list(range(metrics.agents))
    windows = list(range(len(metrics.phases)))
    return {
        "overall": scopes.figures(everyone, windows),
        "phases": scopes.phases(everyone),
        "groups": [
            {
                "name": group.name,
                "agents": list(group.agents),
                "overall": scopes.figures(group.agents, windows),
                "phases": scopes.phases(group.agents),
            }
            for group in metrics.groups
        ],
        "agents": [{"agent": agent, **scopes.figures([agent], windows)} for agent in everyone],
        "totals": _totals(metrics),
        "start": scopes.start(everyone),
        "rivals": metrics.rivals.tolist(),
        "staleness": _staleness(metrics),
    }


def series(metrics: RunMetrics) -> dict[str, NDArray[Any]]:
    """What the figures are drawn from, as arrays (saved beside the summary).

    bucket_us: int64[1]; SERIES: int64[agents, buckets]; group_of: int64[agents]; delay_value_us,
    delay_share: the distribution of delays;
    ages: int64[groups, Outcome, histogram buckets]; cell_*, agents_*, rounds_*: the columns of
    those tables.
    """
    metrics.flush()
    used = metrics.series.counts.any(axis=(0, 1))
    buckets = int(np.flatnonzero(used)[-1]) + 1 if used.any() else 0
    arrays: dict[str, NDArray[Any]] = {
        name: metrics.series.counts[number, :, :buckets] for number, name in enumerate(SERIES)
    }
    arrays["bucket_us"] = np.array([metrics.series.bucket_us])
    counted = metrics.delays[:, : len(metrics.phases)].sum(axis=(0, 1))
    censored = _censored(metrics, range(metrics.agents), range(len(metrics.phases)))
    value, share = histogram.distribution(counted, censored or 0)
    arrays["delay_value_us"], arrays["delay_share"] = np.array(value), np.array(share)
    arrays["ages"] = metrics.ages
    arrays["group_of"] = np.zeros(metrics.agents, np.int64)
    for number, group in enumerate(metrics.groups):
        arrays["group_of"][list(group.agents)] = number
    for table in ("cell", "agents", "rounds"):
        for name, column in metrics.samples(table).items():
            arrays[f"{table}_{name}"] = column
    return arrays


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _growth(counter: Int64) -> Int64:
    """By how much a counter grew from sample to sample. One that fell began anew: its agent was
    restarted."""
    grown: Int64 = np.diff(counter)
    return np.where(grown < 0, counter[1:], grown)


def _is_much(missing: int, of: int) -> bool:
    return missing > NEGLIGIBLE * of


def _sum(counts: NDArray[Any], agents: Sequence[int], slots: Sequence[int]) -> int:
    return int(counts[np.ix_(list(agents), list(slots))].sum())


def _censored(metrics: RunMetrics, agents: Sequence[int], slots: Sequence[int]) -> int | None:
    """Submitted and not committed; None where nobody recorded submissions."""
    if not metrics.count["submitted"].any():
        return None
    submitted = _sum(metrics.count["submitted"], agents, slots)
    return max(submitted - _sum(metrics.count["committed"], agents, slots), 0)


class _Scopes:
    """Figures of any set of agents over any set of windows."""

    def __init__(self, metrics: RunMetrics, jobs: JobTotals | None) -> None:
        self._metrics = metrics
        self._jobs = jobs
        self._cell = metrics.samples("cell")
        self._agents = metrics.samples("agents")
        self._rounds = metrics.samples("rounds")
        self._slot_of = {
            name: metrics.slot_of(rows["at_us"]) if rows else np.zeros(0, np.intp)
            for name, rows in (
                ("cell", self._cell),
                ("agents", self._agents),
                ("rounds", self._rounds),
            )
        }

    def phases(self, agents: Sequence[int]) -> list[Figures]:
        return [
            {
                "start_us": start_us,
                "end_us": end_us,
                "load_percent": load_percent,
                **self.figures(agents, [number]),
            }
            for number, (start_us, end_us, load_percent) in enumerate(self._metrics.phases)
        ]

    def start(self, agents: Sequence[int]) -> Figures | None:
        slots = [self._metrics.start]
        count = {name: _sum(counts, agents, slots) for name, counts in self._metrics.count.items()}
        if not count["submitted"]:
            return None
        return {**self._delays(count, agents, slots), **self._quality(count)}

    def figures(self, agents: Sequence[int], slots: Sequence[int]) -> Figures:
        count = {name: _sum(counts, agents, slots) for name, counts in self._metrics.count.items()}
        jobs = self._job_figures(agents, slots)
        delays = self._delays(count, agents, slots)
        return {
            **delays,
            **self._conflicts(count),
            **self._quality(count),
            **self._values(agents, slots),
            **self._load(count, agents, slots),
            **jobs,
            **self._solver(agents, slots),
            "at_least": delays["at_least"] | jobs.get("at_least", {}),
        }

    def _delays(
        self, count: dict[str, int], agents: Sequence[int], slots: Sequence[int]
    ) -> Figures:
        censored = _censored(self._metrics, agents, slots)
        delays = self._metrics.delays[np.ix_(list(agents), list(slots))].sum(axis=(0, 1))
        filled = np.flatnonzero(delays)
        figures: Figures = {
            "submitted": count["submitted"] if censored is not None else None,
            "committed": count["committed"],
            "censored": censored,
            "delay_mean_us": _ratio(count["delay_us"], count["committed"]),
            "delay_max_us": float(histogram.MIDDLE[filled[-1]])
            if len(filled) and not censored
            else None,
            "attempts_mean": _ratio(count["attempts"], count["committed"]),
        }
        for percent in DELAY_PERCENTILES:
            figures[f"delay_p{percent}_us"] = histogram.quantile(
                delays, percent / 100, censored or 0
            )
        figures["incomplete"] = _is_much(censored or 0, count["submitted"])
        figures["at_least"] = (
            self._delays_at_least(count, delays, agents, slots) if figures["incomplete"] else {}
        )
        return figures

    def _delays_at_least(
        self, count: dict[str, int], delays: Int64, agents: Sequence[int], slots: Sequence[int]
    ) -> Figures:
        """With the censored tasks charged until the run was last seen."""
        tasks, waited_us = self._metrics.waiting(agents, slots)
        charged = delays.copy()
        np.add.at(charged, histogram.bucket_of(waited_us), tasks)
        mean_us = _ratio(
            count["delay_us"] + int(tasks @ waited_us), count["committed"] + int(tasks.sum())
        )
        quantiles = {
            f"delay_p{percent}_us": histogram.quantile(charged, percent / 100)
            for percent in DELAY_PERCENTILES
        }
        return {"delay_mean_us": mean_us, **quantiles}

    def _conflicts(self, count: dict[str, int]) -> Figures:
        claims = count["claims"]
        conflicts = count["stale"] + count["full"] + count["evicted"]
        failed = count["conflicted_transactions"]
        return {
            "transactions": count["transactions"],
            "claims": claims,
            "accepted": count["accepted"],
            "conflicts": conflicts,
            "conflict_rate": _ratio(conflicts, claims),
            "conflict_fraction": _ratio(failed, count["transactions"] - failed),
            "age_mean_us": _ratio(count["age_us"], count["aged_claims"]),
            **{
                name: count[name]
                for name in ("stale", "full", "evicted", "gang", "machine_down", "duplicate")
            },
            "gang_rate": _ratio(count["gang"], claims),
            "machine_down_rate": _ratio(count["machine_down"], claims),
        }

    def _quality(self, count: dict[str, int]) -> Figures:
        return {
            "submitted_prefers": count["submitted_prefers"],
            "preferred": count["preferred"],
            "preferred_share": _ratio(count["preferred"], count["submitted_prefers"]),
            "cost_mean": _ratio(count["cost"], count["committed"]),
        }

    def _values(self, agents: Sequence[int], slots: Sequence[int]) -> Figures:
        return {
            name: _ratio(_sum(got, agents, slots), _sum(whole, agents, slots))
            for name, (got, whole) in self._metrics.value.items()
        }

    def _load(self, count: dict[str, int], agents: Sequence[int], slots: Sequence[int]) -> Figures:
        window_us = self._metrics.window_us(slots)
        figures: Figures = {
            "throughput_per_s": _ratio(count["first_commits"] * 1e6, window_us),
            **{name: count[name] for name in BY_END},
            "utilisation_mean": None,
            "utilisation_max": None,
        }
        at = np.isin(self._slot_of["cell"], list(slots))
        if at.any():
            used = self._cell["used_permille"][at]
            figures["utilisation_mean"] = float(used.mean()) / 1000
            figures["utilisation_max"] = int(used.max()) / 1000
        return {**figures, **self._samples(agents, slots)}

    def _samples(self, agents: Sequence[int], slots: Sequence[int]) -> Figures:
        queued_mean = queued_end = elapsed_us = busy_us = wasted_us = latency_first = rows = 0.0
        queued_max = 0.0
        for agent in agents:
            mine = self._agents["agent"] == agent if self._agents else np.zeros(0, bool)
            slot = self._slot_of["agents"][mine]
            inside = np.isin(slot, list(slots))
            if not inside.any():
                continue
            queued = self._agents["queued"][mine]
            queued_mean += float(queued[inside].mean())
            queued_end += int(queued[inside][-1])
            queued_max = max(queued_max, int(queued[inside].max()))
            latency_first += int(self._agents["latency_first"][mine][inside].sum())
            rows += int(inside.sum())
            paired = inside[1:] & (slot[1:] == slot[:-1])
            elapsed_us += int(np.diff(self._agents["at_us"][mine])[paired].sum())
            busy_us += int(_growth(self._agents["busy_us"][mine])[paired].sum())
            wasted_us += int(_growth(self._agents["wasted_us"][mine])[paired].sum())
        return {
            "backlog_mean": queued_mean if rows else None,
            "backlog_end": queued_end if rows else None,
            "backlog_max_per_scheduler": queued_max if rows else None,
            "latency_first_share": _ratio(latency_first, rows),
            "busy_useful_share": _ratio(busy_us - wasted_us, elapsed_us),
            "busy_wasted_share": _ratio(wasted_us, elapsed_us),
        }

    def _job_figures(self, agents: Sequence[int], slots: Sequence[int]) -> Figures:
        if self._jobs is None:
            return {}
        sums = {
            field.name: _sum(getattr(self._jobs, field.name), agents, slots)
            for field in dataclasses.fields(self._jobs)
        }
        jobs, ending, committed, finished = (
            sums[name] for name in ("jobs", "ending", "committed", "finished")
        )
        at_least = {}
        if _is_much(jobs - committed, jobs):
            at_least["jsd_mean_us"] = _ratio(sums["jsd_us"] + sums["uncommitted_us"], jobs)
        if _is_much(ending - finished, ending):
            at_least["jct_mean_us"] = _ratio(sums["jct_us"] + sums["unfinished_us"], ending)
        return {
            "jobs": jobs,
            "jobs_ending": ending,
            "jobs_committed": committed,
            "jobs_finished": finished,
            "jsd_mean_us": _ratio(sums["jsd_us"], committed),
            "jct_mean_us": _ratio(sums["jct_us"], finished),
            "stet_mean_us": _ratio(sums["stet_us"], finished),
            "preferred_time_share": _ratio(sums["preferred_us"], sums["prefers_us"]),
            "lost_us": sums["lost_us"],
            "at_least": at_least,
        }

    def _solver(self, agents: Sequence[int], slots: Sequence[int]) -> Figures:
        if not self._rounds:
            return {}
        counted = np.isin(self._slot_of["rounds"], list(slots)) & np.isin(
            self._rounds["agent"], list(agents)
        )
        if not counted.any():
            return {}
        solve_us = self._rounds["solve_us"][counted]
        round_us = (
            solve_us + self._rounds["graph_us"][counted] + self._rounds["extract_us"][counted]
        )
        return {
            "rounds": int(counted.sum()),
            "solve_p50_us": float(np.quantile(solve_us, 0.5, method="inverted_cdf")),
            "solve_max_us": int(solve_us.max()),
            "round_p50_us": float(np.quantile(round_us, 0.5, method="inverted_cdf")),
            "round_max_us": int(round_us.max()),
        }


def _totals(metrics: RunMetrics) -> Figures:
    """Counts of the whole run, windows or not."""
    everything = (range(metrics.agents), range(metrics.slots))
    totals: Figures = {
        name: _sum(metrics.count[name], *everything)
        for name in COUNTERS
        if name
        not in (
            "delay_us",
            "attempts",
            "cost",
            "decision_us",
            "age_us",
            "aged_claims",
            "first_commits",
        )
    }
    totals["censored"] = _censored(metrics, *everything)
    totals["last_commit_us"] = metrics.last_commit_us
    totals["last_us"] = metrics.last_us
    return totals


def _staleness(metrics: RunMetrics) -> Figures:
    """Per partition, over all agents: average over time, average and largest age just before a
    sync, rows a sync carried."""
    count, age_us = metrics.sync_count.sum(axis=0), metrics.sync_age_us.sum(axis=0)
    squared = metrics.sync_age_squared.sum(axis=0)
    return {
        "mean_us": [_ratio(float(s), 2 * int(a)) for s, a in zip(squared, age_us, strict=True)],
        "at_sync_us": [_ratio(int(a), int(c)) for a, c in zip(age_us, count, strict=True)],
        "max_us": metrics.sync_age_max_us.max(axis=0).tolist(),
        "rows_mean": [
            _ratio(int(r), int(c))
            for r, c in zip(metrics.sync_rows.sum(axis=0), count, strict=True)
        ],
        "syncs": count.tolist(),
    }
