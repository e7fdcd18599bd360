"""The graphs of flowsolver.generate, a module for each policy."""
