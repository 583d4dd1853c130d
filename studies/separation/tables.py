"""Results as tables."""

import numpy as np
import theory
from scipy import stats

from data import DEPTHS, NAMES, PRINTED, SEPARATION

# who is set beside whom, split by split
PAIRS = (
    ("majority, tau 0", "FasterRisk, 10 questions"),
    ("logistic, tau 0", "FasterRisk, 10 questions"),
    ("majority, tau 0", "imodels, 10 questions"),
    ("logistic, tau 0", "imodels, 10 questions"),
    ("majority, tau 0.05", "GROOT, depth 5"),
    ("majority, tau 1se", "majority, tau 0"),
    ("logistic, tau 1se", "logistic, tau 0"),
)
COLUMNS = ("questions", "depth", "accuracy", "er", "at05", "at10", "seconds")
HEAD = "| set | method | splits | questions | depth | accuracy | ER | at .05 | at .1 | CPU s |"
RULE = "| --- | --- " + "| ---: " * 8 + "|"


def separation_table(rows):
    """Table 2: the paper's values beside ours."""
    head = (
        "| set | rows | columns | 0/1 | positive | separateness (paper) | 2 r (paper) "
        "| linear (paper) | gamma (paper) |"
    )
    lines = [head, "| --- " + "| ---: " * 8 + "|"]
    for row in rows:
        printed = SEPARATION.get(row["set"])
        share, two_r, linear, gamma = [f" ({v:g})" for v in printed] if printed else [""] * 4
        cells = (
            row["set"],
            f"{row['rows']:,}",
            row["columns"],
            row["binary"],
            f"{row['positive']:.2f}",
            f"{row['separateness']:.4f}{share}",
            f"{row['two_r']:.4g}{two_r}",
            f"{row['linear']:.4f}{linear}",
            f"{row['gamma']:.2g}{gamma}",
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def comparison_table(cells, methods):
    """Tables 3 and 4: the paper's rows, then ours, means over splits."""
    lines = [HEAD, RULE]
    for name in dict.fromkeys(cell["set"] for cell in cells):
        lines += _printed(name)
        for method in methods:
            mine = [c for c in cells if c["set"] == name and c["method"] == method]
            if mine:
                lines.append(_line(name, method, len(mine), means(mine)))
    return "\n".join(lines)


def error_table(cells, methods):
    """Tables 5 and 6: means with standard errors over splits, inner nodes for the size of trees."""
    lines = ["| set | method, with standard errors | splits | IC | accuracy | ER | depth |"]
    lines.append("| --- | --- " + "| ---: " * 5 + "|")
    for name in dict.fromkeys(cell["set"] for cell in cells):
        for method in methods:
            mine = [c for c in cells if c["set"] == name and c["method"] == method]
            mine = [c for c in mine if "nodes" in c]
            if mine:
                shown = [_with_error([c[k] for c in mine]) for k in ("nodes", "accuracy")]
                shown += [_with_error([c[k] for c in mine if c[k] is not None]) for k in ("er",)]
                shown.append(_with_error([c["depth"] for c in mine]))
                lines.append(f"| {name} | {method} | {len(mine)} | {' | '.join(shown)} |")
    return "\n".join(lines)


def _with_error(values):
    if len(values) < 2:
        return "".join(f"{value:.4g}" for value in values)
    return f"{np.mean(values):.4g} (± {np.std(values, ddof=1) / len(values) ** 0.5:.2g})"


def count_table(cells):
    """Section 6.2.2: on how many sets the published card is ahead of both trees and LCPA.

    Printed values are counted on the same sets; no text where there is no set of the paper.
    """
    four = ("CART", "RobDT", "LCPA", "published")
    found, printed = {}, {}
    for name in PRINTED:
        own = [[c for c in cells if (c["set"], c["method"]) == (name, m)] for m in four]
        own = [[c for c in each if "nodes" in c] for each in own]
        if all(own):
            keys = ("nodes", "accuracy", "er")
            found[name] = [[np.mean([c[k] for c in each]) for each in own] for k in keys]
            printed[name] = PRINTED[name]
    if not found:
        return ""
    lines = ["| published card beside DT, RobDT and LCPA | sets | least IC | largest ER "]
    lines[0] += "| accuracy within 3 points |"
    lines.append("| --- " + "| ---: " * 4 + "|")
    for who, values in (("ours", found), ("printed", printed)):
        ahead = [
            sum(ic[3] <= min(ic) for ic, _, _ in values.values()),
            sum(er[3] >= max(er) - 0.005 for _, _, er in values.values()),  # 0.5 is shared
            sum(right[3] >= max(right) - 0.03 - 1e-9 for _, right, _ in values.values()),
        ]
        lines.append(f"| {who} | {len(values)} | {' | '.join(map(str, ahead))} |")
    return "\n".join(lines)


def plane_table(cells):
    """LCPA: how far its cards are from proven, and ER where the intercept is moved too."""
    lines = ["| set, LCPA | splits | gap | ER | ER, intercept moved |"]
    lines.append("| --- " + "| ---: " * 4 + "|")
    for name in dict.fromkeys(cell["set"] for cell in cells):
        mine = [c for c in cells if c["set"] == name]
        shown = [f"{np.mean([c[k] for c in mine]):.3f}" for k in ("gap", "er", "er_moved")]
        lines.append(f"| {name} | {len(mine)} | {' | '.join(shown)} |")
    return "\n".join(lines)


def bound_table(rows):
    """What the theorems promise for the margin and the columns of each set."""
    lines = [
        "| set, bounds | separateness at r = .05 | gamma | rows of Theorem 5 | leaves of 5.2 |"
    ]
    lines.append("| --- " + "| ---: " * 4 + "|")
    for row in rows:
        n_rows = theory.weak_learner_rows(row["columns"], row["gamma"], 0.05)
        exponent = 2 / row["gamma"] ** 2 * np.log10(5)  # leaves for an error of .1
        shown = (f"{row['separateness_05']:.4f}", f"{row['gamma']:.2g}", f"{n_rows:.2g}")
        lines.append(f"| {row['set']} | {' | '.join(shown)} | 10^{exponent:.3g} |")
    return "\n".join(lines)


def cut_table(cells):
    """Figure 5: accuracy after the first votes, means over splits; a card may end sooner."""
    votes = (1, 2, 3, 4, 5, 7, 9, 11, 13, 15)
    lines = ["| set, votes kept | " + " | ".join(map(str, votes)) + " |"]
    lines.append("| --- " + "| ---: " * len(votes) + "|")
    for name in dict.fromkeys(cell["set"] for cell in cells):
        mine = [c["accuracies"] for c in cells if c["set"] == name]
        found = [f"{np.mean([own[min(k, len(own)) - 1] for own in mine]):.4f}" for k in votes]
        lines.append(f"| {name} | {' | '.join(found)} |")
    return "\n".join(lines)


def mean_table(cells, methods):
    """Means over the sets on which every one of the methods was run."""
    ran = [{c["set"] for c in cells if c["method"] == method} for method in methods]
    sets = sorted(set.intersection(*ran)) if ran else []
    lines = [HEAD, RULE]
    for method in methods:
        each = [
            means([c for c in cells if c["set"] == name and c["method"] == method]) for name in sets
        ]
        if each:
            lines.append(_line(f"mean of {len(sets)}", method, "", np.nanmean(each, axis=0)))
    return "\n".join(lines)


def figure_table(cells, kind):
    """What figures 1 and 4 ("noise") or 5 ("size") draw, means over splits."""
    lines = [
        f"| set | {kind} | splits | questions, published | ours | accuracy, published | ours "
        "| ER, published | ours |",
        "| --- " + "| ---: " * 8 + "|",
    ]
    mine = [c for c in cells if c.get("method", "").startswith(f"{kind} ")]
    for name in dict.fromkeys(c["set"] for c in mine):
        for value in sorted({c["setting"] for c in mine if c["set"] == name}):
            both = [
                [c for c in mine if (c["set"], c["setting"], c["method"]) == (name, value, who)]
                for who in (f"{kind} published", f"{kind} ours")
            ]
            if all(both):
                one, two = (means(found) for found in both)
                shown = [
                    "-" if np.isnan(pair[k]) else f"{pair[k]:.4g}"
                    for k in (0, 2, 3)
                    for pair in (one, two)
                ]
                lines.append(f"| {name} | {value:g} | {len(both[0])} | {' | '.join(shown)} |")
    return "\n".join(lines)


def paired_table(cells):
    """Differences on the same splits: means over sets with an interval, and CPU ratios."""
    lines = [
        "| ours | minus | set | splits | accuracy | 95 % interval | at .05 | 95 % interval "
        "| CPU ratio |",
        "| --- | --- | --- " + "| ---: " * 6 + "|",
    ]
    for ours, other in PAIRS:
        sets = {}
        for name in dict.fromkeys(cell["set"] for cell in cells):
            found = _differences(cells, name, ours, other)
            if len(found):
                sets[name] = found
        for name, found in sets.items():
            lines.append(_paired_line(ours, other, name, len(found), found))
        if len(sets) > 2:
            each = np.array([found.mean(axis=0) for found in sets.values()])
            lines.append(_paired_line(ours, other, f"mean of {len(sets)}", "", each))
    return "\n".join(lines)


def _differences(cells, name, ours, other):
    """Accuracy, share certified at .05 and log CPU ratio (n, 3), ours beside the other's."""
    mine, theirs = (
        {c["seed"]: c for c in cells if c["set"] == name and c["method"] == method}
        for method in (ours, other)
    )
    return np.array(
        [
            (
                mine[seed]["accuracy"] - theirs[seed]["accuracy"],
                mine[seed]["at05"] - theirs[seed]["at05"],
                np.log(theirs[seed]["seconds"] / mine[seed]["seconds"]),
            )
            for seed in sorted(mine.keys() & theirs.keys())
        ]
    )


def _paired_line(ours, other, name, n, found):
    """Means of the rows with Student's interval, the geometric mean of CPU ratios."""
    cells = []
    for column in found.T[:2]:
        half = np.nan
        if len(column) > 1:
            half = stats.t.ppf(0.975, len(column) - 1) * column.std(ddof=1) / len(column) ** 0.5
        mean = column.mean()
        cells += [f"{mean:+.4f}", f"{mean - half:+.4f} to {mean + half:+.4f}" if half >= 0 else ""]
    ratio = np.exp(found[:, 2].mean())
    return f"| {ours} | {other} | {name} | {n} | {' | '.join(cells)} | {ratio:.3g} |"


def means(cells):
    """Mean of every column over splits; nan where there is nothing."""
    table = [[np.nan if c.get(k) is None else c[k] for k in COLUMNS] for c in cells]
    table = np.array(table, float)
    with np.errstate(invalid="ignore"):
        return np.nansum(table, axis=0) / (~np.isnan(table)).sum(axis=0)


def _printed(name):
    if name not in PRINTED:
        return []
    asked, accuracy, er = PRINTED[name]
    depths = (*DEPTHS[name], asked[2], asked[3])
    return [
        f"| {name} | {NAMES[k]} | 10 | {asked[k]:.1f} | {depths[k]:.1f} | {accuracy[k]:.2f} "
        f"| {er[k]:.2f} | | | |"
        for k in range(4)
    ]


def _line(name, method, n, found):
    asked, depth, accuracy, er, five, ten, seconds = found
    return (
        f"| {name} | {method} | {n} | {asked:.1f} | {depth:.1f} | {accuracy:.4f} | {er:.3f} "
        f"| {five:.4f} | {ten:.4f} | {seconds:.2f} |"
    )
