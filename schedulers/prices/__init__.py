"""Slot prices: what a free slot is worth to the tasks that come next.

interface.py   what an estimator of prices is given, and what it gives
registry.py    every kind of estimator by name
options.py     the options by which a scheduler uses prices

An estimator is one file with a SPEC.
"""
