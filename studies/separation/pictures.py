"""Figures 1, 4 and 5."""

import matplotlib.pyplot as plt
import numpy as np

COLORS = {"published": "#D55E00", "ours": "#0072B2"}


def noise_picture(cells, sets, path):
    """Questions against ER for rising noise; the size of a ball is the accuracy (figures 1, 4)."""
    figure, axes = _grid(len(sets))
    for ax, name in zip(axes, sets, strict=False):
        for who, color in COLORS.items():
            points = _by(cells, name, f"noise {who}")
            if not points:
                continue
            er, asked, accuracy = np.array([(er, q, a) for _, q, a, er in points]).T
            ax.plot(er, asked, color=color, linewidth=1, alpha=0.5)
            size = 20 + 900 * np.clip(accuracy - 0.5, 0, 1) ** 2
            ax.scatter(er, asked, s=size, color=color, alpha=0.6, label=who, linewidths=0)
            for place in (0, -1):
                text, spot = f"τ {points[place][0]:g}", (er[place], asked[place])
                ax.annotate(text, spot, (4, 6), textcoords="offset points", fontsize=8)
        ax.set(title=name, xlabel="ER (mean distance to another answer)", ylabel="conditions")
        ax.margins(0.15)
    _legend(axes[0])
    _save(figure, axes[len(sets) :], path)


def size_picture(cells, sets, path):
    """Accuracy against the number of conditions, the best for each number (figure 5)."""
    figure, axes = _grid(len(sets))
    for ax, name in zip(axes, sets, strict=False):
        for who, color in COLORS.items():
            points = _by(cells, name, f"size {who}")
            if points:
                best = {}
                for _, q, a, _ in sorted(points, key=lambda point: point[2]):
                    best[round(q, 1)] = a
                asked, accuracy = np.array(sorted(best.items())).T
                ax.plot(asked, accuracy, "o-", color=color, label=who, markersize=4)
        ax.set(title=name, xlabel="conditions (mean over splits)", ylabel="test accuracy")
    _legend(axes[0])
    _save(figure, axes[len(sets) :], path)


def _by(cells, name, method):
    """Setting, questions, accuracy and ER, means over splits, for rising settings."""
    mine = [c for c in cells if c["set"] == name and c.get("method") == method]
    points = []
    for value in sorted({c["setting"] for c in mine}):
        here = [c for c in mine if c["setting"] == value]
        reached = [c["er"] for c in here if c["er"] is not None]
        mean = np.mean([(c["questions"], c["accuracy"]) for c in here], axis=0)
        points.append((value, *mean, float(np.mean(reached)) if reached else np.nan))
    return points


def _grid(n):
    columns = min(n, 3)
    rows = -(-n // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4.2 * columns, 3.4 * rows), squeeze=False)
    return figure, axes.ravel()


def _legend(ax):
    ax.legend(frameon=False, fontsize=9)


def _save(figure, unused, path):
    for ax in unused:
        ax.set_visible(False)
    for ax in figure.axes:
        ax.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)
