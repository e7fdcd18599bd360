"""The main job: ParSync's synchronisation and flow scheduling compared on one shared cell.

python -m experiments.parsync_vs_flow [--config FILE.toml] [--mix "latency_first=8,firmament=1"]
[--scale demo|paper] ...
"""

from __future__ import annotations

if __name__ == "__main__":  # before the imports, which take seconds
    from parsync.runtime.stop_signals import exit_on_stop_signals

    exit_on_stop_signals()

import contextlib
import shutil
import time
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.live import Live
from rich.text import Text

from experiments import restarts
from experiments.arm_config import ArmConfig
from experiments.command_line import BAD_INPUT, run_command
from experiments.config import RunConfig, first_error, load_config, validated
from experiments.finishing import arm_result, finish_run, seed_result
from experiments.interruption import Interruption, stop_signals_noted
from experiments.kept_arms import keep_arm
from experiments.killed_runs import run_in_progress
from experiments.live_table import live_table
from experiments.preconditions import check_arms, check_memory, check_new, make_run_directory
from experiments.presets import Scale, default_arms, demo_scale, mix_arm, paper_scale
from experiments.quantities import counted
from experiments.running import ArmRun, ArmRunner, make_workload, run_arm_virtual, run_seeds
from experiments.summary import SUMMARY, slugs, workload_facts, write_seed
from experiments.version import version_text
from experiments.workloads.google2011 import trace_directory
from parsync.metrics.live import Snapshot
from parsync.metrics.summary import Figures
from parsync.workload.workload import Workload
from shared_state.errors import AgoraError

# until the tasks that wait as the trace begins are placed, mostly; their figures stand apart
TRACE_SETTLE_S = 2.0
SETTLE_PART = 3  # --duration settles for at most this part of a phase


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
    scale: ScaleName | None,
    trace: str | None,
    trace_options: Mapping[str, object],
    duration: float | None,
    seed: int | None,
    seeds: int | None,
    quick: bool,
    runtime: RuntimeName | None = None,
    address: str | None = None,
) -> RunConfig:
    """The configuration that flags (over a file, if given) describe. Raises AgoraError naming the
    flag or field.

    trace_options: speedup, resources and overcommit, None where not given.
    """
    preset = paper_scale() if scale is ScaleName.PAPER else demo_scale(quick)
    if config is not None:
        if mix is None:
            _refuse(
                "has no use with --config, which sets everything", scale=scale, quick=quick or None
            )
        tree = load_config(config).model_dump(mode="json")
    else:
        tree = {
            "seeds": 1 if scale is ScaleName.PAPER else 2 if quick else 10,
            "drain_s": preset.drain_s,
            "settle_s": preset.settle_s,
            "synthetic": preset.synthetic.model_dump(mode="json"),
            "arms": [arm.model_dump(mode="json") for arm in default_arms(preset)],
            "runtime": RuntimeName.RAY.value,
        }
    if mix is not None:
        tree["arms"] = [_mix(mix, preset)]
    if trace is not None:
        tree["google2011"] = {"directory": str(trace_directory(trace))}
        tree["synthetic"] = None
    if tree.get("google2011") is not None:
        given = {**trace_options, "duration_s": duration}
        tree["google2011"].update(
            {name: value for name, value in given.items() if value is not None}
        )
        if config is None:
            tree["settle_s"] = TRACE_SETTLE_S
        if duration is not None:
            tree["settle_s"] = min(tree["settle_s"], duration / SETTLE_PART)
    else:
        _refuse("is for traces, but --trace is not given", **trace_options)
        if duration is not None:
            _scale_phases(tree, duration)
    if runtime is not None:
        tree["runtime"] = runtime.value
    if address is not None:
        tree["live"] = {**tree.get("live", {}), "address": address}
    if seed is not None:
        tree["seed"] = seed
    if seeds is not None:
        tree["seeds"] = seeds
    flags = {"mix": mix, "scale": scale, "trace": trace, **trace_options, "duration": duration}
    flags |= {"seed": seed, "seeds": seeds, "runtime": runtime, "address": address}
    return validated(tree, _source(config, flags))


def _source(config: Path | None, flags: Mapping[str, object]) -> str:
    """Where a configuration comes from."""
    given = " and ".join(f"--{name}" for name, value in flags.items() if value is not None)
    if config is None:
        return given or "command line"
    return f"{config} with {given}" if given else str(config)


def _mix(text: str, preset: Scale) -> dict[str, Any]:
    try:
        return mix_arm(text, preset).model_dump(mode="json")
    except ValidationError as error:
        raise AgoraError(f"--mix {text}: {first_error(error)}") from error


def _refuse(why: str, **options: object) -> None:
    """Raises AgoraError naming the first option that was given although it would change nothing."""
    for name, value in options.items():
        if value is not None:
            raise AgoraError(f"--{name}: {why}")


def _scale_phases(tree: dict[str, Any], duration_s: float) -> None:
    synthetic = tree["synthetic"]
    phase_s = duration_s / len(synthetic["load_percent"])
    tree["settle_s"] = min(tree["settle_s"], phase_s / SETTLE_PART)
    synthetic["phase_s"] = phase_s


@app.command()
def main(
    config: Annotated[
        Path | None, typer.Option(help="TOML file; a run writes its own as config.toml")
    ] = None,
    mix: Annotated[
        str | None, typer.Option(help='one arm: "latency_first=8,quality_first=4,firmament=1"')
    ] = None,
    scale: Annotated[
        ScaleName | None, typer.Option(help="the demo's cell (default), or ParSync's 200,000 slots")
    ] = None,
    trace: Annotated[str | None, typer.Option(help="real input, e.g. google2011:DIR")] = None,
    speedup: Annotated[
        int | None, typer.Option(min=1, help="divides a trace's times (default 50)")
    ] = None,
    resources: Annotated[
        str | None,
        typer.Option(
            help="of a trace: slots=N (default slots=13), or requests (CPU and memory vectors)"
        ),
    ] = None,
    overcommit: Annotated[
        float | None, typer.Option(help="factor on capacity under --resources requests")
    ] = None,
    duration: Annotated[
        float | None, typer.Option(min=0.001, help="seconds of load in all")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="root of all random streams")] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="paired seeds for the confidence intervals")
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="half the cell, short tasks and phases, two seeds: about a minute"
        ),
    ] = False,
    runtime: Annotated[
        RuntimeName | None,
        typer.Option(
            help="Ray actors in real time, or virtual time; paired seeds are always virtual"
        ),
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="of a running Ray cluster (default: an embedded one)")
    ] = None,
    hold: Annotated[
        bool,
        typer.Option(
            "--hold", help="after the run, keep Ray and the last arm's actors until you press Enter"
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="run directory to create (default runs/TIME)")
    ] = None,
) -> None:
    """Compare ParSync's synchronisation and flow scheduling on one shared cell; writes a run
    directory with report.html."""
    console = Console(stderr=True)
    trace_options = {"speedup": speedup, "resources": resources, "overcommit": overcommit}
    resolved = resolve(
        config, mix, scale, trace, trace_options, duration, seed, seeds, quick, runtime, address
    )
    if resolved.runtime == RuntimeName.VIRTUAL:
        _refuse("has no use in virtual time", hold=hold or None, address=address)
    # Everything that can be refused is tried before the run directory is made.
    if out is not None:
        check_new(out)
    with _named(config):
        check_memory(resolved, None)
        workload = make_workload(resolved, resolved.seed)
        check_memory(resolved, workload)
        check_arms(resolved, workload)
    too_large = int(workload.facts["tasks_larger_than_every_machine"])
    if too_large:
        is_larger = f"{counted(too_large, 'task')} {'is' if too_large == 1 else 'are'} larger"
        console.print(f"{is_larger} than every machine and will not be placed.")
    # Nothing is lost up to here: a stop signal ends the command at once.
    with stop_signals_noted() as interruption:
        try:
            with _runner(resolved, hold) as runner:
                interruption.check()
                directory = make_run_directory(out, resolved, workload)
                with run_in_progress(directory):
                    status = run(resolved, workload, directory, console, runner, interruption)
                if hold and not interruption.asked:
                    _hold(console, interruption)
        except KeyboardInterrupt:
            status = interruption.exit_status
        raise typer.Exit(interruption.exit_status if interruption.asked else status)


@contextlib.contextmanager
def _named(config: Path | None) -> Iterator[None]:
    """What is wrong with a run that a file describes names the file."""
    try:
        yield
    except AgoraError as error:
        raise error if config is None else AgoraError(f"{config}: {error}") from error


@contextlib.contextmanager
def _runner(config: RunConfig, hold: bool) -> Iterator[ArmRunner]:
    """Ray is imported only where it is used: virtual time starts in a second."""
    if config.runtime == RuntimeName.VIRTUAL:
        yield run_arm_virtual
        return
    from experiments.running_live import leave, prepare, run_arm_live

    prepare(config, hold)
    try:
        yield partial(run_arm_live, held=[] if hold else None)
    finally:
        leave()


def _hold(console: Console, interruption: Interruption) -> None:
    from parsync.runtime.live.dashboard import dashboard_note

    console.print(dashboard_note(), highlight=False, markup=False, soft_wrap=True)
    try:
        with interruption.raised_at_once():
            try:
                console.input(
                    "Ray and the actors of the last arm stay up; press Enter to end them "
                )
            except EOFError:  # nobody can press Enter
                console.print("Press Ctrl-C to end them.")
                while True:
                    time.sleep(3600)
    except KeyboardInterrupt:
        interruption.forget_ctrl_c()  # as it was told


def run(
    config: RunConfig,
    workload: Workload,
    directory: Path,
    console: Console,
    run_arm: ArmRunner,
    interruption: Interruption,
) -> int:
    """Every arm in full, then all of them over the paired seeds, then the report. Returns the exit
    status: 0, or that of the stop signal.

    A run that ends early writes what it has, marked partial; if it has nothing, its directory goes.
    An arm that one of its schedulers ends does not end the others, but leaves nothing to pair.
    Raises AgoraError if anything but a signal ended it, and if the results cannot be written.
    """
    interruption.note = _what_is_left(directory)
    facts, version = workload_facts(workload), version_text()
    results: list[ArmRun] = []
    seeds: dict[int, dict[str, Figures]] = {}
    broken: list[str] = []  # by their schedulers: the other arms run all the same
    reason, status = "", 0
    try:
        for arm, slug in zip(config.arms, slugs([arm.name for arm in config.arms]), strict=True):
            folder = directory / "arms" / slug
            reason = f"'{arm.name}': interrupted"
            result = _run_arm(
                config, arm, workload, folder, len(results) + 1, console, run_arm, interruption
            )
            results.append(result)
            if result.broken:
                broken.append(f"'{arm.name}': {result.stopped}")
            elif result.stopped:
                reason = f"'{arm.name}': {result.stopped}"
                status = interruption.exit_status if result.interrupted else BAD_INPUT
                break
            so_far = arm_result(config, result, {})
            keep_arm(directory, so_far, slug, facts, version, result.stopped)
            reason = "interrupted"
            if len(results) < len(config.arms) or config.seeds > 1:
                interruption.check()
            reason = ""
        if broken and not reason:
            reason, status = "the paired seeds did not run" if config.seeds > 1 else "", BAD_INPUT
        elif not reason and config.seeds > 1:
            reason = "interrupted during the paired seeds"
            _paired_seeds(config, directory, console, seeds, interruption)
            reason = ""
    except KeyboardInterrupt:
        status = interruption.exit_status
    except (AgoraError, MemoryError) as error:
        reason, status = str(error) or "not enough memory", BAD_INPUT
    if not results:
        shutil.rmtree(directory, ignore_errors=True)
        if status == BAD_INPUT:
            raise AgoraError(reason)
        return status
    reason = "; ".join([*broken, *([reason] if reason else [])])
    missing = len(config.arms) - len(results)
    if reason and missing:
        reason += f"; {missing} of {len(config.arms)} arms did not run"
    try:
        _finish(config, workload, results, seeds, directory, reason, console, interruption)
    except AgoraError as error:
        if not (directory / SUMMARY).exists() and all(result.stopped for result in results):
            shutil.rmtree(directory, ignore_errors=True)  # nothing in it can be used
        raise AgoraError(reason or str(error)) from error
    if status == BAD_INPUT:
        raise AgoraError(reason)
    return status


def _run_arm(
    config: RunConfig,
    arm: ArmConfig,
    workload: Workload,
    folder: Path,
    number: int,
    console: Console,
    run_arm: ArmRunner,
    interruption: Interruption,
) -> ArmRun:
    """One arm with its live table."""
    try:
        folder.mkdir()
    except OSError as error:
        raise AgoraError(f"{folder}: {error.strerror}") from error
    title = f"{number}/{len(config.arms)} {arm.name}"
    names = [f"{group.name}-{place}" for group in arm.groups for place in range(group.count)]
    with Live(console=console, refresh_per_second=4, transient=True) as live:
        begun_s = time.monotonic()

        def show(snapshot: Snapshot) -> None:
            elapsed_s = time.monotonic() - begun_s
            left_s = elapsed_s * (workload.end_us - snapshot.at_us) / max(1, snapshot.at_us)
            live.update(live_table(title, names, snapshot, workload.end_us, left_s))

        result = run_arm(config, arm, workload, config.seed, folder, show, interruption)
    end = (
        "interrupted after"
        if result.interrupted
        else "stopped after"
        if result.stopped
        else "done in"
    )
    why = f": {result.stopped}" if result.broken else ""
    console.print(Text(f"{title}: {end} {result.wall_s:.1f} s{why}"), soft_wrap=True)
    for restart in result.restarts:
        console.print(Text(f"  {restarts.sentence(restart)}"), soft_wrap=True)
    return result


def _finish(
    config: RunConfig,
    workload: Workload,
    results: list[ArmRun],
    seeds: dict[int, dict[str, Figures]],
    directory: Path,
    reason: str,
    console: Console,
    interruption: Interruption,
) -> None:
    if reason:
        console.print("Writing partial results; press Ctrl-C again to stop at once.")
    try:
        finish_run(config, workload, results, seeds, directory, reason, console, interruption)
    except KeyboardInterrupt:
        if (directory / SUMMARY).exists():
            said = f"The results are in {_what_is_left(directory)}."
            console.print(Text(said), soft_wrap=True)
        raise


def _what_is_left(directory: Path) -> str:
    return f"{directory}; `python -m experiments.report {directory}` makes the report"


def _paired_seeds(
    config: RunConfig,
    directory: Path,
    console: Console,
    figures: dict[int, dict[str, Figures]],
    interruption: Interruption,
) -> None:
    """Adds figures by seed and arm as they come, and writes them."""
    slug_of = dict(zip((names := [arm.name for arm in config.arms]), slugs(names), strict=True))
    total = config.seeds * len(config.arms)
    begun_s = time.monotonic()
    with (
        console.status("paired seeds") as status,
        contextlib.closing(run_seeds(config, interruption)) as runs,
    ):
        for done, (seed, name, result) in enumerate(runs, start=1):
            of_seed = figures.setdefault(seed, {})
            of_seed[name] = result
            kept = {slug_of[arm]: seed_result(seed, its) for arm, its in of_seed.items()}
            write_seed(directory, seed, kept)
            left_s = (time.monotonic() - begun_s) * (total - done) / done
            status.update(
                f"paired seeds in virtual time: {done} of {total} runs, about {left_s:.0f} s left"
            )


if __name__ == "__main__":
    run_command(app)
