"""Finished fits of `run.py` as means with the range of the repeats, in a text file."""

import numpy as np

TITLES = {
    "1": "Figures 1 and 4: leaf share of DP-TopDown",
    "2": "Figures 2 and 5: privacy curves and sizes; epsilon 1e+06 is next to no noise",
    "3": "Figures 3 and 6: share of the training rows",
}


def grouped(rows):
    """Fits of one setting together: (figure, set, method, epsilon, holders, size) to numbers.

    Numbers are (repeats, 5): test and training accuracy, depth, nodes, seconds of CPU.
    """
    found = {}
    once = {tuple(row[:7]): row for row in rows}  # two runs at once may have fitted the same
    for figure, name, method, epsilon, holders, size, _, *numbers in once.values():
        key = (figure, name, method, float(epsilon), int(holders), float(size))
        found.setdefault(key, []).append([float(number) for number in numbers])
    return {key: np.array(numbers) for key, numbers in found.items()}


def write_results(rows, path):
    """One line a setting, by figure and set."""
    found = grouped(rows)
    lines = ["means of repeats, and the least and greatest test accuracy among them"]
    for figure, title in TITLES.items():
        names = dict.fromkeys(key[1] for key in found if key[0] == figure)
        for name in names:
            lines += ["", f"{title}: {name}", HEAD]
            own = [key for key in found if key[:2] == (figure, name)]
            own.sort(key=lambda key: (key[4], key[5], key[2], key[3]))
            lines += [_line(key, found[key]) for key in own]
    path.write_text("\n".join(lines) + "\n")


HEAD = (
    f"{'method':16} {'epsilon':>8} {'holders':>7} {'rows':>5} {'repeats':>7} {'test %':>22} "
    f"{'train %':>8} {'depth':>5} {'nodes':>6} {'CPU s':>7}"
)


def _line(key, numbers):
    _, _, method, epsilon, holders, size = key
    test, train, depth, nodes, seconds = numbers.mean(axis=0)
    low, high = numbers[:, 0].min(), numbers[:, 0].max()
    shown = "-" if method == "cart" else f"{epsilon:g}"
    return (
        f"{method:16} {shown:>8} {holders:>7} {size:>5g} {len(numbers):>7} "
        f"{test:>7.2f} ({low:5.2f}-{high:6.2f}) {train:>8.2f} {depth:>5.1f} "
        f"{nodes:>6.1f} {seconds:>7.2f}"
    )
