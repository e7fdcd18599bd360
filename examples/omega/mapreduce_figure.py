"""How much faster MapReduce jobs run with extra workers, and what that does to the use of the cell.

    python examples/omega/mapreduce_figure.py RUN mapreduce.png

RUN is the directory of a run of examples/omega/mapreduce.toml. Above: the distribution of the
speed-ups of jobs against the first arm, as in Omega's Fig. 15. Below: the use of the cell over time
in the first arm and the second, as in Fig. 16.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.ticker import FuncFormatter

from experiments.figures import style
from experiments.results import load_run
from experiments.results.mapreduce import speedups

SIZE_IN = (8.6, 6.4)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("png", type=Path)
    chosen = parser.parse_args()
    baseline, *others = load_run(chosen.run).arms
    with style.drawing(2, 1) as (figure, grid):
        figure.set_size_inches(*SIZE_IN)
        above, below = grid.flat
        for index, arm in enumerate(others, start=1):
            found = np.sort(speedups(arm, baseline))
            share = np.arange(1, len(found) + 1) / len(found)
            above.plot(found, share, label=arm.name, **style.line_style(index))
            half, most = np.quantile(found, [0.5, 0.8])
            faster = np.mean(found > 1.05)
            print(
                f"{arm.name}: {len(found)} jobs, {faster:.0%} at least 5 % faster; median "
                f"{half:.2f}, 80th percentile {most:.2f}"
            )
        above.set_xscale("log")
        above.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        above.set_xlabel(f"Run time in '{baseline.name}' over run time")
        above.set_ylabel("Share of the jobs")
        for index, arm in enumerate((baseline, *others)):
            cell = arm.table("cell", ["at_us", "used_permille"])
            used = cell["used_permille"].to_numpy() / 1000
            print(f"{arm.name}: mean use {used.mean():.1%}, standard deviation {used.std():.1%}")
            if index < 2:
                look = style.line_style(index)
                below.plot(cell["at_us"].to_numpy(), used, label=arm.name, **look)
        style.duration_axis(below, "x", log=False)
        style.share_axis(below)
        below.set_title("Use of the cell")
        entries: dict[str, Any] = {}
        for axes in (below, above):
            handles, labels = axes.get_legend_handles_labels()
            entries |= dict(zip(labels, handles, strict=True))
        style.legend_of(figure, [(handle, label) for label, handle in entries.items()])
        FigureCanvasAgg(figure).print_png(chosen.png, metadata={"Software": None})


if __name__ == "__main__":
    main()
