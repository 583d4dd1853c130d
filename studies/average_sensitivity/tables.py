"""The table of the study, in Markdown."""

import numpy as np

from steadytree.stability.sensitivity import mean_interval


def table(cells):
    """Sensitivity with its 95 % interval over samples, and accuracies, by epsilon."""
    shown = sorted({cell["removed"] for cell in cells}, key=lambda m: (m != 1, m))
    head = ["epsilon", *(f"sensitivity, {_rows(m)}" for m in shown), "features only, one row"]
    lines = [[*head, "training accuracy", "test accuracy"]]
    for epsilon in sorted({cell["epsilon"] for cell in cells}):
        row = {cell["removed"]: cell for cell in cells if cell["epsilon"] == epsilon}
        if 1 not in row:
            continue
        values = [_interval(row[m]["sensitivity"]) if m in row else "" for m in shown]
        last = [f"{np.mean(row[1][name]):.4f}" for name in ("train_accuracy", "test_accuracy")]
        features = _interval(row[1]["sensitivity_features"])
        lines.append([_epsilon(epsilon), *values, features, *last])
    rule = ["---"] * len(lines[0])
    return "\n".join("| " + " | ".join(line) + " |" for line in (lines[0], rule, *lines[1:]))


def verdict(cells, epsilon=0.3):
    """How the epsilon nearest to the given one compares with greedy, one row removed."""
    single = {cell["epsilon"]: cell for cell in cells if cell["removed"] == 1}
    near = min((e for e in single if e > 0), key=lambda e: abs(np.log(e / epsilon)), default=None)
    if near is None or 0 not in single:
        return ""
    stable, greedy = single[near], single[0]
    share = np.mean(stable["sensitivity"]) / max(np.mean(greedy["sensitivity"]), 1e-300)
    loss = 100 * (np.mean(greedy["test_accuracy"]) - np.mean(stable["test_accuracy"]))
    return (
        f"epsilon {near:g} beside greedy: {share:.2f} of the sensitivity to one row, "
        f"{loss:+.2f} points of test accuracy lost"
    )


def _interval(values):
    if len(values) < 2:
        return f"{np.mean(values):.4f}"
    low, high = mean_interval(np.array(values))
    return f"{np.mean(values):.4f} ({max(low, 0):.4f} to {high:.4f})"


def _epsilon(epsilon):
    return "greedy" if epsilon == 0 else f"{epsilon:.3g}"


def _rows(removed):
    return "one row" if removed == 1 else f"{100 * removed:g} %"
