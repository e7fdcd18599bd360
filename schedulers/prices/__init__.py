"""Slot prices: what a free slot is worth to the tasks that come next.

interface.py    what an estimator of prices is given, and what it gives
registry.py     every kind of estimator by name; the options by which a scheduler uses prices
conformance.py  check_estimator(SPEC): does a kind keep the contract?
periodic.py     what the kinds here share: periods, demand counted from the tasks offered, and
                what a slot is where machines have several resources
kinds.py        the kinds themselves, an estimator each
fluid.py        the best that placements can be in steady state, and dual prices
"""
