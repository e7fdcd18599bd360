"""The report of a run: a page, and a table for the terminal. What a run directory holds is told in
experiments.summary."""

from experiments.report.page import REPORT, write_report
from experiments.report.terminal import comparison_table

__all__ = ["REPORT", "comparison_table", "write_report"]
