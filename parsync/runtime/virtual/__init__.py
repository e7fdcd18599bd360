"""The virtual runtime: participants in one process, on a clock of integer microseconds.

run.py runs an arm, on the event queue of parsync/core/native/event_queue.cpp; repeat.py runs it
again and compares. stepped.py has the loops of the live runtime on a heap of events, with the times
of a calibration.
"""
