import numpy as np
import pandas as pd
import pytest

from steadytree.data.feature_space import FeatureSpace
from steadytree.stability.grouped_bins import GroupedBins, rounded_cuts


def test_rare_categories_share_a_bin_and_unseen_ones_follow_the_larger_side():
    names = np.array(["a"] * 60 + ["b"] * 38 + ["r", "s"], dtype=object)
    X = pd.DataFrame({"c": pd.Categorical(names, categories=list("abrsz"))})
    y = np.array([0] * 60 + [1] * 40)
    space = FeatureSpace.observe(X)
    values, targets = space.encode(X), y[:, None].astype(float)
    bins = GroupedBins.of(space, values, targets, np.ones(100))
    a, b, r, s, z, missing = bins.groups[0]
    assert a == 0
    assert r == s
    assert {b, r} == {1, 2}
    assert z == missing == -1
    larger = bins.question(0, 1 << a, larger_left=True)
    assert larger.subset.tolist() == [True, False, False, False, True]
    assert larger.missing_left
    assert not bins.question(0, 1 << a, larger_left=False).subset[4]


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e9])
def test_cuts_are_few_rise_and_part_numbers_as_single_precision_does(scale):
    rng = np.random.default_rng(0)
    x = rng.normal(3, 2, 1000).round(2) * scale
    cuts = rounded_cuts(x, np.ones(1000))
    assert 8 < len(cuts) <= 16
    assert (np.diff(cuts) > 0).all()
    single = x.astype(np.float32)
    for cut in cuts:
        assert ((x <= cut) == (single <= cut)).all()
        assert 0 < (x <= cut).sum() < 1000


def test_cuts_stay_when_a_tenth_of_the_rows_goes():
    rng = np.random.default_rng(0)
    x = rng.normal(50, 10, 3000)
    whole = rounded_cuts(x, np.ones(3000))
    part = rounded_cuts(x[300:], np.ones(2700))
    assert len(np.intersect1d(whole, part)) >= 0.6 * len(whole)
