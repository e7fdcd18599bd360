"""The probing protocol: schedulers without a view of the cell, and queues at the machines (Sparrow,
SOSP 2013)."""
