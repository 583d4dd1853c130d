"""Cards on the paper's data: the published rows, and what ours must reach.

The splits of the means are others than those on which the method was made.
"""

import os
import pathlib

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import train_test_split

from steadytree.riskscore.risk_score import RiskScoreClassifier
from steadytree.robustness.certify import certify
from steadytree.robustness.perturbation import Perturbation
from steadytree.robustness.separation import separation

pytestmark = pytest.mark.data

# conditions, accuracy and ER of BBM-RS in Table 3, as printed
PRINTED = {
    "adult_sep": (6.0, 0.81, 0.50),
    "bank_sep_rebuilt": (8.0, 0.90, 0.50),
    "bank2_sep_rebuilt": (4.5, 0.90, 0.50),
    "breastcancer_sep": (11.0, 0.96, 0.27),
    "careval_sep": (8.7, 0.77, 0.50),
    "fico_sep": (11.8, 0.72, 0.50),
    "mushroom_sep": (9.9, 0.97, 0.50),
    "spambase_sep": (5.6, 0.79, 0.05),
}
# printed too, but ties are broken in ways that the paper does not tell
TIED = ("diabetes_sep", "heart_sep", "ionosphere_sep")
LARGE = ("adult_sep", "bank_sep_rebuilt", "bank2_sep_rebuilt", "fico_sep", "mushroom_sep")


def load(name):
    folder = pathlib.Path(os.environ.get("STEADYTREE_DATA", "."))
    path = folder / f"{name}.csv.gz"
    if not path.is_file():
        pytest.skip(f"{path.name} is not in the folder named by STEADYTREE_DATA")
    frame = pd.read_csv(path)
    y = frame.pop("target" if "target" in frame else frame.columns[-1])
    return frame.to_numpy(float), (y == 1).to_numpy().astype(int)


def split(X, y, seed):
    a, b, c, d = train_test_split(X, y, test_size=0.33, random_state=seed)
    low, wide = a.min(axis=0), np.ptp(a, axis=0)
    wide = np.where(wide > 0, wide, 1.0)
    return (a - low) / wide, (b - low) / wide, c, d


def judge(model, a, b, d, bounded=True):
    """Accuracy, astuteness at 0.05 and ER on test rows."""
    low, high = np.minimum(a.min(axis=0), b.min(axis=0)), np.maximum(a.max(axis=0), b.max(axis=0))
    box = zip(low, high, strict=True) if bounded else [(-np.inf, np.inf)] * a.shape[1]
    bounds = {f"x{j}": (float(ends[0]), float(ends[1])) for j, ends in enumerate(box)}
    found = certify(model, b, d, Perturbation(radius=1.0, whole=[], bounds=bounds))
    reached = found.distance[found.right & np.isfinite(found.distance)]
    return found.accuracy, found.certified_accuracy(0.05), reached.mean()


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.heavy) if name in LARGE else name for name in PRINTED],
)
def test_the_published_algorithm_gives_the_printed_row(name):
    X, y = load(name)
    rows = []
    for seed in range(10):
        a, b, c, d = split(X, y, seed)
        a, b = (np.column_stack([part, np.ones(len(part))]) for part in (a, b))
        model = RiskScoreClassifier.as_published().fit(a, c)
        accuracy, _, er = judge(model, a, b, d, bounded=False)
        rows.append((model.card_.n_conditions, accuracy, er))
    asked, accuracy, er = np.mean(rows, axis=0)
    printed = PRINTED[name]
    assert asked == pytest.approx(printed[0], abs=0.005)
    assert accuracy == pytest.approx(printed[1], abs=0.005)
    assert er == pytest.approx(printed[2], abs=0.005)


@pytest.mark.heavy
@pytest.mark.parametrize(("tau", "accuracy", "astute"), [(0.05, 0.840, 0.825), (0.0, 0.848, 0.0)])
def test_means_over_the_sets_on_splits_not_seen_before(tau, accuracy, astute):
    means = []
    for name in (*PRINTED, *TIED):
        X, y = load(name)
        rows = []
        for seed in range(200, 205):
            a, b, c, d = split(X, y, seed)
            settings = {"noise": tau, "max_conditions": 10, "random_state": 0}
            model = RiskScoreClassifier("majority", **settings).fit(a, c)
            rows.append(judge(model, a, b, d)[:2])
        means.append(np.mean(rows, axis=0))
    found = np.mean(means, axis=0)
    assert found[0] >= accuracy
    assert found[1] >= astute


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("name", "loss", "gain"),
    [
        # a card of "majority" without noise is certified on 0.75 of heart's rows already, and one
        # with noise is right on 0.82 of them: no more than the difference can be gained
        ("heart_sep", "majority", 0.04),
        ("heart_sep", "logistic", 0.08),
        ("ionosphere_sep", "majority", 0.08),
        ("ionosphere_sep", "logistic", 0.08),
    ],
)
def test_noise_by_one_standard_error_buys_robustness_for_nothing(name, loss, gain):
    """The rule was made on splits 300 to 319."""
    X, y = load(name)
    rows = []
    for seed in range(100, 120):
        a, b, c, d = split(X, y, seed)
        found = [
            judge(RiskScoreClassifier(loss, tau, random_state=0).fit(a, c), a, b, d)[:2]
            for tau in (0.0, "1se")
        ]
        rows.append(found)
    (accuracy, astute), (chosen, chosen_astute) = np.mean(rows, axis=0)
    assert chosen >= accuracy - 1e-9
    assert chosen_astute >= astute + gain


def test_two_distances_of_table_2_are_other_than_printed():
    for name, two_r in (("diabetes_sep", 0.0328), ("ionosphere_sep", 0.1148)):
        found = separation(*load(name), r=1e-5, linear=False)
        assert found.separateness == 1.0
        assert found.two_r == pytest.approx(two_r, abs=5e-5)
