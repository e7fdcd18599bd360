"""Runs the benchmarks and writes one readable report: figure, named peer in the same run, ratio,
target, machine.

    python -m tests.benchmarks.report [--out DIR] [PYTEST ARGUMENT ...]       run, then write
    DIR/benchmarks.json, report.md, report.html python -m tests.benchmarks.report --compare OLD.json
    NEW.json             two runs side by side

Each benchmark group is one figure. Its members are Agora's (id "agora") and its peers. extra_info
of Agora's: unit; amount, what one round does, for a rate (without it the figure is the time of a
round in the unit, s or ms); target, in the unit; ratio_target, against the peer; note, shown beside
the figure. A benchmark that measures something else than a round gives its figure itself, in the
unit, and larger_is_better. A peer's label is its name, its id otherwise.
"""

from __future__ import annotations

import argparse
import html
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SECONDS_PER = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
HERE = Path(__file__).parent


def figure(benchmark: dict[str, Any], unit: str) -> float:
    """The benchmark's own figure, or the median round as a rate or a time in `unit`."""
    if "figure" in benchmark["extra_info"]:
        return float(benchmark["extra_info"]["figure"])
    median_s = float(benchmark["stats"]["median"])
    amount = benchmark["extra_info"].get("amount")
    return float(amount) / median_s if amount is not None else median_s / SECONDS_PER[unit]


def rows_of(report: dict[str, Any]) -> list[dict[str, Any]]:
    """One row per group and peer: group, unit, ours, larger_is_better, peer, theirs, ratio (above
    1: ours is better), target, ratio_target, met, note."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for benchmark in report["benchmarks"]:
        groups.setdefault(benchmark["group"] or benchmark["name"], []).append(benchmark)
    rows = []
    for group, members in groups.items():
        own = [
            member
            for member in members
            if member["extra_info"].get("target") is not None or member.get("param") == "agora"
        ]
        ours = own[0] if own else members[0]
        info = ours["extra_info"]
        unit = info.get("unit", "s")
        value = figure(ours, unit)
        larger = bool(info.get("larger_is_better", "amount" in info))
        others = [member for member in members if member is not ours]
        peers: list[dict[str, Any] | None] = [*others] or [None]
        for peer in peers:
            theirs = (
                None
                if peer is None
                else figure(
                    {**peer, "extra_info": {**peer["extra_info"], "amount": info.get("amount")}},
                    unit,
                )
            )
            ratio = None if theirs is None else (value / theirs if larger else theirs / value)
            target, ratio_target = info.get("target"), info.get("ratio_target")
            met = [value >= target if larger else value <= target] if target is not None else []
            met += [ratio >= ratio_target] if ratio_target is not None and ratio is not None else []
            rows.append(
                {
                    "group": group,
                    "unit": unit,
                    "ours": value,
                    "larger_is_better": larger,
                    "peer": ""
                    if peer is None
                    else str(peer["extra_info"].get("label") or peer.get("param") or peer["name"]),
                    "theirs": theirs,
                    "ratio": ratio,
                    "target": target,
                    "ratio_target": ratio_target,
                    "met": all(met) if met else None,
                    "note": info.get("note", ""),
                }
            )
    return rows


def number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def cells(row: dict[str, Any]) -> list[str]:
    target = " and ".join(
        part
        for part in (
            f"{number(row['target'])} {row['unit']}" if row["target"] is not None else "",
            f"{number(row['ratio_target'])} x the peer" if row["ratio_target"] is not None else "",
        )
        if part
    )
    verdict = {None: "", True: "met", False: "missed"}[row["met"]]
    theirs = f"{number(row['theirs'])} {row['unit']}" if row["theirs"] is not None else ""
    ratio = f"{number(row['ratio'])}" if row["ratio"] is not None else ""
    return [
        row["group"],
        f"{number(row['ours'])} {row['unit']}",
        row["peer"],
        theirs,
        ratio,
        target,
        verdict,
        row["note"],
    ]


HEADER = ["figure", "Agora", "peer", "peer's figure", "ratio", "target", "", "beside it"]


def machine_line(report: dict[str, Any]) -> str:
    info = report["machine_info"]
    cpu = info.get("cpu", {})
    return (
        f"{cpu.get('brand_raw', 'unknown processor')}, {cpu.get('count', '?')} processors, "
        f"{info.get('system', '')} {info.get('release', '')}, Python "
        f"{info.get('python_version', '')}, {report.get('datetime', '')[:19]}"
    )


def markdown(title: str, note: str, header: list[str], rows: list[list[str]]) -> str:
    lines = [
        f"# {title}",
        "",
        note,
        "",
        "| " + " | ".join(header) + " |",
        "|" + "---|" * len(header),
    ]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def page(title: str, note: str, header: list[str], rows: list[list[str]]) -> str:
    def line(row: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>"

    body = "\n".join(line(row, "td") for row in rows)
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" '
        'content="width=device-width">'
        f"<title>{html.escape(title)}</title>"
        "<style>body{font:15px/1.5 system-ui,sans-serif;margin:2rem "
        "auto;max-width:70rem;padding:0 1rem}"
        "div{overflow-x:auto}table{border-collapse:collapse}td,th{padding:.3rem "
        ".7rem;border-bottom:1px solid #ccc;text-align:left}"
        "td:nth-child(n+2){white-space:nowrap}</style>"
        f"<h1>{html.escape(title)}</h1><p>{html.escape(note)}</p>"
        f"<div><table>{line(header, 'th')}\n{body}</table></div></html>\n"
    )


def comparison(old: dict[str, Any], new: dict[str, Any]) -> list[list[str]]:
    """New against old, by group: above 1 is better now."""
    before = {row["group"]: row for row in rows_of(old)}
    rows = []
    for row in rows_of(new):
        was = before.get(row["group"])
        if was is None:
            rows.append([row["group"], "", f"{number(row['ours'])} {row['unit']}", "new"])
            continue
        ratio = row["ours"] / was["ours"] if row["larger_is_better"] else was["ours"] / row["ours"]
        rows.append(
            [
                row["group"],
                f"{number(was['ours'])} {was['unit']}",
                f"{number(row['ours'])} {row['unit']}",
                number(ratio),
            ]
        )
    return rows


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        description="run the benchmarks and write a report, or compare two"
    )
    parser.add_argument("--out", type=Path, default=Path("bench"), help="where the report goes")
    parser.add_argument(
        "--compare", nargs=2, type=Path, metavar=("OLD", "NEW"), help="two benchmarks.json"
    )
    options, rest = parser.parse_known_args(arguments)
    if options.compare:
        try:
            old, new = (json.loads(path.read_text(encoding="utf-8")) for path in options.compare)
        except (OSError, ValueError) as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        print(
            markdown(
                "Benchmarks compared",
                "ratio above 1: better now",
                ["figure", "old", "new", "ratio"],
                comparison(old, new),
            )
        )
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    raw = options.out / "benchmarks.json"
    files = sorted(str(path) for path in HERE.glob("bench_*.py"))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--benchmark-enable",
        "--benchmark-only",
        f"--benchmark-json={raw}",
        *files,
        *rest,
    ]
    status = subprocess.run(command, check=False).returncode
    if not raw.exists() or not raw.stat().st_size:
        return status or 1
    report = json.loads(raw.read_text(encoding="utf-8"))
    rows = [cells(row) for row in rows_of(report)]
    text = markdown("Agora benchmarks", machine_line(report), HEADER, rows)
    (options.out / "report.md").write_text(text, encoding="utf-8")
    (options.out / "report.html").write_text(
        page("Agora benchmarks", machine_line(report), HEADER, rows), encoding="utf-8"
    )
    print(text)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
