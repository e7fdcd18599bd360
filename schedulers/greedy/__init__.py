"""Greedy schedulers: each task in turn to the machine its kind prefers, one file per kind over one
kernel (schedulers/native/placer.hpp)."""
