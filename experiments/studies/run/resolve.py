"""The configuration of a run from the options of `agora run`."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from experiments.config.flags import arm_beside, changed_workload, is_used, settled, trace_workload
from experiments.config.frontier_config import FrontierConfig
from experiments.config.presets import (
    LIVE_ARM,
    Scale,
    default_arms,
    demo_scale,
    mix_arm,
    paper_scale,
    small_frontier,
)
from experiments.config.run_config import RunConfig, load_config, validated
from experiments.studies.run.calibration import read_calibration
from experiments.studies.run.run_options import RunOptions, RuntimeName, ScaleName
from parsync.spec.arm import ArmConfig
from parsync.strict_model import first_error
from shared_state.errors import AgoraError

# Most tasks that wait when a trace begins are placed by then. They are reported apart.
TRACE_SETTLE_S = 2.0
# Of the main comparison: so many that it takes less than six minutes on two cores.
SEEDS = 5
ALL = "all"  # --live: every arm
SENSITIVITY_SEEDS = 2


def resolve(options: RunOptions) -> RunConfig:
    """Return the configuration that the options describe, over a file if --config is given.

    Raises:
        AgoraError: An option or a field is wrong, or an option would have no effect.
    """
    preset = paper_scale() if options.scale is ScaleName.PAPER else demo_scale(options.quick)
    if options.config is None:
        try:
            tree = _preset_tree(options, preset)
        except ValidationError as error:  # of what is installed beside us
            raise AgoraError(first_error(error)) from error
    else:
        if options.mix is None:
            refuse_given(
                "has no effect with --config, which sets the whole configuration",
                scale=options.scale,
                quick=options.quick or None,
            )
        tree = load_config(options.config).model_dump(mode="json")
    if options.mix is not None:
        tree["arms"] = [_mix(options.mix, preset)]
        tree["live"] = {**tree.get("live", {}), "arms": None}
        tree["frontier"] = {}
        tree["sensitivity_seeds"] = 0
    if options.added:
        tree["arms"] = _with_added(options, tree["arms"])
    if options.live:
        chosen = None if ALL in options.live else list(dict.fromkeys(options.live))
        tree["live"] = {**tree.get("live", {}), "arms": chosen}
    if options.trace is not None:
        tree["workload"] = trace_workload(options.trace)
        if options.config is None:
            tree["settle_s"] = TRACE_SETTLE_S
            tree["name"] = tree["workload"]["kind"]
            tree["frontier"] = {}
    tree["workload"] = changed_workload(tree["workload"], options.of_trace, options.duration_s)
    if options.duration_s is not None:
        tree["settle_s"] = settled(tree["settle_s"], tree["workload"], options.duration_s)
    if options.runtime is not None:
        tree["runtime"] = options.runtime.value
    if options.address is not None:
        tree["live"] = {**tree.get("live", {}), "address": options.address}
    if options.calibrate is not None:
        calibration = read_calibration(options.calibrate).model_dump(mode="json")
        tree["virtual"] = {**tree.get("virtual", {}), "calibration": calibration}
    if options.seed is not None:
        tree["seed"] = options.seed
    if options.seeds is not None:
        tree["seeds"] = options.seeds
    config = validated(tree, _source(options))
    if config.runtime == "virtual":
        refuse_given(
            "has no effect in virtual time",
            hold=options.hold or None,
            address=options.address,
            live=options.live or None,
        )
    return config


def _with_added(options: RunOptions, given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The arms and one for each --with, but for a kind that an arm of a file or a mix already uses
    and that has no number of its own: that is given to be known."""
    arms = [ArmConfig.model_validate(arm) for arm in given]
    own = [] if options.config is None and options.mix is None else list(arms)
    for kind, count in options.added:
        if count is not None or not is_used(kind, own):
            arms.append(arm_beside(kind, count or 1, arms))
    return [arm.model_dump(mode="json") for arm in arms]


def refuse_given(why: str, **options: object) -> None:
    """Raise AgoraError for the first of these options that was given."""
    for name, value in options.items():
        if value is not None:
            raise AgoraError(f"--{name}: {why}")


def _preset_tree(options: RunOptions, preset: Scale) -> dict[str, Any]:
    """The main comparison at one scale."""
    paper = options.scale is ScaleName.PAPER
    frontier = FrontierConfig() if paper else small_frontier(preset)
    return {
        "frontier": frontier.model_dump(mode="json"),
        "seeds": 1 if paper else 2 if options.quick else SEEDS,
        "sensitivity_seeds": 0 if options.quick else SENSITIVITY_SEEDS,
        "drain_s": preset.drain_s,
        "settle_s": preset.settle_s,
        "workload": {"kind": "synthetic", **preset.synthetic.model_dump(mode="json")},
        "arms": [arm.model_dump(mode="json") for arm in default_arms(preset)],
        "runtime": RuntimeName.RAY.value,
        "live": {"arms": [LIVE_ARM], "fit": True},
    }


def _source(options: RunOptions) -> str:
    """The file and the options that a configuration comes from, for error messages."""
    flags = {
        "mix": options.mix,
        "with": options.added or None,
        "scale": options.scale,
        "trace": options.trace,
        **options.of_trace,
        "duration": options.duration_s,
        "seed": options.seed,
        "seeds": options.seeds,
        "runtime": options.runtime,
        "address": options.address,
        "calibrate": options.calibrate,
    }
    given = " and ".join(f"--{name}" for name, value in flags.items() if value is not None)
    if options.config is None:
        return given or "command line"
    return f"{options.config} with {given}" if given else str(options.config)


def _mix(text: str, preset: Scale) -> dict[str, Any]:
    try:
        return mix_arm(text, preset).model_dump(mode="json")
    except ValidationError as error:
        raise AgoraError(f"--mix {text}: {first_error(error)}") from error
