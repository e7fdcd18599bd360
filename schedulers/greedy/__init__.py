"""Greedy schedulers: each task in turn goes to the machine that its kind prefers. kinds.py is the
table of the kinds, scheduler.py what they share; in patience.py tasks wait for preferred machines,
and in preempting.py tasks of lower priority make room."""
