"""The figures of a scope worked out slowly from their definitions, row by row in plain Python."""

from __future__ import annotations

import math
from collections import defaultdict
from itertools import pairwise

from parsync.metrics import histogram
from schedulers.interface import ChangeKind
from tests.unit.record_factory import Phase, Recorded

AGENTS, PARTITIONS, SETTLE = 3, 4, 100_000
WINDOWS = (
    Phase(0, 1_000_000, 50),
    Phase(1_000_000, 1_800_000, 95),
    Phase(2_000_000, 3_000_000, 50),
)


def window(at_us: int) -> int | None:
    return next((i for i, w in enumerate(WINDOWS) if w.start_us + SETTLE <= at_us < w.end_us), None)


def close(value: float | None, expected: float | None) -> bool:
    if value is None or expected is None:
        return value is expected
    return math.isclose(value, expected, rel_tol=1e-12, abs_tol=1e-12)


def near(value: float | None, expected: float | None) -> bool:
    """Within the resolution of the histogram."""
    if value is None or expected is None:
        return value is expected
    return abs(value - expected) <= histogram.RESOLUTION * expected + 0.5


def oracle(recorded: Recorded, agents: set[int], windows: set[int]) -> dict[str, float | None]:
    """The figures of a scope, from their definitions."""

    def counted(row: dict[str, int], at: str) -> bool:
        return row["agent"] in agents and window(row[at]) in windows

    def ratio(part: float, whole: float) -> float | None:
        return part / whole if whole else None

    submissions = [r for r in recorded.rows("submissions") if counted(r, "submit_us")]
    every_task = recorded.rows("tasks")
    tasks = [r for r in every_task if r["first"] and counted(r, "submit_us")]
    commits = [r for r in recorded.rows("commits") if counted(r, "commit_us")]
    submitted = sum(r["tasks"] for r in submissions)
    censored = submitted - len(tasks)
    delays = sorted([r["commit_us"] - r["submit_us"] for r in tasks] + [math.inf] * censored)

    def quantile(fraction: float) -> float | None:
        value = delays[max(math.ceil(fraction * len(delays)) - 1, 0)] if delays else math.inf
        return None if value == math.inf else value

    claims = sum(r["claims"] for r in commits)
    in_conflict = [r["stale"] + r["full"] + r["evicted"] + r["held"] for r in commits]
    conflicts, failed = sum(in_conflict), sum(1 for claimed in in_conflict if claimed)
    sent = sum(1 for r in commits if r["claims"])
    prefers = sum(r["prefers"] for r in submissions)
    length = sum(w.end_us - w.start_us - SETTLE for i, w in enumerate(WINDOWS) if i in windows)
    inside = [r for r in every_task if r["first"] and counted(r, "commit_us")]
    ages = [r["age_us"] for r in every_task if counted(r, "commit_us")]
    ages += [r["age_us"] for r in recorded.rows("rejections") if counted(r, "at_us")]
    lost = [r["abandoned"] for r in recorded.rows("unplaceable") if counted(r, "at_us")]
    seen_us = seen(recorded)
    waited = sum(r["tasks"] * (seen_us - r["submit_us"]) for r in submissions)
    waited -= sum(seen_us - r["submit_us"] for r in tasks)
    delayed = sum(r["commit_us"] - r["submit_us"] for r in tasks)
    figures: dict[str, float | None] = {
        "incomplete": censored > submitted / 1000,
        "at_least/delay_mean_us": ratio(delayed + waited, submitted) if censored else None,
        "abandoned": lost.count(1),
        "unplaceable": lost.count(0),
        "submitted": submitted,
        "committed": len(tasks),
        "censored": censored,
        "delay_mean_us": ratio(sum(r["commit_us"] - r["submit_us"] for r in tasks), len(tasks)),
        "delay_p50_us": quantile(0.5),
        "delay_p90_us": quantile(0.9),
        "delay_p99_us": quantile(0.99),
        "attempts_mean": ratio(sum(r["attempts"] for r in tasks), len(tasks)),
        "cost_mean": ratio(sum(r["cost"] for r in tasks), len(tasks)),
        "claims": claims,
        "conflicts": conflicts,
        "conflict_rate": ratio(conflicts, claims),
        "held": sum(r["held"] for r in commits),
        "held_rate": ratio(sum(r["held"] for r in commits), claims),
        "conflict_fraction": ratio(failed, sent - failed),
        "gang_rate": ratio(sum(r["gang"] for r in commits), claims),
        "machine_down_rate": ratio(sum(r["machine_down"] for r in commits), claims),
        "age_mean_us": ratio(sum(ages), len(ages)),
        "preferred_share": ratio(sum(r["preferred"] for r in tasks), prefers),
        "throughput_per_s": ratio(len(inside) * 1e6, length),
    }
    return (
        figures
        | job_oracle(recorded, submissions, agents, windows)
        | busy_oracle(recorded, agents, windows)
    )


def seen(recorded: Recorded) -> int:
    """How far the run was watched: ends that are due lie beyond."""
    stamps = {
        "tasks": "commit_us",
        "commits": "commit_us",
        "ends": "end_us",
        "cell": "at_us",
        "agents": "at_us",
        "submissions": "submit_us",
    }
    stamps["rounds"] = "at_us"
    return max(
        row[stamp]
        for table, stamp in stamps.items()
        for row in recorded.rows(table)
        if not row.get("due")
    )


def class_of(recorded: Recorded, submission: dict[str, int]) -> str:
    return "service" if recorded.services[recorded.job_of == submission["job"]].any() else "batch"


def job_oracle(
    recorded: Recorded, submissions: list[dict[str, int]], agents: set[int], windows: set[int]
) -> dict[str, float | None]:
    members = defaultdict(list)
    for task, job in enumerate(recorded.job_of.tolist()):
        members[job].append(task)
    placements, ends = defaultdict(list), defaultdict(list)
    for row in sorted(recorded.rows("tasks"), key=lambda r: r["commit_us"]):
        placements[row["task"]].append(row)
    for row in sorted(recorded.rows("ends"), key=lambda r: r["end_us"]):
        ends[row["task"]].append(row)
    seen_us = seen(recorded)

    def is_placed(row: dict[str, int]) -> bool:
        return all(placements[t] for t in members[row["job"]])

    def has_ended(row: dict[str, int]) -> bool:
        return is_placed(row) and all(
            ends[t] and ends[t][-1]["change"] == ChangeKind.FINISHED for t in members[row["job"]]
        )

    figures: dict[str, float | None] = {}
    for name in ("", "_batch", "_service"):
        jsd: list[int] = []
        jct: list[int] = []
        slowdown: list[int] = []
        late: list[int] = []
        unfinished: list[int] = []
        slowed: list[int] = []
        for row in submissions:
            tasks = members[row["job"]]
            if name not in ("", f"_{class_of(recorded, row)}"):
                continue
            longest_us = max(recorded.run_us[t] for t in tasks)
            waited_us = max(seen_us - row["submit_us"], 0)
            if is_placed(row):
                jsd.append(max(placements[t][0]["commit_us"] for t in tasks) - row["submit_us"])
            else:
                late.append(waited_us)
            if has_ended(row):
                jct.append(max(ends[t][-1]["end_us"] for t in tasks) - row["submit_us"])
                slowdown.append(jct[-1] * 1000 // longest_us)
            else:
                unfinished.append(waited_us)
                slowed.append(max(waited_us * 1000 // longest_us, 1000))
        for figure, got, charged, unit in (
            (f"jsd{name}_mean_us", jsd, late, 1),
            (f"jct{name}_mean_us", jct, unfinished, 1),
            (f"slowdown{name}_mean", slowdown, slowed, 1000),
        ):
            every = got + charged
            figures[figure] = sum(got) / (unit * len(got)) if got else None
            figures[f"at_least/{figure}"] = sum(every) / (unit * len(every)) if charged else None
        if not name:
            figures |= {"jobs_committed": len(jsd), "jobs_finished": len(jct)}
    lost = {row["task"] for row in recorded.rows("unplaceable") if row["abandoned"] == 1}
    figures["jobs_abandoned"] = sum(not lost.isdisjoint(members[r["job"]]) for r in submissions)
    ended = [row for row in submissions if has_ended(row)]
    stet = [
        sum(ends[t][-1]["end_us"] - placements[t][-1]["commit_us"] for t in members[row["job"]])
        for row in ended
    ]
    ended_us = [
        sum(
            ends[t][-1]["end_us"] - placements[t][-1]["commit_us"]
            for t in members[row["job"]]
            if placements[t] and ends[t] and ends[t][-1]["change"] == ChangeKind.FINISHED
        )
        for row in submissions
    ]
    prefers = preferred = lost = 0
    for task, rows in placements.items():
        if not rows:
            continue
        if (
            recorded.job_of[task] < 0
            or rows[0]["agent"] not in agents
            or window(rows[0]["submit_us"]) not in windows
        ):
            continue
        for number, row in enumerate(rows):
            over = number < len(ends[task])
            ran = (min(ends[task][number]["end_us"], seen_us) if over else seen_us) - row[
                "commit_us"
            ]
            prefers += ran * row["prefers"]
            preferred += ran * row["preferred"]
            lost += ran * (over and ends[task][number]["change"] != ChangeKind.FINISHED)
    return figures | {
        "jobs": len(submissions),
        "stet_mean_us": sum(stet) / len(stet) if stet else None,
        "preferred_time_share": preferred / prefers if prefers else None,
        "lost_us": lost,
        "at_least/stet_mean_us": sum(ended_us) / len(submissions)
        if len(ended) < len(submissions)
        else None,
    }


def busy_oracle(recorded: Recorded, agents: set[int], windows: set[int]) -> dict[str, float | None]:
    busy = wasted = time = 0
    per_s = 0.0
    backlog, rows_of = 0.0, defaultdict(list)
    for row in sorted(recorded.rows("agents"), key=lambda r: r["at_us"]):
        rows_of[row["agent"]].append(row)
    for agent in agents:
        rows = rows_of[agent]
        queued = [r["queued"] for r in rows if window(r["at_us"]) in windows]
        backlog += sum(queued) / len(queued) if queued else 0
        mine = [r for r in recorded.rows("tasks") if r["agent"] == agent]
        commits = sum(window(r["commit_us"]) in windows for r in mine)
        before_us, begun_us = busy, time
        for before, after in pairwise(rows):
            if (
                window(before["at_us"]) == window(after["at_us"])
                and window(after["at_us"]) in windows
            ):
                busy += after["busy_us"] - before["busy_us"]
                wasted += after["wasted_us"] - before["wasted_us"]
                time += after["at_us"] - before["at_us"]
        length = sum(w.end_us - w.start_us - SETTLE for i, w in enumerate(WINDOWS) if i in windows)
        if busy > before_us:
            per_s += commits * 1e6 / length * (time - begun_us) / (busy - before_us)
    cell = [r["used_permille"] for r in recorded.rows("cell") if window(r["at_us"]) in windows]
    return {
        "decisions_per_s": per_s or None,
        "busy_useful_share": (busy - wasted) / time if time else None,
        "busy_wasted_share": wasted / time if time else None,
        "backlog_mean": backlog,
        "utilisation_mean": sum(cell) / len(cell) / 1000,
        "utilisation_max": max(cell) / 1000,
    }
