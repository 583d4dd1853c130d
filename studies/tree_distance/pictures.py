"""The pictures of the study."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.tree import plot_tree

from steadytree import to_sklearn
from steadytree.distance.tree_distance import gini_importance

MARKERS = "oosDD^^vvP"
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9")


def trade_off(again, name, folder):
    """Section 2.5: AUC on test rows against the distance between the trees of half and of all."""
    figure, panel = plt.subplots(figsize=(8, 4), layout="constrained")
    for place, (method, runs) in enumerate(again.items()):
        apart, _, _, area = np.mean(runs, axis=0)
        panel.plot(
            apart,
            area,
            MARKERS[place % len(MARKERS)],
            color=COLOURS[place % len(COLOURS)],
            markersize=13 - place,  # where two methods end in the same tree, both are seen
            label=method,
        )
    panel.set(xlabel="distance from half of the rows to all", ylabel="AUC on test rows", title=name)
    panel.set_xlim(left=-0.04 * panel.get_xlim()[1])  # marks at 0 are seen whole
    panel.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    _save(figure, folder, "section-2-5-retraining", name)


def cloud(run, name, folder):
    """Figure 2: AUC on validation rows against the distance to the first collection."""
    figure, panel = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
    run.plot_frontier(panel)
    panel.set_title(f"{name}: trees of the second collection")
    _save(figure, folder, "figure-2-frontier", name)


def comparisons(found, name, folder):
    """Figures 3 to 6: size of the frontier, AUC and distance, size of trees, importances."""
    figure, panels = plt.subplots(1, 6, figsize=(18, 4.6), layout="constrained")
    panels[0].bar(*np.unique(found["sizes"], return_counts=True), color=COLOURS[0])
    panels[0].set(title="3: trees on the frontier", xlabel="trees", ylabel="splits")
    panels[0].locator_params(integer=True)
    ends = ("Pareto, best AUC", "Pareto, least distance", "cross-validated CART")
    kept, forests = found["kept"], found["forests"]
    values = {
        "4: AUC on test rows": [[run[0] for run in kept[m]] for m in ends] + [forests["AUC"]],
        "4: distance to first batch": [[run[1] for run in kept[m]] for m in ends],
        "5: depth": [[run[2].depth for run in kept[m]] for m in ends] + [forests["depth"]],
        "5: leaves": [[run[2].n_leaves for run in kept[m]] for m in ends] + [forests["leaves"]],
    }
    for panel, (title, runs) in zip(panels[1:], values.items(), strict=False):
        _bars(panel, title, [np.mean(own) for own in runs], [np.std(own) for own in runs])
    shares = [np.stack([gini_importance(run[2]) for run in kept[m]]) for m in ends]
    shares.append(np.stack(forests["importances"]))
    spread = [own.std(axis=0).mean() for own in shares]
    _bars(panels[5], "6: deviation of importances", spread, None)
    figure.suptitle(name)
    _save(figure, folder, "figures-3-to-6", name)


def _bars(panel, title, heights, errors):
    labels = ("best AUC", "least\ndistance", "CART", "forest")[: len(heights)]
    panel.bar(labels, heights, yerr=errors, color=COLOURS[: len(heights)], capsize=3)
    panel.tick_params(axis="x", labelrotation=90)
    panel.set_title(title, fontsize=10)
    panel.spines[["top", "right"]].set_visible(False)


def chosen_tree(tree, name, folder):
    """Figure 7: the tree that equation 4 chooses on the first split."""
    figure, panel = plt.subplots(figsize=(12, 5), layout="constrained")
    names = [name.replace(" ", "\n", 1) for name in tree.space.names]
    how = {"impurity": False, "label": "none", "precision": 3, "fontsize": 8}
    plot_tree(to_sklearn(tree), feature_names=names, ax=panel, **how)
    panel.set_title(f"{name}: the tree that equation 4 (mean) chooses")
    _save(figure, folder, "figure-7-tree", name)


def four_trees(found, name, folder):
    """Figure 1: both ways' trees of depth 4, of half of the rows and of all of them."""
    methods = ("cross-validated CART", "Pareto, knee")
    figure, panels = plt.subplots(2, 2, figsize=(17, 11), layout="constrained")
    for row, method in zip(panels, methods, strict=True):
        *trees, apart = found[method]
        for panel, tree, rows in zip(row, trees, ("half of the rows", "all rows"), strict=True):
            names = [name.replace(" ", "\n", 1) for name in tree.space.names]
            how = {"impurity": False, "label": "none", "precision": 3, "fontsize": 8}
            plot_tree(to_sklearn(tree), feature_names=names, ax=panel, **how)
            panel.set_title(f"{method}: {rows}", fontsize=13)
        row[1].set_title(f"{method}: all rows, {apart:.2f} % of the bound apart", fontsize=13)
    figure.suptitle(name)
    _save(figure, folder, "figure-1-trees", name)


def answers(moved, replaced, name, folder):
    """Figure 8: distance against thresholds moved and against rows replaced."""
    figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    what = ("thresholds moved by up to, %", "rows replaced, %")
    for panel, found, label in zip(panels, (moved, replaced), what, strict=True):
        x = [100 * share for share in found]
        means, spread = (np.array([f(v) for v in found.values()]) for f in (np.mean, np.std))
        panel.errorbar(x, means, spread, marker="o", capsize=3, color=COLOURS[0])
        panel.set(xlabel=label, ylabel="distance, % of the bound", ylim=(0, None))
        panel.spines[["top", "right"]].set_visible(False)
    figure.suptitle(name)
    _save(figure, folder, "figure-8-sensitivity", name)


def seen_again(name, folder):
    """Mark pictures of a set that was finished before as those of this run."""
    for path in folder.glob(f"*-{_stem(name)}.png"):
        path.touch()


def _stem(name):
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def _save(figure, folder, kind, name):
    figure.savefig(folder / f"{kind}-{_stem(name)}.png", dpi=110)
    plt.close(figure)
