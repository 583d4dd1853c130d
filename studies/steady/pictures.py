"""One picture: how often decisions change, against accuracy, for each method."""

import matplotlib.pyplot as plt
import numpy as np


def draw(cells, folder):
    """Mean over the sets that every method was measured on."""
    methods = list(dict.fromkeys((c["method"], c["leaves"]) for c in cells))
    sets = set.intersection(
        *({c["set"] for c in cells if (c["method"], c["leaves"]) == m} for m in methods)
    )
    figure, axes = plt.subplots(figsize=(7.5, 4.8), layout="constrained")
    for method, leaves in methods:
        mine = [c for c in cells if (c["method"], c["leaves"]) == (method, leaves)]
        mine = [c for c in mine if c["set"] in sets]
        changed = 100 * np.mean([c["changed"] for c in mine])
        accuracy = 100 * np.mean([c["accuracy"] for c in mine])
        ours = method == "steady"
        axes.plot(changed, accuracy, "o" if ours else "s", color="C0" if ours else "0.45")
        label = f"{method}, {leaves} leaves" if method in ("cart", "steady") else method
        below = (5, -11) if method == "cart" else (5, 4)
        axes.annotate(label, (changed, accuracy), below, textcoords="offset points", fontsize=8)
    axes.set_xlabel("decisions changed by learning again, % of rows")
    axes.set_ylabel("accuracy on held-out rows, %")
    axes.margins(x=0.25, y=0.1)
    axes.set_title(f"means over {len(sets)} sets: up and left is better", fontsize=10)
    figure.savefig(folder / "steady.png", dpi=150)
    plt.close(figure)
