"""The main job: ParSync's synchronisation and flow scheduling compared on one shared cell.

python -m experiments.parsync_vs_flow [--config FILE.toml] [--mix "latency_first=8,firmament=1"] [--scale demo|paper] ...
"""

from __future__ import annotations

import contextlib
import sys
import time
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.live import Live

from experiments.config import RunConfig, load_config, validated
from experiments.finishing import finish_run
from experiments.live_table import live_table
from experiments.presets import default_arms, demo_scale, mix_arm, paper_scale
from experiments.running import (
    ArmRun,
    ArmRunner,
    check_memory,
    make_run_directory,
    make_workload,
    run_arm_virtual,
    run_seeds,
)
from experiments.summary import slugs
from experiments.toml_text import toml_text
from experiments.workloads.google2011 import Google2011Options, trace_directory
from parsync.core.metrics_live import Snapshot
from parsync.core.metrics_summary import Figures
from parsync.core.workload import Workload
from shared_state.errors import AgoraError

BAD_INPUT = 2
INTERRUPTED = 130


class ScaleName(StrEnum):
    """Which cell: a tenth of ParSync's, or ParSync's."""

    DEMO = "demo"
    PAPER = "paper"


class RuntimeName(StrEnum):
    """Ray actors in real time, or an event heap in virtual time."""

    RAY = "ray"
    VIRTUAL = "virtual"


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def resolve(
    config: Path | None,
    mix: str | None,
    scale: ScaleName,
    trace: str | None,
    speedup: int,
    resources: str,
    overcommit: float | None,
    duration: float | None,
    seed: int | None,
    seeds: int | None,
    quick: bool,
    runtime: RuntimeName | None = None,
    address: str | None = None,
) -> RunConfig:
    """The configuration that flags (over a file, if given) describe. Raises AgoraError naming the flag or field."""
    if config is not None:
        tree = load_config(config).model_dump(mode="json")
    else:
        preset = paper_scale() if scale is ScaleName.PAPER else demo_scale(quick)
        tree = {
            "seeds": (2 if quick else 10) if scale is ScaleName.DEMO else 1,
            "drain_s": preset.drain_s,
            "settle_s": preset.settle_s,
            "synthetic": preset.synthetic.model_dump(mode="json"),
            "arms": [arm.model_dump(mode="json") for arm in default_arms(preset)],
            "runtime": RuntimeName.RAY.value,
        }
    if mix is not None:
        preset = paper_scale() if scale is ScaleName.PAPER else demo_scale(quick)
        tree["arms"] = [mix_arm(mix, preset).model_dump(mode="json")]
    if trace is not None:
        options = Google2011Options(
            directory=trace_directory(trace),
            speedup=speedup,
            resources=resources,
            overcommit=overcommit,
            duration_s=duration,
        )
        tree["google2011"] = options.model_dump(mode="json")
        tree["synthetic"] = None
    elif duration is not None:
        _scale_phases(tree, duration)
    if runtime is not None:
        tree["runtime"] = runtime.value
    if address is not None:
        tree["live"] = {**tree.get("live", {}), "address": address}
    if seed is not None:
        tree["seed"] = seed
    if seeds is not None:
        tree["seeds"] = seeds
    return validated(tree, "command line" if config is None else str(config))


def _scale_phases(tree: dict[str, Any], duration_s: float) -> None:
    synthetic = tree["synthetic"]
    if synthetic is None:
        raise AgoraError("--duration: a trace's duration is set in [google2011] duration_s")
    phase_s = duration_s / len(synthetic["load_percent"])
    tree["settle_s"] = min(tree["settle_s"], phase_s / 3)
    synthetic["phase_s"] = phase_s


@app.command()
def main(
    config: Annotated[Path | None, typer.Option(help="TOML file; a run writes its own as config.toml")] = None,
    mix: Annotated[str | None, typer.Option(help='one arm: "latency_first=8,quality_first=4,firmament=1"')] = None,
    scale: Annotated[ScaleName, typer.Option(help="the demo's cell, or ParSync's 200,000 slots")] = ScaleName.DEMO,
    trace: Annotated[str | None, typer.Option(help="real input, e.g. google2011:DIR")] = None,
    speedup: Annotated[int, typer.Option(min=1, help="divides a trace's times")] = 50,
    resources: Annotated[
        str, typer.Option(help="of a trace: slots=N, or requests (CPU and memory vectors)")
    ] = "slots=13",
    overcommit: Annotated[float | None, typer.Option(help="factor on capacity under --resources requests")] = None,
    duration: Annotated[float | None, typer.Option(min=0.001, help="seconds of load in all")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="root of all random streams")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="paired seeds for the confidence intervals")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="half the time, two seeds: about two minutes")] = False,
    runtime: Annotated[
        RuntimeName | None,
        typer.Option(help="Ray actors in real time, or virtual time; paired seeds are always virtual"),
    ] = None,
    address: Annotated[str | None, typer.Option(help="of a running Ray cluster (default: an embedded one)")] = None,
    hold: Annotated[bool, typer.Option("--hold", help="keep Ray and its dashboard up until Enter")] = False,
    out: Annotated[Path | None, typer.Option(help="run directory to create (default runs/TIME)")] = None,
) -> None:
    """Compare ParSync's synchronisation and flow scheduling on one shared cell; writes a run directory with report.html."""
    console = Console(stderr=True)
    try:
        resolved = resolve(
            config, mix, scale, trace, speedup, resources, overcommit, duration, seed, seeds, quick, runtime, address
        )
        # Everything that can be refused is tried before the run directory is made.
        workload = make_workload(resolved, resolved.seed)
        check_memory(resolved, workload.cell.machines, len(workload.tasks))
        runner = _runner(resolved, hold)
        directory = make_run_directory(out or Path("runs") / time.strftime("%Y%m%d-%H%M%S"))
        (directory / "config.toml").write_text(toml_text(resolved.model_dump(mode="json")), encoding="utf-8")
        complete = run(resolved, workload, directory, console, runner)
        if hold and resolved.runtime == RuntimeName.RAY:
            _hold(console)
    except AgoraError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(BAD_INPUT) from None
    if not complete:
        raise typer.Exit(INTERRUPTED)


def _runner(config: RunConfig, hold: bool) -> ArmRunner:
    """Ray is imported only where it is used: virtual time starts in a second."""
    if config.runtime == RuntimeName.VIRTUAL:
        return run_arm_virtual
    from experiments.running_live import prepare, run_arm_live

    prepare(config, hold)
    return partial(run_arm_live, hold=hold)


def _hold(console: Console) -> None:
    from parsync.runtime.live.dashboard import dashboard_note

    console.print(dashboard_note())
    with contextlib.suppress(KeyboardInterrupt):
        console.input("Ray stays up for inspection; press Enter to end ")


def run(config: RunConfig, workload: Workload, directory: Path, console: Console, run_arm: ArmRunner) -> bool:
    """Every arm in full, then all of them over the paired seeds, then the report. False if it was stopped before the end."""
    results: list[ArmRun] = []
    folders = [directory / "arms" / slug for slug in slugs([arm.name for arm in config.arms])]
    for number, (arm, folder) in enumerate(zip(config.arms, folders, strict=True), start=1):
        folder.mkdir()
        title = f"{number}/{len(config.arms)} {arm.name}"
        names = [f"{group.name}-{place}" for group in arm.groups for place in range(group.count)]
        with Live(console=console, refresh_per_second=4, transient=True) as live:
            begun_s = time.monotonic()

            def show(
                snapshot: Snapshot, title: str = title, names: list[str] = names, begun_s: float = begun_s
            ) -> None:
                elapsed_s = time.monotonic() - begun_s
                left_s = elapsed_s * (workload.end_us - snapshot.at_us) / max(1, snapshot.at_us)
                live.update(live_table(title, names, snapshot, workload.end_us, left_s))

            result = run_arm(config, arm, workload, config.seed, folder, show)
        results.append(result)
        console.print(f"{title}: {result.stopped or 'done'} in {result.wall_s:.1f} s")
        if result.stopped:
            break
    stopped = results[-1].stopped
    seeds = {} if stopped or config.seeds < 2 else _paired_seeds(config, console)
    complete = not stopped and seeds is not None
    reason = "" if complete else stopped or "interrupted during the paired seeds"
    finish_run(config, workload, results, seeds or {}, directory, reason, console)
    return complete


def _paired_seeds(config: RunConfig, console: Console) -> dict[int, dict[str, Figures]] | None:
    """Figures by seed and arm; None if stopped."""
    figures: dict[int, dict[str, Figures]] = {}
    total = config.seeds * len(config.arms)
    done = 0
    begun_s = time.monotonic()
    try:
        with console.status("paired seeds") as status:
            for seed, name, result in run_seeds(config):
                figures.setdefault(seed, {})[name] = result
                done += 1
                left_s = (time.monotonic() - begun_s) * (total - done) / done
                status.update(f"paired seeds in virtual time: {done} of {total} runs, about {left_s:.0f} s left")
    except KeyboardInterrupt:
        return None
    return figures


if __name__ == "__main__":
    app()
