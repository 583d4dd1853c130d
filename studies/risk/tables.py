"""Tables of the study, from the lines of its results."""

from collections import defaultdict

import numpy as np

import data

PEERS = ("fasterrisk", "optbinning", "l1", "imodels")  # which are risk scores
MEASURES = ("log_loss", "auc", "accuracy", "size", "seconds")


def all_tables(lines):
    """Means of each part, then set by set."""
    parts = {
        "Sets on which settings were chosen, on other splits": data.CHOSEN_ON,
        "Sets that had no part in the choice": data.OTHERS,
        "Rarer outcomes": data.thinned(data.THINNED),
        "Rarer outcomes of further sets": data.thinned(data.FURTHER_THINNED),
        "60 sites": [data.SITES],
        "Tumours": data.QUICK[:1],
    }
    texts = []
    for title, sets in parts.items():
        found = cells(lines, sets)
        if found:
            texts += [
                f"{title}\n{'-' * len(title)}",
                means(found),
                by_set(found, "log_loss"),
                by_set(found, "auc"),
            ]
    texts.append(all_splits(lines))
    return "\n\n".join(texts)


def all_splits(lines):
    """Our default over all its splits with the standard deviation, and peers that have as many."""
    others = dict.fromkeys(line["method"] for line in lines if line["method"] in PEERS)
    heads = [f"{method} {short}" for method in others for short in ("loss", "auc")]
    rows = [["banded, all splits", "splits", "log_loss", "sd", "auc", "sd", *heads]]
    listed = [line for line in lines if line["method"] == "banded"]
    for name in dict.fromkeys(line["set"] for line in listed):
        own = [line for line in listed if line["set"] == name]
        row = [name, str(len(own))]
        for key in ("log_loss", "auc"):
            values = [line[key] for line in own]
            row += [f"{np.mean(values):.4f}", f"{np.std(values, ddof=1):.4f}"]
        for method in others:
            peer = [x for x in lines if (x["set"], x["method"]) == (name, method) and "auc" in x]
            whole = {x["seed"] for x in peer} == {x["seed"] for x in own}
            for key in ("log_loss", "auc"):
                row.append(f"{np.mean([x[key] for x in peer]):.4f}" if whole else "-")
        rows.append(row)
    return aligned(rows)


def cells(lines, sets):
    """Means over splits by set and method, on splits where every method has a result."""
    listed = defaultdict(dict)
    for line in lines:
        if line["set"] in sets and "error" not in line:
            listed[line["set"]].setdefault(line["method"], {})[line["seed"]] = line
    found = {}
    for name in sets:
        if name not in listed:
            continue
        shared = set.intersection(*(set(by_seed) for by_seed in listed[name].values()))
        if shared:
            found[name] = {
                method: {
                    key: float(np.mean([by_seed[seed][key] for seed in shared])) for key in MEASURES
                }
                | {"splits": len(shared)}
                for method, by_seed in listed[name].items()
            }
    return found


def methods_of(found):
    """Methods with a result on every set, in order of appearance."""
    names = dict.fromkeys(method for one in found.values() for method in one)
    return [method for method in names if all(method in one for one in found.values())]


def means(found):
    """Means over the sets; CPU time as a geometric mean."""
    rows = [["mean of sets", *MEASURES]]
    for method in methods_of(found):
        own = [one[method] for one in found.values()]
        values = [float(np.mean([each[key] for each in own])) for key in MEASURES[:-1]]
        seconds = float(np.exp(np.mean(np.log([max(each["seconds"], 1e-4) for each in own]))))
        rows.append(
            [method, *(f"{x:.4f}" for x in values[:3]), f"{values[3]:.1f}", f"{seconds:.3f}"]
        )
    return aligned(rows)


def by_set(found, key):
    """One measure, set by set, with the number of splits."""
    methods = methods_of(found)
    rows = [[key, "splits", *methods]]
    for name, one in found.items():
        rows.append(
            [name, str(one[methods[0]]["splits"]), *(f"{one[m][key]:.4f}" for m in methods)]
        )
    return aligned(rows)


def aligned(rows):
    """Rows of text in columns."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            text.ljust(w) if k == 0 else text.rjust(w)
            for k, (text, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
