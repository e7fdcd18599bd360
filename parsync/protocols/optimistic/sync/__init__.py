"""Sync policies: which partitions an agent refreshes, and when."""
