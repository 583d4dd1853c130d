"""Do the intervals of a sheet hold the true risk? Coverage in bootstrap worlds.

A data set is the world: everybody there is, with outcomes that are known. Rows are sampled from it
with replacement, a risk score is fitted to the sample, and for every total the share of events
among all rows of the world with that total is the truth. Coverage is the share of the world's rows
whose total has an interval that holds it.

``python studies/risk/intervals.py --out intervals.txt``; STEADYTREE_DATA names the data folder.
"""

import argparse
import pathlib
import warnings

import numpy as np

import data
from steadytree import RiskScoreClassifier
from steadytree._base.intervals import wilson_interval
from steadytree.reporting.svg.sheet import Sheet

WORLDS = ("adult", "bank-additional", "fico_sep", "higgs_sample", "cod-rna_train", "adult 5.0%")
# samples of 4,000 would be nearly all rows of some. The kind of interval was chosen after results
# of all worlds had been seen
FURTHER = ("spambase_sep", "kr-vs-kp", "bank-additional 2.0%", "sites", "careval_sep")
UNSEEN = ("skin", "made")  # first looked at after the kind of interval was chosen
SIZES = (300, 1000, 4000)
PARTS = ((WORLDS, SIZES), (FURTHER, SIZES[:2]), (UNSEEN, SIZES))
SAMPLES = 10
Z = 1.959963984540054


def share_interval(row, card):
    """Wilson's interval of the share among the training rows with the total."""
    return wilson_interval(row.n_label, row.n_rows)


def sheet_interval(row, card):
    """The same together with Wilson's interval around the stated risk for that many rows."""
    [(_, lines)] = Sheet.of(card).risks
    return next(line.interval for line in lines if line.low <= row.total <= line.high)


def curve_interval(row, card):
    """The stated risk with the standard error of the curve through all totals."""
    rows = card.risk_table.rows
    totals, counts = (np.array([getattr(one, key) for one in rows]) for key in ("total", "n_rows"))
    risk = card.risk(totals)[:, 1]
    design = np.stack([np.ones(len(totals)), totals], axis=1)
    information = (design.T * (counts * risk * (1 - risk))) @ design
    at = np.array([1.0, row.total])
    error = np.sqrt(at @ np.linalg.pinv(information) @ at)
    level = card.intercept + card.slope * row.total
    return tuple(1 / (1 + np.exp(-np.array([level - Z * error, level + Z * error]))))


KINDS = {"sheet": sheet_interval, "share": share_interval, "curve": curve_interval}


def measure(frame, y, size, seed):
    """Coverage and mean width of each kind of interval, over the rows of the world."""
    rows = np.random.default_rng(seed).integers(0, len(y), size)
    if y[rows].sum() in (0, size):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        card = RiskScoreClassifier().fit(frame.iloc[rows], y[rows]).card_
    totals = card.score(frame)
    found = {}
    for kind, interval in KINDS.items():
        held = width = weight = 0.0
        for row in card.risk_table.rows:
            own = totals == row.total
            low, high = interval(row, card)
            held += own.sum() * (low <= y[own].mean() <= high if own.any() else 0)
            width += own.sum() * (high - low)
            weight += own.sum()
        found[kind] = held / weight, width / weight
    found["listed"] = weight / len(y), np.nan
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("intervals.txt"))
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--parts", nargs="*", type=int, choices=range(len(PARTS)))
    given = parser.parse_args()
    heads = "".join(f"{kind:>24}" for kind in KINDS)
    lines = [f"{'world':<22}{'rows':>6}{heads}{'rows with a total seen':>26}"]
    for worlds, sizes in [PARTS[k] for k in given.parts or range(len(PARTS))]:
        means = []
        for world in worlds:
            frame, y = data.load(world)
            for size in sizes:
                tried = [measure(frame, y, size, seed) for seed in range(given.samples)]
                kept = [one for one in tried if one is not None]
                mean = {kind: np.mean([one[kind] for one in kept], axis=0) for kind in kept[0]}
                means.append([mean[kind] for kind in (*KINDS, "listed")])
                lines.append(table_line(world, size, means[-1]))
                print(lines[-1], flush=True)
        lines.append(table_line("mean", "", np.mean(means, axis=0)))
        print(lines[-1])
    given.out.write_text("\n".join(lines) + "\n", "utf-8")


def table_line(world, size, found):
    *kinds, (listed, _) = found
    cells = "".join(f"{100 * held:>12.1f} % ({wide:.3f})" for held, wide in kinds)
    return f"{world:<22}{size:>6}{cells}{100 * listed:>24.1f} %"


if __name__ == "__main__":
    main()
