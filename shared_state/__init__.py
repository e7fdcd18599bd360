"""The cell: what is true, how it changes, and what a scheduler believes about it."""
