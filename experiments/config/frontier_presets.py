"""The frontiers of the main comparison: a small one behind its arms, and that of `agora frontier`
without a file."""

from __future__ import annotations

from experiments.config.frontier_config import Architecture, FrontierConfig
from experiments.config.presets import PATIENCE, Scale, default_arms, demo_scale
from experiments.config.run_config import RunConfig
from experiments.config.workload_config import WorkloadConfig

PATIENT = ("ParSync, patient", "ParSync quality-first")
# adaptive is quality-first where tau is never reached, and latency-first where it always is
NEVER_S, ALWAYS_S = 1e6, 1e-6


def small_frontier(scale: Scale) -> FrontierConfig:
    """Three points of each architecture at equal capacity; most are arms of the comparison. Flow
    has two, because its runs take longest."""
    task_s = scale.synthetic.mean_duration_s
    patience_s = (0.0, PATIENCE * task_s, task_s / 2)
    return FrontierConfig(
        seeds=3,
        architectures=(
            _tau(ALWAYS_S, task_s / 50, scale.tau_s),
            _patient(*PATIENT, patience_s),
            _patient("Greedy, one scheduler", "Greedy, one scheduler", patience_s),
            _patient("Flow", "Flow", patience_s[:2]),
        ),
    )


def full_frontier(scale: Scale, quick: bool) -> FrontierConfig:
    """Every architecture of the comparison that has a knob, at equal capacity and at own speed; the
    others as points."""
    task_s = scale.synthetic.mean_duration_s
    patience_s = tuple(task_s * part for part in ((0, 0.15, 0.5) if quick else PATIENCES))
    tau_s = tuple(task_s * part for part in ((0.02,) if quick else (0.01, 0.02, 0.04)))
    patient = (
        PATIENT,
        *((arm, arm) for arm in _ONE_SCHEDULER),
    )
    return FrontierConfig(
        seeds=2 if quick else 5,
        load_percent=(80,),
        architectures=(
            _tau(ALWAYS_S, *tau_s, NEVER_S),
            *(_patient(name, arm, patience_s) for name, arm in patient),
            Architecture(arm="StateSync staggered quality-first"),
            Architecture(arm="Omega"),
        ),
    )


# in mean task durations
PATIENCES = (0.0, 0.02, 0.05, 0.15, 0.5)
_ONE_SCHEDULER = (
    "Greedy, one scheduler",
    "Preferred first",
    "Flow",
    "Greedy at own speed",
    "Flow at own speed",
)


def _tau(*values_s: float) -> Architecture:
    return Architecture(
        name="ParSync, tau", arm="ParSync adaptive", knob="protocol.tau_s", values=values_s
    )


def _patient(name: str, arm: str, values_s: tuple[float, ...]) -> Architecture:
    return Architecture(name=name, arm=arm, knob="options.patience_s", values=values_s)


def default_config(quick: bool) -> RunConfig:
    """What `agora frontier` runs without a file: the demo's cell at a constant load of 80 %.

    Args:
        quick: Use half of the cell and fewer points.
    """
    scale = demo_scale(quick)
    # One task length settles, and five are counted.
    options = scale.synthetic.model_copy(update={"phase_s": 6 * scale.synthetic.mean_duration_s})
    return RunConfig(
        name="frontier",
        workload=WorkloadConfig.of("synthetic", options),
        arms=default_arms(scale),
        settle_s=scale.settle_s,
        drain_s=scale.drain_s,
        frontier=full_frontier(scale, quick),
    )
