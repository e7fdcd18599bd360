"""Slot prices: what a free slot is worth to the tasks that come next.

interface.py       what an estimator of prices is given, and what it gives
registry.py        every kind of estimator by name
options.py         the options by which a scheduler uses prices
conformance.py     check_estimator(SPEC): does a kind keep the contract?
price_check.py     what prices must be
periodic.py        what the kinds here share, with
offered_demand.py  the demand for each machine, counted from the tasks offered, and
slots.py           what a slot is where machines have several resources

An estimator is one file with a SPEC.
"""
