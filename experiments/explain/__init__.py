"""What became of single tasks of a run: their claims, the conflicts among these, and what each
conflict cost."""
