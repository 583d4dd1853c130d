import numpy as np
import pytest

from steadytree.core.candidates import Candidates
from steadytree.core.schema import Schema
from steadytree.learn.private import PrivateTreeClassifier
from steadytree.measure.privacy_audit import audit_privacy
from steadytree.privacy.drawn import BlockRows
from steadytree.privacy.mechanisms import release_counts, select
from steadytree.privacy.noise import SeededNoise
from steadytree.privacy.whole_tree import draw_tree

SCHEMA = Schema(bounds={}, categories={"a": ["n", "y"], "b": ["n", "y"]}, classes=[0, 1])
CANDIDATES = Candidates.of(SCHEMA.space, 2)
# neighbours: two or three rows of class 0 at one point, against five of class 1: the chance of
# label 0 there moves by almost a factor of e
FEW, MORE = [0, 0, 1, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1, 1]


def block(labels):
    codes = np.zeros((2, len(labels)), np.uint8)
    return BlockRows(codes, np.array(labels, np.int32), 2, np.arange(len(labels)))


def label_at_zero(tree):
    while not tree.is_leaf:
        tree = tree.yes
    return tree.label


def whole_tree(epsilon, depth, noise):
    return lambda labels: label_at_zero(
        draw_tree(block(labels), CANDIDATES, epsilon, depth, "right", noise)
    )


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_whole_trees_keep_their_claim(depth):
    noise = SeededNoise(depth)
    audit = audit_privacy(whole_tree(1.0, depth, noise), FEW, MORE, 1.0, runs=8_000)
    assert 0.4 < audit.lower_bound < 1.0
    assert not audit.refuted


def test_a_doubled_epsilon_is_caught():
    audit = audit_privacy(whole_tree(2.0, 1, SeededNoise(0)), FEW, MORE, 1.0, runs=20_000)
    assert audit.refuted, audit


def counts_of(labels, noise):
    return np.bincount(labels, minlength=2), noise


def test_counts_keep_their_claim_and_come_close_to_it():
    noise = SeededNoise(3)

    def mechanism(labels):
        return int(release_counts(np.bincount(labels, minlength=2), 1.0, noise)[1].clip(-4, 5))

    audit = audit_privacy(mechanism, [0] * 5, [0] * 5 + [1], 1.0, runs=20_000)
    assert 0.7 < audit.lower_bound < 1.0


def test_zeros_without_noise_are_caught():
    noise = SeededNoise(4)

    def mechanism(labels):
        exact = np.bincount(labels, minlength=2)
        noisy = np.maximum(release_counts(exact, 1.0, noise), 1)
        return tuple(np.where(exact == 0, 0, noisy).clip(0, 9).tolist())

    audit = audit_privacy(mechanism, [0] * 5, [0] * 5 + [1], 1.0, runs=4_000)
    assert audit.refuted
    assert audit.lower_bound > 3


def test_selection_keeps_its_claim():
    noise = SeededNoise(5)
    # a removed row lowers only the first score by its whole sensitivity
    audit = audit_privacy(
        lambda scores: select(np.array(scores), 1.0, 2.0, noise),
        [0.0, -2.0, -2.0],
        [-2.0, -2.0, -2.0],
        1.0,
        runs=20_000,
    )
    assert 0.3 < audit.lower_bound < 1.0


@pytest.mark.parametrize("method", ["gibbs", "greedy", "topdown"])
def test_learners_keep_their_claim_end_to_end(method):
    seeds = iter(range(10**6))
    rows = {len(labels): [["n", "n"]] * len(labels) for labels in (FEW, MORE)}

    def mechanism(labels):
        model = PrivateTreeClassifier(
            1.0, SCHEMA, method, max_depth=1, testing_seed=next(seeds), public_rows=7
        )
        return int(model.fit(rows[len(labels)], labels).tree_.predict(rows[7][:1])[0])

    audit = audit_privacy(mechanism, FEW, MORE, 1.0, runs=1_000)
    assert not audit.refuted
    assert audit.runs == 1_000


def test_an_audit_says_what_it_found():
    audit = audit_privacy(lambda data: len(data), [1], [1, 2], 1.0, runs=200, confidence=0.9)
    assert str(audit).endswith("claimed 1: REFUTED")
    assert "never prove" in audit.reading().meaning


@pytest.mark.parametrize("wrong", [{"runs": 10}, {"confidence": 1.0}])
def test_audit_refuses_senseless_numbers(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        audit_privacy(len, [1], [1, 2], 1.0, **wrong)
