"""The architectures of Omega against t_job, in one picture.

    python examples/omega/figure.py DIR omega.png

DIR is the directory of the sweep examples/omega/architectures.toml. A ring instead of a filled mark
is a lower bound: jobs were still waiting when the run ended.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from statistics import mean
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.ticker import FuncFormatter
from pyarrow import parquet

from experiments.figures import style

BUSY = ("service_useful_share", "service_wasted_share")
PANELS = (
    ("Mean wait of batch jobs", ("job_wait_batch_mean_us",), True),
    ("Mean wait of service jobs", ("job_wait_service_mean_us",), True),
    ("Share of time deciding on service jobs", BUSY, False),
    ("Conflict fraction of service jobs", ("service_conflict_fraction",), False),
)
SIZE_IN = (8.6, 7.2)


def points(rows: list[dict[str, Any]], arm: str, figures: tuple[str, ...]) -> list[Any]:
    """(t_job in us, the sum of the figures averaged over seeds, whether that is a lower bound) at
    each value of t_job, of an arm that has them."""
    mine = [row for row in rows if row["arm"] == arm]
    column = next(name for name in mine[0] if arm in name and name.endswith("job_us"))
    found = []
    for t_job_us in sorted({row[column] for row in mine}):
        here = [row for row in mine if row[column] == t_job_us]
        values = [[row[name] for name in figures] for row in here]
        if all(value is not None for row in values for value in row):
            bound = any(figures[0] in row["lower_bounds"].split(",") for row in here)
            found.append((t_job_us, mean(map(sum, values)), bound))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sweep", type=Path)
    parser.add_argument("png", type=Path)
    chosen = parser.parse_args()
    rows = parquet.read_table(chosen.sweep / "points.parquet").to_pylist()
    arms = list(dict.fromkeys(row["arm"] for row in rows))
    with style.drawing(2, 2) as (figure, grid):
        figure.set_size_inches(*SIZE_IN)
        for axes, (title, figures, is_time) in zip(grid.flat, PANELS, strict=True):
            for index, arm in enumerate(arms):
                found = points(rows, arm, figures)
                x, y = [one[0] for one in found], [one[1] for one in found]
                look = style.line_style(index)
                axes.plot(x, y, label=arm, **look)
                for t_job_us, value, bound in found:
                    face = style.PAPER if bound else look["color"]
                    mark = style.marker(index)
                    axes.plot(t_job_us, value, mark, mfc=face, mec=look["color"], ms=5)
            axes.set_title(title)
            axes.set_xlabel("t_job of service jobs")
            style.duration_axis(axes, "x", log=True)
            if is_time:
                style.duration_axis(axes, "y", log=True)
            elif figures == BUSY:
                style.share_axis(axes)
            else:
                axes.set_yscale("symlog", linthresh=0.001)
                axes.set_ylim(bottom=-0.0003)
                axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        style.legend(figure, grid.flat[0])
        FigureCanvasAgg(figure).print_png(chosen.png, metadata={"Software": None})


if __name__ == "__main__":
    main()
