"""Policies: which arcs the flow graph has between tasks and machines, and what they cost."""
