"""The figures of the study."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.tree import plot_tree

from steadytree import to_sklearn

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7")
PANELS = {
    "sensitivity": "average sensitivity",
    "sensitivity_features": "the same, features only",
    "train_accuracy": "training accuracy",
    "test_accuracy": "test accuracy",
}


def over_epsilon(cells, title, path):
    """Figures 2, 5 and 6: means over epsilon with quartiles over samples; greedy dashed."""
    figure, axes = plt.subplots(1, 4, figsize=(15, 3.6), layout="constrained")
    for panel, (name, label) in zip(axes, PANELS.items(), strict=True):
        shown = [1] if "accuracy" in name else _shares(cells)
        for colour, removed in zip(COLOURS, shown, strict=False):
            own = [c for c in cells if c["removed"] == removed]
            _curve(panel, own, name, colour, _label(removed))
        panel.set(xscale="log", xlabel="epsilon", title=label)
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, title="rows removed", loc="upper right", bbox_to_anchor=(1, 0.92))
    figure.suptitle(title)
    _save(figure, path)


def _curve(panel, cells, name, colour, label):
    stable = sorted((c for c in cells if c["epsilon"] > 0), key=lambda c: c["epsilon"])
    x, values = [c["epsilon"] for c in stable], np.array([c[name] for c in stable])
    mean = values.mean(axis=1)
    low, high = np.quantile(values, (0.25, 0.75), axis=1)
    panel.plot(x, mean, "o-", color=colour, markersize=4, label=label)
    panel.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
    for greedy in (c for c in cells if c["epsilon"] == 0):
        panel.axhline(np.mean(greedy[name]), color=colour, linestyle="--", linewidth=1)


def trade_off(cells, title, path):
    """Figures 4 and 7: accuracy against sensitivity; white markers are greedy trees."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    accuracy = {
        (c["epsilon"], name): np.mean(c[name])
        for c in cells
        if c["removed"] == 1
        for name in ("train_accuracy", "test_accuracy")
    }
    for panel, name in zip(axes, ("train_accuracy", "test_accuracy"), strict=True):
        for colour, removed in zip(COLOURS, _shares(cells), strict=False):
            own = sorted((c for c in cells if c["removed"] == removed), key=lambda c: c["epsilon"])
            points = [(np.mean(c["sensitivity"]), accuracy[c["epsilon"], name]) for c in own]
            x, y = zip(*points[1:], strict=True)
            panel.plot(x, y, "o-", color=colour, markersize=4, label=_label(removed))
            panel.plot(*points[0], "o", color=colour, markerfacecolor="white", markersize=8)
        panel.set(xlabel="average sensitivity", ylabel=PANELS[name])
        panel.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, title="rows removed")
    figure.suptitle(title)
    _save(figure, path)


def frequent_trees(rows, title, names, path):
    """Figure 3: the whole tree and the most frequent ones without a tenth of the rows."""
    figure, axes = plt.subplots(2 * len(rows), 2, figsize=(17, 11 * len(rows)))
    figure.set_layout_engine("constrained")
    for line, (name, whole, others) in zip(axes.reshape(len(rows), 4), rows, strict=True):
        for panel in line:
            panel.axis("off")
        shown = [(whole, f"{name}: all rows")]
        shown += [(o.tree, f"{100 * o.share:.0f} of 100, distance {o.distance:g}") for o in others]
        for panel, (tree, caption) in zip(line, shown, strict=False):
            model = to_sklearn(tree)
            own = getattr(model, "feature_names_in_", names)
            short = [name.replace(" ", "\n", 1).replace("_", "\n", 1) for name in own]
            how = {"impurity": False, "label": "none", "precision": 3, "fontsize": 7}
            plot_tree(model, feature_names=short, ax=panel, **how)
            panel.set_title(caption, fontsize=13)
    figure.suptitle(title)
    _save(figure, path)


def _shares(cells):
    """Numbers of rows removed, the single row first."""
    return sorted({cell["removed"] for cell in cells}, key=lambda m: (m != 1, m))


def _label(removed):
    return "one" if removed == 1 else f"{100 * removed:g} %"


def _save(figure, path):
    figure.savefig(path, dpi=110)
    plt.close(figure)
