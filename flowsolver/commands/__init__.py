"""The commands of `python -m flowsolver`, a module each."""
