"""Runs as Python objects: what they measured, as tables, models and figures.

    from experiments.results import load_run

    run = load_run("runs/2026-01-31T12-00-00")
    run.metrics()                                   # an Arrow table, one row per arm
    run.arm("ParSync adaptive").table("tasks")      # one row per committed task
    run.figure("delay_distribution")                # a matplotlib figure

docs/results.md has the tables and their meaning.
"""

from experiments.results.loaded_run import LoadedArm, LoadedRun, load_run

__all__ = ["LoadedArm", "LoadedRun", "load_run"]
