"""Fits weights of counted work to measured times, and shows what the fit leaves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from shared_state.tasks import Int64

FITS = 30


@dataclass(frozen=True, slots=True)
class Samples:
    """n measured pieces of work. kind, situation: str[n], what they are shown by; every pair of
    them weighs the same in a fit.

    true_ps: float64[n], picoseconds. counts: float64[n, F].
    """

    kind: np.ndarray
    situation: np.ndarray
    true_ps: np.ndarray
    counts: np.ndarray

    def fit(self) -> Int64:
        """int64[F]: picoseconds per count, by non-negative least squares. The error is relative to
        the geometric mean of true and predicted time, so that too much and too little weigh the
        same; the prediction is the previous fit's."""
        pair = np.char.add(np.char.add(self.kind, "|"), self.situation)
        _, place, size = np.unique(pair, return_inverse=True, return_counts=True)
        weight = 1.0 / np.sqrt(size[place])
        predicted = self.true_ps
        for _ in range(FITS):
            scale = weight / np.sqrt(self.true_ps * predicted)
            weights, _ = nnls(self.counts * scale[:, None], self.true_ps * scale, maxiter=100_000)
            predicted = np.maximum(self.counts @ weights, 1.0)
        fitted: Int64 = np.rint(weights).astype(np.int64)
        return fitted

    def show(self, title: str, weights: Int64) -> None:
        """Print predicted / true by kind, by situation and over all."""
        ratio = self.counts @ weights / self.true_ps
        print(
            f"\n{title}: predicted / "
            f"true\n{'':28}{'n':>7}{'true us':>9}{'p10':>7}{'median':>8}{'p90':>7}"
        )

        def line(name: str, chosen: np.ndarray) -> None:
            p10, median, p90 = np.quantile(ratio[chosen], (0.1, 0.5, 0.9))
            true_us = np.median(self.true_ps[chosen]) / 1e6
            print(f"{name:28}{chosen.sum():7}{true_us:9.0f}{p10:7.2f}{median:8.2f}{p90:7.2f}")

        for column in (self.kind, self.situation):
            for name in dict.fromkeys(column.tolist()):
                line(name, column == name)
        line("all", np.ones(len(ratio), bool))
        print(f"within a factor of two: {np.mean((ratio > 0.5) & (ratio < 2)):.1%}")

    def report(self, names: list[str], in_use: Int64) -> None:
        """Print a fit, the weights in use, and what both leave."""
        fitted = self.fit()
        print("picoseconds per count:  fitted  in use")
        for name, new, old in zip(names, fitted.tolist(), in_use.tolist(), strict=True):
            print(f"  {name:16}{new:14,}{old:12,}")
        self.show("fitted weights", fitted)
        self.show("weights in use", in_use)
