"""The graphs of flowsolver.generate, one module per policy."""
