"""The configuration of a run from the options of `agora run`."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from experiments.config import RunConfig, first_error, load_config, validated
from experiments.presets import Scale, default_arms, demo_scale, mix_arm, paper_scale
from experiments.run_options import RunOptions, RuntimeName, ScaleName
from experiments.workloads.google2011 import trace_directory
from shared_state.errors import AgoraError

# Most tasks that wait when a trace begins are placed by then. They are reported apart.
TRACE_SETTLE_S = 2.0
SETTLE_PART = 3  # --duration lowers the settling time to this part of a phase


def resolve(options: RunOptions) -> RunConfig:
    """Return the configuration that the options describe, over a file if --config is given.

    Raises:
        AgoraError: An option or a field is wrong, or an option would have no effect.
    """
    preset = paper_scale() if options.scale is ScaleName.PAPER else demo_scale(options.quick)
    if options.config is None:
        tree = _preset_tree(options, preset)
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
    if options.trace is not None:
        tree["google2011"] = {"directory": str(trace_directory(options.trace))}
        tree["synthetic"] = None
    if tree.get("google2011") is not None:
        _adjust_trace(tree, options)
    else:
        refuse_given("has an effect only on traces; add --trace", **options.of_trace)
        if options.duration_s is not None:
            _scale_phases(tree, options.duration_s)
    if options.runtime is not None:
        tree["runtime"] = options.runtime.value
    if options.address is not None:
        tree["live"] = {**tree.get("live", {}), "address": options.address}
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
        )
    return config


def refuse_given(why: str, **options: object) -> None:
    """Raise AgoraError for the first of these options that was given."""
    for name, value in options.items():
        if value is not None:
            raise AgoraError(f"--{name}: {why}")


def _preset_tree(options: RunOptions, preset: Scale) -> dict[str, Any]:
    """The main comparison at one scale."""
    return {
        "seeds": 1 if options.scale is ScaleName.PAPER else 2 if options.quick else 10,
        "drain_s": preset.drain_s,
        "settle_s": preset.settle_s,
        "synthetic": preset.synthetic.model_dump(mode="json"),
        "arms": [arm.model_dump(mode="json") for arm in default_arms(preset)],
        "runtime": RuntimeName.RAY.value,
    }


def _adjust_trace(tree: dict[str, Any], options: RunOptions) -> None:
    given = {**options.of_trace, "duration_s": options.duration_s}
    tree["google2011"].update({name: value for name, value in given.items() if value is not None})
    if options.config is None:
        tree["settle_s"] = TRACE_SETTLE_S
    if options.duration_s is not None:
        tree["settle_s"] = min(tree["settle_s"], options.duration_s / SETTLE_PART)


def _source(options: RunOptions) -> str:
    """The file and the options that a configuration comes from, for error messages."""
    flags = {
        "mix": options.mix,
        "scale": options.scale,
        "trace": options.trace,
        **options.of_trace,
        "duration": options.duration_s,
        "seed": options.seed,
        "seeds": options.seeds,
        "runtime": options.runtime,
        "address": options.address,
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


def _scale_phases(tree: dict[str, Any], duration_s: float) -> None:
    synthetic = tree["synthetic"]
    phase_s = duration_s / len(synthetic["load_percent"])
    tree["settle_s"] = min(tree["settle_s"], phase_s / SETTLE_PART)
    synthetic["phase_s"] = phase_s
