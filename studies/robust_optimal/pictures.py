"""The figures of the study."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from measure import SHIFTS

COLOURS = plt.get_cmap("viridis")(np.linspace(0, 0.9, 8))


def proofs(cells, time_limit, path):
    """Figure 2: instances proven over CPU time, then over the gap that was left."""
    figure, axes = plt.subplots(
        1, 2, figsize=(10, 4), layout="constrained", sharey=True, width_ratios=(2, 1)
    )
    confidences = sorted({cell["confidence"] for cell in cells})
    # a step of the search that was begun in time may end, and prove, a little after
    end = max([time_limit, *(cell["seconds"] for cell in cells if cell["proven"])])
    for colour, confidence in zip(COLOURS, confidences, strict=False):
        own = [cell for cell in cells if cell["confidence"] == confidence]
        seconds = np.sort([c["seconds"] for c in own if c["proven"]])
        axes[0].step(
            [*seconds, end],
            [*range(1, len(seconds) + 1), len(seconds)],
            where="post",
            color=colour,
            label=f"{confidence:g}",
        )
        gaps = np.sort([100 * c["gap"] for c in own])
        axes[1].step(gaps, range(1, len(gaps) + 1), where="post", color=colour)
    axes[0].set(xscale="log", xlabel="CPU seconds to the proof", ylabel="instances")
    axes[1].set(xlabel=f"gap in % after {time_limit:g} s")
    if all(cell["proven"] for cell in cells):
        axes[1].text(0.5, 0.5, "all proven", ha="center", transform=axes[1].transAxes)
    axes[1].set_xlim(left=0)
    axes[0].set_ylim(bottom=0)
    axes[0].yaxis.get_major_locator().set_params(integer=True)
    axes[0].legend(frameon=False, title="confidence")
    _save(figure, axes, path)


def gains(cells, kind, path):
    """Figures 3 and 4: gain of the robust tree over the plain one, by shift and confidence."""
    place = ("worst", "average").index(kind)
    figure, axes = plt.subplots(
        2, 4, figsize=(14, 6), layout="constrained", sharex=True, sharey=True
    )
    confidences = sorted({cell["confidence"] for cell in cells})
    for panel, shift in zip(axes.ravel(), SHIFTS, strict=True):
        columns = [
            [
                c[shift][0][place] - c[shift][1][place]
                for c in cells
                if c["confidence"] == confidence
            ]
            for confidence in confidences
        ]
        panel.axhline(0, color="0.7", linewidth=1)
        panel.boxplot(
            columns,
            showmeans=True,
            flierprops={"markersize": 2},
            medianprops={"color": "#D55E00"},
            meanprops={"marker": "D", "markersize": 4, "color": "#0072B2"}
            | dict.fromkeys(("markerfacecolor", "markeredgecolor"), "#0072B2"),
        )
        panel.set(title=shift)
        panel.set_xticks(range(1, len(confidences) + 1), [f"{c:g}" for c in confidences])
    for panel in axes[:, 0]:
        panel.set(ylabel=f"gain in {kind} accuracy, points")
    for panel in axes[1]:
        panel.set(xlabel="confidence")
    figure.suptitle("robust less plain tree: median (line), mean (diamond), quartiles and range")
    _save(figure, axes, path)


def _save(figure, axes, path):
    for panel in np.ravel(axes):
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
