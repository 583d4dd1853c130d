"""Proven optima on the papers' data, found before by another program and by SCIP."""

import math

import pytest

from steadytree.robustness.certify import certify
from steadytree.robustness.robust_tree import RobustTreeClassifier
from tests.robustness.instances import instance

pytestmark = pytest.mark.data

DEPTH_2 = {
    ("monks-3", 0.85): 98,
    ("hayes-roth", 0.85): 70,
    ("monks-1_enc", 0.85): 91,
    ("monks-2", 0.85): 105,
    ("soybean-small_enc", 0.85): 44,
    ("balance-scale", 0.85): 389,
    ("monks-1", 0.95): 98,
    ("monks-1", 0.75): 78,
}
DEPTH_3 = {
    "monks-1": (84, 96, 108),
    "monks-2": (105, 105, 120),
    "monks-3": (87, 100, 111),
    "hayes-roth": (68, 79, 89),
    "balance-scale": (373, 419, 463),
    "car": (1210, 1243, 1355),
    "monks-1_enc": (85, 97, 109),
    "monks-2_enc": (105, 105, 118),
    "monks-3_enc": (91, 101, 111),
    "hayes-roth_enc": (71, 81, 92),
    "balance-scale_enc": (358, 385, 432),
    "car_enc": (1210, 1210, 1263),
    "breast-cancer-ljubljana_enc": (197, 197, 211),
    "tic-tac-toe_enc": (626, 626, 694),
    "soybean-small_enc": (41, 44, 46),
}
LARGE = ("car", "car_enc", "balance-scale_enc", "breast-cancer-ljubljana_enc", "tic-tac-toe_enc")
DEPTH_4 = {
    ("monks-1", 0.85): 105,
    ("monks-1", 0.95): 117,
    ("monks-2", 0.85): 115,
    ("monks-2", 0.95): 131,
    ("monks-3", 0.85): 102,
    ("monks-3", 0.95): 113,
    ("hayes-roth", 0.85): 96,
    ("hayes-roth", 0.95): 106,
    ("monks-1_enc", 0.95): 119,
    ("monks-3_enc", 0.95): 114,
}
HARD = {
    ("kr-vs-kp_enc", 3, 0.75): 1951,
    ("kr-vs-kp_enc", 3, 0.85): 2342,
    ("kr-vs-kp_enc", 3, 0.95): 2791,
    ("monks-1_enc", 4, 0.85): 107,
    ("monks-3_enc", 4, 0.85): 104,
    ("monks-2_enc", 4, 0.95): 129,
    ("hayes-roth_enc", 4, 0.85): 91,
    ("hayes-roth_enc", 4, 0.95): 104,
    ("balance-scale", 4, 0.85): 457,
    ("balance-scale", 4, 0.95): 503,
    ("balance-scale_enc", 4, 0.95): 458,
    ("monks-2_enc", 4, 0.85): 108,
    ("soybean-small_enc", 4, 0.85): 45,
    ("soybean-small_enc", 4, 0.95): 47,
    ("breast-cancer-ljubljana_enc", 4, 0.95): 221,
    ("breast-cancer-ljubljana_enc", 4, 0.85): 200,
    ("monks-1", 5, 0.95): 119,
}


def check(name, confidence, depth, expected):
    X, y, noise = instance(name, confidence)
    model = RobustTreeClassifier(depth, noise, time_limit=math.inf, random_state=0).fit(X, y)
    assert (model.proven_, model.objective_, model.bound_) == (True, expected, expected)
    worst = certify(model, X, y, noise).worst_case_accuracy
    assert worst * len(y) == pytest.approx(expected)


@pytest.mark.parametrize(("name", "confidence"), DEPTH_2)
def test_depth_2(name, confidence):
    check(name, confidence, 2, DEPTH_2[name, confidence])


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.heavy) if name in LARGE else name for name in DEPTH_3],
)
def test_depth_3(name):
    for confidence, expected in zip((0.75, 0.85, 0.95), DEPTH_3[name], strict=True):
        check(name, confidence, 3, expected)


@pytest.mark.parametrize(("name", "confidence"), DEPTH_4)
def test_depth_4(name, confidence):
    check(name, confidence, 4, DEPTH_4[name, confidence])


@pytest.mark.heavy
@pytest.mark.parametrize(("name", "depth", "confidence"), HARD)
def test_hard_instances(name, depth, confidence):
    check(name, confidence, depth, HARD[name, depth, confidence])
