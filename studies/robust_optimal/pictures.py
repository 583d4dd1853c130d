"""The pictures of the study."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

BLUE, ORANGE = "#0072B2", "#E69F00"


def proof_picture(seconds, path):
    """Figure 2: the share of instances that are proven within so many seconds of CPU time."""
    proven = np.sort([one for one in seconds if np.isfinite(one)])
    figure, panel = plt.subplots(figsize=(6, 3.6), layout="constrained")
    share = np.arange(1, len(proven) + 1) / max(len(seconds), 1)
    panel.step(np.maximum(proven, 1e-3), 100 * share, where="post", color=BLUE)
    panel.set(xscale="log", xlabel="seconds of CPU time", ylabel="instances proven, %")
    panel.set_ylim(0, 103)
    _save(figure, panel, path)


def gain_picture(rows, shift, path):
    """Figures 3 and 4: gain over the plain tree by confidence; lines reach from least to most."""
    confidences = [confidence for name, confidence in rows if name == shift]
    figure, panel = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for offset, colour, kind, label in ((-0.1, BLUE, 0, "worst case"), (0.1, ORANGE, 1, "average")):
        values = [np.array(rows[shift, confidence])[:, kind] for confidence in confidences]
        middle = np.array([np.median(one) for one in values])
        ends = np.array([(one.min(), one.max()) for one in values]).T
        x = np.arange(len(confidences)) + offset
        reach = np.abs(ends - middle)
        panel.errorbar(x, middle, reach, fmt="o", color=colour, capsize=3, label=label)
    panel.axhline(0, color="#888888", linewidth=1)
    panel.set_xticks(range(len(confidences)), [f"{one:g}" for one in confidences])
    panel.set(xlabel="confidence", ylabel=f"gain in points, shifts {shift}")
    figure.legend(loc="outside upper right", ncols=2, frameon=False)
    _save(figure, panel, path)


def _save(figure, panel, path):
    panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    plt.close(figure)
