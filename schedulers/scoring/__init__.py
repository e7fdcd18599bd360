"""Scoring schedulers: filters, then scores, one task after the other (docs/scoring.md)."""
