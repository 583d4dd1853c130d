"""The figures of `run.py`, one panel a data set; whiskers from the least to the greatest repeat."""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
from tables import grouped

ALONE, HOLDERS = ("gibbs", "greedy", "topdown"), (
    "delegate", "duel", "vote", "local_rnm", "noisy_counts", "secure_sum",
)  # fmt: skip
TOP_DOWN = ("topdown", "local_rnm", "noisy_counts")
TEST, TRAIN, DEPTH, NODES = range(4)
NO_NOISE = 1e6
MARKS = "osD^vP"


def draw_all(rows, folder):
    """Every figure that there are fits for."""
    found = grouped(rows)
    for figure, draw in (("1", _shares), ("2", _curves), ("3", _sizes)):
        names = list(dict.fromkeys(key[1] for key in found if key[0] == figure))
        if names:
            draw(
                {key[1:]: value for key, value in found.items() if key[0] == figure}, names, folder
            )


def _shares(found, names, folder):
    """Figure 1: accuracy against the leaves' share of the budget."""
    figure, axes = _grid(len(TOP_DOWN), names)
    for (row, method), (place, name) in product(enumerate(TOP_DOWN), enumerate(names)):
        for colour, epsilon in enumerate((0.125, 1.0, 8.0)):
            for budget, style in (("decay", "-"), ("uniform", "--")):
                start = f"{method} {budget} "
                points = {
                    float(key[1].split()[2]): numbers
                    for key, numbers in found.items()
                    if key[0] == name and key[2] == epsilon and key[1].startswith(start)
                }
                label = f"{budget}, epsilon {epsilon:g}"
                _line(axes[row][place], points, TEST, style, f"C{colour}", MARKS[colour], label)
        axes[0][place].set_title(name)
        axes[-1][place].set_xlabel("share of epsilon for the leaves")
        axes[row][0].set_ylabel(f"{method}:\ntest accuracy, %")
    _finish(figure, axes, folder / "figure-1-leaf-share.png")


def _curves(found, names, folder):
    """Figures 2 and 5: accuracy, depth and nodes against epsilon."""
    rows = [(ALONE, 1), (HOLDERS, 4)]
    figure, axes = _grid(2, names)
    for place, name in enumerate(names):
        for row, (methods, holders) in enumerate(rows):
            _panel(axes[row][place], found, name, methods, holders, TEST)
        axes[0][place].set_title(name)
        axes[1][place].set_xlabel("epsilon")
    axes[0][0].set_ylabel("one machine:\ntest accuracy, %")
    axes[1][0].set_ylabel("4 holders:\ntest accuracy, %")
    _finish(figure, axes, folder / "figure-2-privacy-curves.png")
    wanted = (("train accuracy, %", TRAIN), ("depth", DEPTH), ("nodes", NODES))
    figure, axes = _grid(6, names)
    for place, name in enumerate(names):
        for row, (methods, holders) in enumerate(rows):
            for part, (what, column) in enumerate(wanted):
                axis = axes[3 * row + part][place]
                _panel(axis, found, name, methods, holders, column)
                if place == 0:
                    axis.set_ylabel(f"{'4 holders' if row else 'one machine'}:\n{what}")
        axes[0][place].set_title(name)
        axes[-1][place].set_xlabel("epsilon")
    _finish(figure, axes, folder / "figure-5-training-accuracy-and-size.png")


def _panel(axis, found, name, methods, holders, column):
    for colour, method in enumerate(methods):
        points = {
            key[2]: numbers
            for key, numbers in found.items()
            if key[:2] == (name, method) and key[3] == holders
        }
        calm = points.pop(NO_NOISE, None)
        if calm is not None and method in TOP_DOWN:
            more = {"linewidth": 0.8, "alpha": 0.7, "label": f"{method}, next to no noise"}
            axis.axhline(calm[:, column].mean(), color=f"C{colour}", **more)
        _line(axis, points, column, ":", f"C{colour}", MARKS[colour], method)
    cart = found.get((name, "cart", 0.0, 1, 1.0))
    if cart is not None and column in (TEST, TRAIN):
        axis.axhline(cart[:, column].mean(), color="grey", label="CART, not private")
    _over_epsilon(axis, found)


def _over_epsilon(axis, found):
    """A logarithmic axis; `found` tells whether it goes on to 512."""
    ticks = [0.1, 1, 8, 64, 512] if any(8 < key[2] < NO_NOISE for key in found) else [0.1, 1, 8]
    axis.set_xscale("log")
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()


def _sizes(found, names, folder):
    """Figures 3 and 6: accuracy against epsilon for parts of the training rows."""
    methods = (("gibbs", 1), ("delegate", 4), *((m, 1 if m == "topdown" else 4) for m in TOP_DOWN))
    methods = [pair for pair in methods if any(key[1] == pair[0] for key in found)]
    for number, what, column in (("3", "test", TEST), ("6", "training", TRAIN)):
        figure, axes = _grid(len(methods), names)
        for row, (method, holders) in enumerate(methods):
            for place, name in enumerate(names):
                axis = axes[row][place]
                for colour, size in enumerate((0.01, 0.05, 0.1, 1.0)):
                    points = {
                        key[2]: numbers
                        for key, numbers in found.items()
                        if key[:2] == (name, method) and key[4] == size
                    }
                    label = f"{100 * size:g} % of the rows"
                    calm = points.pop(NO_NOISE, None)  # the paper's solid line
                    if calm is not None:
                        axis.axhline(calm[:, column].mean(), color=f"C{colour}", linewidth=0.8)
                    _line(axis, points, column, ":", f"C{colour}", MARKS[colour], label)
                _over_epsilon(axis, found)
            alone = "" if holders == 1 else f", {holders} holders"
            axes[row][0].set_ylabel(f"{method}{alone}:\n{what} accuracy, %")
        for place, name in enumerate(names):
            axes[0][place].set_title(name)
            axes[-1][place].set_xlabel("epsilon")
        _finish(figure, axes, folder / f"figure-{number}-{what}-accuracy-by-rows.png")


def _line(axis, points, column, style, colour, mark, label):
    if not points:
        return
    xs = sorted(points)
    means = np.array([points[x][:, column].mean() for x in xs])
    low = np.array([points[x][:, column].min() for x in xs])
    high = np.array([points[x][:, column].max() for x in xs])
    more = {"linestyle": style, "color": colour, "marker": mark, "markersize": 4}
    whiskers = [means - low, high - means]
    axis.errorbar(xs, means, whiskers, label=label, elinewidth=0.7, capsize=2, **more)


def _grid(n_rows, names):
    size = (3.4 * len(names) + 2.8, 2.7 * n_rows + 0.5)  # with the legends beside the panels
    return plt.subplots(n_rows, len(names), figsize=size, squeeze=False, layout="constrained")


def _finish(figure, axes, path):
    for row in axes:
        # one legend a row: the lines mean the same in all of its panels
        place = {"loc": "center left", "bbox_to_anchor": (1.02, 0.5)}
        if row[-1].get_legend_handles_labels()[0]:
            row[-1].legend(fontsize=7, handlelength=4, **place)
    figure.savefig(path, dpi=100)
    plt.close(figure)
