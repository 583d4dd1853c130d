"""Results as tables, and what misses the limits that the project set itself."""

import numpy as np
from methods import OTHERS, PEERS, SIZES, USUAL
from scipy import stats

from data import HALVES

FLOORS = {"changed": 0.002, "distance": 0.1}  # added to both sides of a ratio
WORST = {"accuracy": 0.007, "auc": 0.01}
WORST_CHANGED = 1.3
CV = "cart, size by cross-validation"


def report(cells, full):
    """All tables of a run."""
    halves = HALVES if full else {"scikit-learn's sets": tuple(dict.fromkeys(_sets(cells)))}
    lines = ["## At equal numbers of leaves, steady tree against CART", ""]
    lines += ["| half | sets | leaves | accuracy, points | AUC | changed | distance |"]
    lines += ["| --- " + "| ---: " * 6 + "|"]
    for half, names in halves.items():
        for leaves in SIZES:
            line = _against(cells, names, ("steady", leaves), ("cart", leaves))
            lines += [f"| {half} | {line} |".replace("@", str(leaves))]
    lines += ["", f"## Default ({USUAL} leaves) against other ways to choose a tree", ""]
    lines += ["| half | against | sets | accuracy, points | AUC | changed | distance |"]
    lines += ["| --- | --- " + "| ---: " * 5 + "|"]
    for half, names in halves.items():
        for other in [(name, None) for name in OTHERS] + [(name, USUAL) for name in PEERS]:
            line = _against(cells, names, ("steady", USUAL), other)
            if line:
                lines += [f"| {half} | {other[0]} | {line} |".replace(" | @", "")]
    lines += ["", f"## By set, CART of {USUAL} leaves -> steady tree", "", _by_set(cells)]
    lines += ["", "## Every method, mean over all sets", "", _methods(cells)]
    lines += ["", "## Beyond the limits for a single set", "", *_beyond(cells)]
    return "\n".join(lines)


def _sets(cells):
    return [cell["set"] for cell in cells]


def _pick(cells, name, method, leaves):
    found = [c for c in cells if (c["set"], c["method"], c["leaves"]) == (name, method, leaves)]
    return sorted(found, key=lambda cell: cell["repeat"])


def _mean(cells, key):
    return float(np.mean([cell[key] for cell in cells]))


def _pairs(cells, names, ours, theirs):
    """Cells of both, on the sets and divisions into folds that both were measured on."""
    pairs = {}
    for name in names:
        a, b = _pick(cells, name, *ours), _pick(cells, name, *theirs)
        both = {cell["repeat"] for cell in a} & {cell["repeat"] for cell in b}
        if both:
            pairs[name] = tuple([c for c in side if c["repeat"] in both] for side in (a, b))
    return pairs


def _ratio(ours, theirs, key):
    return (_mean(ours, key) + FLOORS[key]) / (_mean(theirs, key) + FLOORS[key])


def _geometric(ratios):
    return float(np.exp(np.mean(np.log(ratios))))


def _against(cells, names, ours, theirs):
    """Means over sets of differences and ratios; empty where nothing was measured."""
    pairs = _pairs(cells, names, ours, theirs).values()
    if not pairs:
        return ""
    accuracy, auc = (
        np.mean([_mean(a, key) - _mean(b, key) for a, b in pairs]) for key in ("accuracy", "auc")
    )
    changed, distance = (
        _geometric([_ratio(a, b, key) for a, b in pairs]) for key in ("changed", "distance")
    )
    shown = f"{100 * accuracy:+.2f} | {auc:+.4f} | x {changed:.2f} | x {distance:.2f}"
    return f"{len(pairs)} | @ | {shown}"


def _by_set(cells):
    head = "| set | accuracy | AUC | changed | distance | CPU s of a steady fit |"
    lines = [head, "| --- " + "| ---: " * 5 + "|"]
    pairs = _pairs(cells, dict.fromkeys(_sets(cells)), ("steady", USUAL), ("cart", USUAL))
    for name, (ours, cart) in pairs.items():
        shown = [
            f"{_mean(cart, key):.{digits}f} -> {_mean(ours, key):.{digits}f}"
            for key, digits in (("accuracy", 3), ("auc", 3), ("changed", 3), ("distance", 2))
        ]
        lines.append(f"| {name} | {' | '.join(shown)} | {_mean(ours, 'seconds'):.2f} |")
    return "\n".join(lines)


def _methods(cells):
    head = "| method | leaves | sets | accuracy | AUC | log loss | changed | distance | CPU s |"
    lines = [head, "| --- " + "| ---: " * 8 + "|"]
    for method, leaves in dict.fromkeys((c["method"], c["leaves"]) for c in cells):
        mine = [c for c in cells if (c["method"], c["leaves"]) == (method, leaves)]
        keys = ("size", "accuracy", "auc", "loss", "changed", "distance", "seconds")
        by_set = [[c for c in mine if c["set"] == name] for name in dict.fromkeys(_sets(mine))]
        size, *means = (np.mean([_mean(each, key) for each in by_set]) for key in keys)
        shown = " | ".join(f"{value:.3f}" for value in means)
        lines.append(f"| {method} | {size:.1f} | {len(by_set)} | {shown} |")
    return "\n".join(lines)


def interval(differences, n_folds=5):
    """Half width of the 95 % interval of a mean difference over repeated folds.

    The folds' training rows overlap: Nadeau and Bengio (2003), the corrected resampled t.
    """
    n = len(differences)
    spread = np.var(differences, ddof=1) * (1 / n + 1 / (n_folds - 1))
    return float(stats.t.ppf(0.975, n - 1) * np.sqrt(spread))


def _beyond(cells):
    lines = []
    for leaves in SIZES:
        names = dict.fromkeys(_sets(cells))
        pairs = _pairs(cells, names, ("steady", leaves), ("cart", leaves))
        for name, (ours, cart) in pairs.items():
            for key, least in WORST.items():
                all_ours, all_cart = (
                    np.concatenate([cell[key] for cell in side]) for side in (ours, cart)
                )
                mean, half = np.mean(all_ours - all_cart), interval(all_ours - all_cart)
                if mean + half < -least:
                    lines.append(f"- {name}, {leaves} leaves: {key} {mean:+.3f} ± {half:.3f}")
            if _ratio(ours, cart, "changed") > WORST_CHANGED:
                was, now = _mean(cart, "changed"), _mean(ours, "changed")
                lines.append(f"- {name}, {leaves} leaves: changed {was:.3f} -> {now:.3f}")
    return lines or ["none"]
