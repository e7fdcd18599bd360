"""The cells and arms of ParSync's section 6 and its supplement A.

The cell has 200,000 slots. 20 schedulers take 0.25 ms a task, so together they decide twice what
arrives at 100 % load. There are 20 partitions, and the synchronisation gap is 0.5 s. Five phases of
60 s offer 50, 80, 95, 80 and 50 % of 40,000 tasks a second.

Where the paper is silent: the cell is empty at first; a message takes 0.5 ms; schedulers prefer
machines in 104 groups, calibrated on Table 1. A decision of quality-first looks at all partitions,
and the paper does not say what that costs: Table 2 fits 0.4 of a decision more, Figs. 5, 7b and 8
fit 0.75 more. Table 2 and Figs. 5, 7 and 8 are run at both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from experiments.config.presets import PARSYNC_SCAN_COST, Scale, greedy_group, paper_scale
from experiments.config.run_config import RunConfig
from experiments.config.workload_config import WorkloadConfig
from experiments.papers.chapter import FigureRun
from experiments.studies.model_settings import ReproduceScale
from parsync.spec.arm import ArmConfig, GroupConfig

SCHEDULERS = 20
LOW_SCAN_COST = 0.4
SCAN_COSTS = (PARSYNC_SCAN_COST, LOW_SCAN_COST)
TAUS_S = (1.0, 2.0, 3.0)
TAU_S = 2.0  # of Fig. 5

LATENCY, QUALITY, STATE, CENTRAL = "Latency-first", "Quality-first", "StateSync", "One scheduler"
_SMOKE_PART = 10  # of the paper's cell
_SMOKE_PHASE_S = 12.0
SETTLE_S = 5.0  # the mean run time


def adaptive(tau_s: float) -> str:
    """The label of an adaptive arm."""
    return f"Adaptive, tau {tau_s:g} s"


def with_cost(label: str, scan_cost: float) -> str:
    """The label of an arm, with its scan cost unless that is the default."""
    return label if scan_cost == PARSYNC_SCAN_COST else f"{label}, scan cost {scan_cost:g}"


def cell(scale: ReproduceScale, times: int = 1) -> Scale:
    """The cell and its schedulers' constants.

    Args:
        times: How many times the paper's cell, its arrivals and its schedulers (Table 2).
    """
    paper = paper_scale()
    machines = paper.synthetic.machines * times
    changed: dict[str, Any] = {"machines": machines}
    if scale is ReproduceScale.SMOKE:
        changed = {"machines": machines // _SMOKE_PART, "phase_s": _SMOKE_PHASE_S}
    return Scale(
        paper.synthetic.model_copy(update=changed),
        SCHEDULERS * times,
        SCHEDULERS * times,
        paper.gap_s,
        TAU_S,
        drain_s=paper.drain_s,
        settle_s=SETTLE_S,
    )


@dataclass(frozen=True, slots=True)
class Arms:
    """Makes the arms of a cell.

    Attributes:
        partitions: The number of partitions of each arm.
    """

    cell: Scale
    partitions: int

    def run(
        self,
        label: str,
        strategy: str,
        *,
        sync: str = "diff_block",
        tau_s: float = TAU_S,
        count: int | None = None,
        scan_cost: float = PARSYNC_SCAN_COST,
        draws_series: bool = True,
        **of_workload: Any,
    ) -> FigureRun:
        """An arm whose schedulers take 0.25 ms a task and, for looking at all partitions,
        scan_cost of that besides.

        Args:
            label: Of the run, without its scan cost.
            strategy, sync, tau_s: Of the optimistic protocol.
            count: The number of schedulers; None: the cell's.
            draws_series: As in FigureRun.
            of_workload: Options of the generated workload that differ from the cell's.
        """
        schedulers = self.cell.schedulers if count is None else count
        group: GroupConfig = greedy_group(
            self.cell,
            strategy,
            schedulers,
            sync,
            decision=self.cell.equal_capacity(self.cell.schedulers, scan_cost=scan_cost),
            head_of_line_s=0.0,  # the paper's queue keeps its order
            commit_mode="incremental",
        )
        group = group.model_copy(update={"protocol": group.protocol.changed(tau_s=tau_s)})
        title = with_cost(label, scan_cost)
        arm = ArmConfig(name=title, partitions=self.partitions, groups=(group,))
        options = self.cell.synthetic.model_copy(update=of_workload)
        config = RunConfig(
            name="reproduce",
            workload=WorkloadConfig.of("synthetic", options),
            arms=(arm,),
            settle_s=self.cell.settle_s,
            drain_s=self.cell.drain_s,
        )
        return FigureRun(title, config, arm, draws_series)

    def latency_first(self, **given: Any) -> FigureRun:
        return self.run(LATENCY, "latency_first", **given)

    def quality_first(self, **given: Any) -> FigureRun:
        return self.run(QUALITY, "quality_first", **given)

    def adaptive(self, tau_s: float, **given: Any) -> FigureRun:
        return self.run(adaptive(tau_s), "adaptive", tau_s=tau_s, **given)

    def state_sync(self, **given: Any) -> FigureRun:
        return self.run(STATE, "quality_first", sync="state_aligned", **given)

    def central(self, **given: Any) -> FigureRun:
        """StateSync with one scheduler, for the centralised one before ParSync ("similar to YARN",
        section 6.1)."""
        return self.run(CENTRAL, "quality_first", sync="state_aligned", count=1, **given)


def arms(scale: ReproduceScale, partitions: int = SCHEDULERS) -> Arms:
    """The arms of section 6's cell."""
    return Arms(cell(scale), partitions)


def arms_of_scale(scale: ReproduceScale, times: int) -> Arms:
    """The arms of supplement A.4, on a multiple of the cell and its schedulers."""
    of = cell(scale, times)
    return Arms(of, of.schedulers)
