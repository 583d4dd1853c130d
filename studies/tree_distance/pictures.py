"""The pictures of the study."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

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


def seen_again(name, folder):
    """Mark pictures of a set that was finished before as those of this run."""
    for path in folder.glob(f"*-{_stem(name)}.png"):
        path.touch()


def _stem(name):
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def _save(figure, folder, kind, name):
    figure.savefig(folder / f"{kind}-{_stem(name)}.png", dpi=110)
    plt.close(figure)
