"""Results as tables."""

import numpy as np
from data import DEPTHS, NAMES, PRINTED, SEPARATION

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
