"""Greedy schedulers: each task in turn goes to the machine that its kind prefers. kinds.py is the
table of the kinds, and has the one that preempts; scheduler.py is what they share, with
patience."""
