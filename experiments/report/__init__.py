"""The report of a run: a page, and a table for the terminal. What a run directory holds stands in
experiments.analysis.run_directory.

Empty: `python -m experiments.report` imports it before its first line can see to stop signals.
"""
