"""The comparison of several runs: their arms in one table, paired by seed.

Runs can be compared if they gave their arms the same work and counted it alike: equal workload
options, equal workloads under equal seeds (by their digests), equal settling and draining times.
What else differs between them, such as the time messages take, is named below the table. Arms are
compared seed by seed over the seeds all of them ran; without common seeds the runs' own figures are
shown without confidence intervals. Live runs are compared with live runs only, in tables of their
own.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from experiments.analysis.run_directory import read_summary
from experiments.analysis.seed_variation import are_like_loads
from experiments.analysis.statistics import interval_in_words
from experiments.analysis.summary import BASELINE, distinct, paired
from experiments.analysis.summary_model import ArmSummary, ComparedArms, Phase, RunSummary, Settings
from experiments.config.decision_basis import basis_text, basis_titles
from experiments.files import whole_file
from experiments.report.page import verdict_page
from experiments.report.terminal import compared_table
from experiments.report.verdict import Row, unplaced_share, verdict
from experiments.workloads import registry
from experiments.workloads.resampling import RESAMPLE
from parsync.metrics.quantity import Quantity, counted
from shared_state.errors import AgoraError

_SAME = ("name", "machines", "dimensions", "capacity", "preferred_permille", "end_us", "phases")
_SAME_SETTINGS = ("settle_s", "drain_s", "workload")
_NOTED = ("runtime", "virtual", "live", "heartbeat_us", "sample_s")


class Comparison(ComparedArms):
    """The arms of several runs.

    Attributes:
        notes: What else differs between the runs.
    """

    notes: list[str]


def compare(runs: Sequence[Path], metrics: Sequence[str], out: Path | None) -> None:
    """Print the table of these runs, and write it to `out` if given.

    Args:
        metrics: Names of figures in summary.json; empty for the main ones.
        out: File to create; its suffix chooses the format.

    Raises:
        AgoraError: A metric is unknown, the runs cannot be compared, or `out` cannot be written.
    """
    write = _writer(out)
    combined = combine(runs)
    quantities = _quantities(metrics, combined)
    rows = verdict(combined, quantities)
    if not rows:
        raise AgoraError(
            f"--metric {', '.join(quantity.key for quantity in quantities)}: no run measured it"
        )
    _show(combined, rows if metrics else [row for row in rows if row.quantity.column_label])
    if out is not None:
        _create(out, write(combined, rows))


def combine(directories: Sequence[Path]) -> Comparison:
    """The arms of all runs, named after their run where there are several, with `paired` made anew.

    Raises AgoraError if a directory is not a run, is named twice, or had another workload than the
    first.
    """
    summaries = [read_summary(directory) for directory in directories]
    first = summaries[0]
    names = _run_names(directories)
    arms: list[ArmSummary] = []
    for directory, summary, name in zip(directories, summaries, names, strict=True):
        different = _difference(first, summary)
        if different:
            raise AgoraError(
                f"{directory}: cannot be compared with {directories[0]}: {different}; "
                "runs must have the same workload, settling time and draining time"
            )
        for arm in (*summary.arms, *summary.live_runs):
            label = f"{name}: {arm.name}" if len(names) > 1 else arm.name
            arms.append(arm.model_copy(update={"name": label, "slug": f"{name}/{arm.slug}"}))
    seeds = dict.fromkeys(str(summary.seed) for summary in summaries)
    quantities = distinct([one for summary in summaries for one in summary.quantities])
    baseline = f"{names[0]}: {BASELINE}" if len(names) > 1 else BASELINE
    by_name = dict(zip(names, summaries, strict=True))
    virtual = [arm for arm in arms if arm.runtime == "virtual"]
    live = [arm for arm in arms if arm.runtime == "ray"]
    compared = virtual or live
    # Arms are of summaries that were checked, but for their slugs, which are paths here.
    return Comparison.model_construct(
        seed=", ".join(seeds),
        runtime="virtual" if virtual else "ray",
        partial=any(summary.partial for summary in summaries),
        partial_reason=", ".join(name for name, summary in by_name.items() if summary.partial),
        workload=first.workload,
        quantities=quantities,
        notes=_notes(by_name),
        arms=compared,
        live_runs=live if virtual else [],
        paired=paired(compared, quantities, baseline),
    )


def _difference(one: RunSummary, other: RunSummary) -> str:
    """The first thing that keeps two runs from being compared, "" if there is none."""
    for field in _SAME:
        mine, theirs = getattr(one.workload, field), getattr(other.workload, field)
        if mine != theirs:
            return f"{field}: expected {_brief(mine)}, got {_brief(theirs)}"
    ours, others = _settings(one, _SAME_SETTINGS), _settings(other, _SAME_SETTINGS)
    elsewhere = _paths(one)
    for field in sorted(ours | others):
        if ours.get(field) != others.get(field) and field not in elsewhere:
            return f"{field}: expected {_brief(ours.get(field))}, got {_brief(others.get(field))}"
    loads = [one.workload.offered_permille, other.workload.offered_permille]
    by_chance = RESAMPLE in one.workload.facts and not _seeds(one) & _seeds(other)
    if by_chance and not are_like_loads(loads):
        return (
            f"they share no seed, and their resamples offer {loads[0] / 10:g} % and "
            f"{loads[1] / 10:g} % of the cell, and these loads are not similar"
        )
    known, these = _workload_digests(one), _workload_digests(other)
    for seed in sorted(known.keys() & these.keys()):
        if known[seed] != these[seed]:
            return f"seed {seed}: its tasks, machines or arrivals differ"
    return ""


def _seeds(summary: RunSummary) -> set[int]:
    return set(summary.paired.seeds) or {summary.seed}


def _paths(summary: RunSummary) -> list[str]:
    """The settings that say where a trace lies. It may lie anywhere: its digest counts."""
    workload = summary.config.get("workload", {})
    kind = str(workload.get("kind", "")) if isinstance(workload, dict) else ""
    try:
        return [f"workload.{name}" for name in registry.get(kind).path_options()]
    except AgoraError:  # not installed here
        return []


def _settings(summary: RunSummary, names: Sequence[str]) -> Settings:
    """Part of a run's configuration, as {path: value}."""

    def flat(path: str, value: JsonValue) -> Settings:
        if isinstance(value, dict):
            return {
                inner: v
                for name, part in value.items()
                for inner, v in flat(f"{path}.{name}", part).items()
            }
        return {path: value}

    return {path: v for name in names for path, v in flat(name, summary.config.get(name)).items()}


def _workload_digests(summary: RunSummary) -> dict[int, str]:
    """The digest of the workload of each seed that the run used."""
    digests = {row.seed: row.workload for arm in summary.arms for row in arm.seeds}
    return {**digests, summary.seed: summary.workload.digest}


def _notes(summaries: Mapping[str, RunSummary]) -> list[str]:
    """What else differs between the runs, a note for each setting."""
    settings = {name: _settings(summary, _NOTED) for name, summary in summaries.items()}
    notes = []
    for path in sorted(set().union(*settings.values())):
        values = {name: its.get(path) for name, its in settings.items()}
        if len(set(map(str, values.values()))) > 1:
            notes.append(
                f"{path}: " + ", ".join(f"{value} in {name}" for name, value in values.items())
            )
    return notes


def csv_text(summary: Comparison, rows: Sequence[Row]) -> str:
    """The figures as CSV: one line per arm and figure, in the units of summary.json, with the run's
    own value, the median over seeds and the difference to the baseline. Lines of live runs come
    last.

    The column runtime is "virtual" or "ray" (live), and basis what the decision times of the arm
    stand for: figures of different runtimes or bases cannot be compared.

    The column at_least says that value and mean may be lower bounds (report/verdict.py);
    difference_at_least and difference_at_most say that the difference rests on one.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    names = ("estimate", "low", "high", "level", "n")
    sides = ("at_least", "at_most")
    columns = [
        "value",
        "value_at_least",
        *names,
        "at_least",
        *(f"difference_{name}" for name in (*names, *sides)),
    ]
    writer.writerow(["arm", "runtime", "basis", "metric", *columns])
    for arm in (*summary.arms, *summary.live_runs):
        for row in rows:
            key = row.quantity.key
            interval = summary.paired.arms.get(arm.slug, {}).get(key)
            difference = summary.paired.differences.get(arm.slug, {}).get(key)
            values = [arm.overall.value(key), arm.overall.is_bound(key)]
            values += [getattr(interval, name, None) for name in (*names, "at_least")]
            absolute = None if difference is None else difference.absolute
            values += [getattr(absolute, name, None) for name in names]
            values += [getattr(difference, name, None) for name in sides]
            which = [arm.name, arm.runtime, basis_text(arm.basis), key]
            writer.writerow([*which, *map(_csv_value, values)])
    return buffer.getvalue()


def _csv_value(value: float | bool | None) -> str:
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, bool) else str(value)


def markdown_text(summary: Comparison, rows: Sequence[Row]) -> str:
    """A table of arms and figures for each set of comparable arms; the best of a column in bold,
    with the difference to the baseline below its value. Live runs have tables of their own."""
    parts = [_markdown_tables(summary, rows), _escaped(_basis(summary))]
    if (live := summary.live()) is not None:
        tables = _markdown_tables(live, verdict(live, [row.quantity for row in rows]))
        parts += ["Live runs, one run each:", tables]
    return "\n\n".join(parts) + "\n"


def _markdown_tables(summary: ComparedArms, rows: Sequence[Row]) -> str:
    sets = summary.sets()
    titles = basis_titles([one.arms[0].basis for one in sets])
    tables = []
    for title, one in zip(titles, sets, strict=True):
        heading = [f"**{_escaped(title)}**", ""] if len(sets) > 1 else []
        tables.append("\n".join([*heading, *_markdown_rows(one.arms, rows)]))
    return "\n\n".join(tables)


def _markdown_rows(arms: Sequence[ArmSummary], rows: Sequence[Row]) -> list[str]:
    lines = [
        "| Arm | " + " | ".join(row.quantity.label for row in rows) + " |",
        "|---|" + "---:|" * len(rows),
    ]
    for arm in arms:
        cells = []
        for row in rows:
            cell = row.cell(arm.slug)
            value = f"**{cell.value}**" if cell.best else cell.value
            change = (
                f"{cell.change} ({cell.change_interval})" if cell.change_interval else cell.change
            )
            spread = f" ({cell.spread})" if cell.spread else ""
            cells.append("<br>".join(part for part in (f"{value}{spread}", change) if part))
        lines.append(f"| {_escaped(arm.name)} | " + " | ".join(cells) + " |")
    return lines


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    return re.sub(r"([\\`*_\[\]<>|~$&])", r"\\\1", text)


def _html_text(summary: Comparison, rows: Sequence[Row]) -> str:
    return verdict_page(summary, rows, "Runs compared", _basis(summary))


_FORMATS = {".html": _html_text, ".csv": csv_text, ".md": markdown_text}


def _basis(summary: Comparison) -> str:
    """What the figures rest on, in a sentence."""
    seeds = summary.paired.seeds
    waiting = [arm.name for arm in summary.arms if unplaced_share(summary, arm)]
    unplaced = (
        f" Arms that left tasks unplaced: {', '.join(waiting)}. Their delays are lower bounds, "
        "marked ≥; arms that left many are not ranked."
        if waiting
        else ""
    )
    differing = f" The runs differ in {'; '.join(summary.notes)}." if summary.notes else ""
    if not seeds:
        cut = (
            " Arms that were cut short are not ranked."
            if any(arm.partial for arm in summary.arms)
            else ""
        )
        return (
            "The runs share no seeds: each figure is from one run, and differences may be due to "
            f"chance.{cut}{unplaced}{differing}"
        )
    baseline = next(arm.name for arm in summary.arms if arm.slug == summary.paired.baseline)
    return (
        f"Medians over the {counted(len(seeds), 'seed')} that all arms ran: "
        f"{interval_in_words(len(seeds))}. Differences to {baseline} are taken seed by seed."
        f"{unplaced}{differing}"
    )


def _quantities(names: Sequence[str], summary: Comparison) -> list[Quantity]:
    known = {quantity.key: quantity for quantity in summary.quantities}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise AgoraError(
            f"--metric {unknown[0]}: unknown; expected one of {', '.join(sorted(known))}"
        )
    return [known[name] for name in names] or summary.headline


def _run_names(directories: Sequence[Path]) -> list[str]:
    """The shortest ends of the paths that tell them apart."""
    resolved = [directory.resolve() for directory in directories]
    for directory, path in zip(directories, resolved, strict=True):
        if resolved.count(path) > 1:
            raise AgoraError(f"{directory}: given twice")
    depth = 1
    while len({path.parts[-depth:] for path in resolved}) < len(resolved):
        depth += 1
    return ["/".join(path.parts[-depth:]) for path in resolved]


def _brief(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, list) and value and isinstance(value[0], Phase):
        loads = "/".join(str(phase.load_percent) for phase in value)
        return f"{loads} % until {value[-1].end_us / 1e6:g} s"
    return str(value)


def _writer(out: Path | None) -> Any:
    if out is None:
        return None
    if out.suffix not in _FORMATS:
        raise AgoraError(f"--out {out}: expected a name ending in {', '.join(_FORMATS)}")
    if out.exists():
        raise AgoraError(f"--out {out}: already exists; choose another name")
    return _FORMATS[out.suffix]


def _create(out: Path, text: str) -> None:
    try:
        with whole_file(out) as unfinished:
            unfinished.write_text(text, "utf-8")
    except OSError as error:
        raise AgoraError(f"--out {out}: cannot write it: {error.strerror}") from error


def _show(summary: Comparison, rows: Sequence[Row]) -> None:
    console = Console()
    console.print(compared_table(summary, rows))
    for row in rows:
        if row.sentence:
            console.print(Text.assemble((row.quantity.label, "bold"), f": {row.sentence}"))
    console.print(Text(_basis(summary)))
