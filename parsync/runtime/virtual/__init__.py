"""The virtual runtime: participants in one process, on a clock of integer microseconds.

run.py runs an arm, repeat.py runs it again and compares. runtime.py has the plain event heap;
stepped.py has the loops of the live runtime on such a heap, with the times of a calibration.
"""
