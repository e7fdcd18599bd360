"""Checks of drawn figures that several tests share."""

from __future__ import annotations

from matplotlib.figure import Figure


def repeated_labels(figure: Figure) -> list[list[str]]:
    """The labels of each axis on which one stands twice within its limits."""
    found = []
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            at = [float(value) for value in axis.get_majorticklocs()]
            labels = [
                label
                for value, label in zip(
                    at, axis.get_major_formatter().format_ticks(at), strict=True
                )
                if low <= value <= high and label
            ]
            if len(set(labels)) < len(labels):
                found.append(labels)
    return found
