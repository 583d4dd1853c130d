"""Padding: the same answers as without, and work that no row changes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steadytree._base.exceptions import CancelledError
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.schema import Schema
from steadytree.data.splits import SplitTable
from steadytree.privacy import padding as module
from steadytree.privacy import tree_mechanism
from steadytree.privacy.growers import RowsInMemory
from steadytree.privacy.mechanisms import SeededNoise
from steadytree.privacy.padding import Price, capacity_for
from steadytree.privacy.sampled_tree import from_numbers, leaves_of
from steadytree.privacy.tree_mechanism import bin_counts, extend, leaf_counts, rows_by_leaf

SCHEMA = Schema({"age": (0, 100), "dose": (0, 8)}, {"ward": ["A", "B"]}, ["a", "b", "c"])
CANDIDATES = SplitTable.declared(SCHEMA.space, 4)
EMPTY_LEAF = from_numbers((0, 0, -1, -1, 0, -1, -1), len(CANDIDATES))  # no row is on both sides


def rows(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    columns = (
        rng.uniform(0, 100, n_rows),
        rng.uniform(0, 8, n_rows),
        rng.choice(["A", "B"], n_rows),
    )
    X = np.column_stack([np.asarray(column, object) for column in columns])
    return RowsInMemory(SCHEMA, X.reshape(n_rows, 3), rng.choice(["a", "b", "c"], n_rows))


@pytest.mark.parametrize("n_rows", [0, 1, 65, 300])
@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("utility", ["pure", "correct"])
def test_padded_rows_give_the_same_answers(n_rows, depth, utility):
    own = rows(n_rows)
    plain, padded = own.block(CANDIDATES), own.padded(CANDIDATES, 1_024)
    for seed in range(3):
        how = (CANDIDATES, 0.7, depth, utility)
        found = [extend(EMPTY_LEAF, one, *how, SeededNoise(seed)) for one in (plain, padded)]
        assert found[0] == found[1]
    assert (
        leaf_counts(EMPTY_LEAF, plain, CANDIDATES) == leaf_counts(EMPTY_LEAF, padded, CANDIDATES)
    ).all()
    parts = (rows_by_leaf(EMPTY_LEAF, one, CANDIDATES) for one in (plain, padded))
    for one, other in zip(*parts, strict=True):
        assert (bin_counts(one, CANDIDATES) == bin_counts(other, CANDIDATES)).all()


class Trace:
    """Every kernel call and pass over an array: its name and the shapes of what it got."""

    def __init__(self, monkeypatch):
        self.calls = []
        for where, names in (
            (module, ("order_by_class", "pack_sides", "count_classes")),
            (tree_mechanism, ("root_terms", "impurity_scores")),
            (np, ("where", "bincount", "packbits")),
            (FeatureSpace, ("binned",)),
        ):
            for name in names:
                monkeypatch.setattr(where, name, self.wrap(name, getattr(where, name)))

    def wrap(self, name, real):
        def call(*given, **more):
            arrays = [one for one in given if not isinstance(one, FeatureSpace)]
            self.calls.append((name, *map(np.shape, arrays)))
            # both pass over rows of negative indices or nodes, which would take less time
            place = {"pack_sides": 1, "count_classes": 2}.get(name)
            if place is not None:
                self.calls.append(int((arrays[place] < 0).sum()))
            return real(*given, **more)

        return call


class Draws(SeededNoise):
    """Noise that counts its samples, and whose choices a test decides."""

    def __init__(self, chosen):
        super().__init__(0)
        self.private, self.chosen, self.draws = True, chosen, []

    def sample_index(self, log_weights):
        self.draws.append(len(log_weights))
        return min(self.chosen, len(log_weights) - 1)


@given(
    st.integers(0, 200),
    st.integers(0, 5),
    st.sampled_from([0, 1, 3, len(CANDIDATES)]),
    st.integers(1, 3),
    st.sampled_from(["pure", "correct"]),
)
@settings(max_examples=40)
def test_work_does_not_depend_on_rows_or_on_what_is_sampled(n_rows, seed, chosen, depth, utility):
    assert len(CANDIDATES.arrays) == 3  # computed at first use, from the schema; as is the next
    assert len(CANDIDATES.log_prior) == len(CANDIDATES)
    with pytest.MonkeyPatch.context() as patch:
        found = []
        for own, split in ((rows(n_rows, seed), chosen), (rows(0), len(CANDIDATES))):
            trace, noise = Trace(patch), Draws(split)
            block = own.padded(CANDIDATES, 256)  # binned and put in order at the first request
            extend(EMPTY_LEAF, block, CANDIDATES, 0.7, depth, utility, noise)
            for part in rows_by_leaf(EMPTY_LEAF, block, CANDIDATES):
                bin_counts(part, CANDIDATES)
            found.append((trace.calls, sorted(noise.draws), block.padding.done))
            patch.undo()
    assert found[0] == found[1]
    price, n_leaves = block.padding.price, len(leaves_of(EMPTY_LEAF))
    walked = 2 * (n_leaves - 1) * price.masking
    assert found[0][2] == walked + n_leaves * (price.block(depth) + price.counting)


def test_without_padding_work_does_depend_on_rows(monkeypatch):
    """The trace can tell: so it did before rows were padded."""
    found = []
    for n_rows in (0, 100):
        trace = Trace(monkeypatch)
        block = rows(n_rows).block(CANDIDATES)
        extend(EMPTY_LEAF, block, CANDIDATES, 0.7, 2, "correct", SeededNoise(0))
        found.append(trace.calls)
        monkeypatch.undo()
    assert found[0] != found[1]


def test_a_price_grows_with_all_that_is_asked():
    price = Price(4_096, 10, 200, 210, 2)
    assert price.block(1) < price.block(2) < price.block(3)
    for more in ({"n_rows": 8_192}, {"n_splits": 400}, {"n_classes": 4}):
        larger = Price(**{**vars(price), **more})
        assert larger.block(2) > price.block(2)
        assert larger.counting > price.counting
    # pairs of splits pass over all words: no less than m^2 words of 64 rows
    assert price.block(2) >= 200**2 * 4_096 // 64


def test_capacity_is_public():
    assert capacity_for(0, None) == capacity_for(1, None) == capacity_for(1_024, None)
    assert capacity_for(0, 10_000) == capacity_for(10_000, 10_000) == 10_048


def test_a_cancelled_computation_ends_at_its_next_pass():
    block = rows(10).padded(CANDIDATES, 256)
    block.padding.cancelled = True
    with pytest.raises(CancelledError):
        extend(EMPTY_LEAF, block, CANDIDATES, 0.7, 2, "pure", SeededNoise(0))
