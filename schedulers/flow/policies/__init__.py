"""Scheduling policies of the flow scheduler: one class per file, its graph drawn in its
docstring."""
