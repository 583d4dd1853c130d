"""Methods to grow one tree from several holders."""

import numpy as np
import pytest

from steadytree._base.exceptions import RefusedError
from steadytree.data.schema import Schema
from steadytree.data.splits import SplitTable
from steadytree.federated.coordinator import Coordinator
from steadytree.federated.holder import Holder
from steadytree.federated.messages import WHOLE
from steadytree.federated.session import Session
from steadytree.federated.strategies import METHODS, _compare_holders, _count
from steadytree.federated.transport import LocalHolders
from steadytree.privacy.evaluation import audit_privacy
from steadytree.privacy.ledger import Ledger
from steadytree.privacy.mechanisms import SeededNoise, release_counts
from steadytree.privacy.sampled_tree import OPEN, SampledTree, leaves_of
from steadytree.privacy.topdown import TopDown, TopDownTree, count_variance
from steadytree.privacy.tree_mechanism import BlockRows, bin_counts, side_counts
from tests.federated.test_holder import SCHEMA, frame, holders


@pytest.mark.parametrize("method", ["delegate", "duel", "vote", "local_rnm", "noisy_counts"])
def test_the_parts_of_a_run_add_up_to_its_epsilon(tmp_path, method):
    several = holders(tmp_path, 2.0, n_rows=2_000)
    fitted = Coordinator(several, SCHEMA, 2.0, method, n_bins=4, testing_seed=0).fit()
    most = max(holder.ledger.spent for holder in several)
    assert sum(fitted.privacy_.spent.values()) == pytest.approx(most)
    assert sum(fitted.privacy_.spent.values()) <= 2.0


class WithoutBlocksOf(LocalHolders):
    """Holders of which one answers everything but blocks."""

    def __init__(self, several, absent):
        super().__init__(several)
        self.absent = absent

    def ask(self, requests):
        gone = {name for name, one in requests.items() if self.absent(name) and "block" in one.kind}
        answered = super().ask({name: one for name, one in requests.items() if name not in gone})
        return answered | dict.fromkeys(gone, RefusedError("no answer"))


@pytest.mark.parametrize("n_holders", [2, 3])
def test_a_holder_that_steps_in_for_another_spends_no_more_than_epsilon(tmp_path, n_holders):
    """It had paid for the missing holder's block and for its own: 1.38 times epsilon."""
    several = holders(tmp_path, 20.0, k=n_holders, n_rows=2_000)
    transport = WithoutBlocksOf(several, lambda name: name == "h0")
    session = Session(transport, SCHEMA, 2.0, "run", 4, minimum=1)
    tree, counts = METHODS["delegate"](session, list(range(n_holders)))
    assert len(counts) == len(leaves_of(tree)) > 1
    spent = [holder.ledger.spent for holder in several]
    assert max(spent) <= 2.0
    np.testing.assert_allclose(spent, session.spent, rtol=1e-9)
    for holder in several[1:]:  # and its share of the leaves is left to it
        counted = [entry.epsilon for entry in holder.ledger.entries if entry.what == "leaf counts"]
        assert sum(counted) >= 0.3 * 2.0 * (1 - 1e-6)


def test_holders_with_many_mixed_rows_propose(tmp_path):
    """Two have both classes; one has many rows of one class only, one has next to none."""
    X, y = frame(3_000, 0)
    one_class = np.flatnonzero(y == "no")[:900]
    parts = [np.arange(900), one_class, np.arange(900, 1_800), np.arange(8)]
    several = [
        Holder(
            f"h{j}", SCHEMA, X.iloc[rows], y[rows], Ledger(tmp_path / str(j), 4.0), testing_seed=j
        )
        for j, rows in enumerate(parts)
    ]
    session = Session(LocalHolders(several), SCHEMA, 4.0, "run", 4)
    METHODS["duel"](session, [1, 3, 0, 2])
    proposed = [sum(entry.what == "block" for entry in holder.ledger.entries) for holder in several]
    assert proposed[0] == proposed[2] > 0
    assert proposed[1] == proposed[3] == 0
    assert all(holder.ledger.spent <= 4.0 for holder in several)


def skewed(folder, parts, epsilon=4.0):
    X, y = frame(4_000, 0)
    return [
        Holder(
            f"h{j}", SCHEMA, X.iloc[rows], y[rows], Ledger(folder / str(j), epsilon), testing_seed=j
        )
        for j, rows in enumerate(parts(y))
    ]


def few_of_one_class(y):
    """Four holders: nearly one class only, twice; both classes; next to nothing."""
    no, yes = np.flatnonzero(y == "no"), np.flatnonzero(y == "yes")
    one = np.concatenate([no[:900], yes[:20]])
    other = np.concatenate([no[900:920], yes[20:920]])
    return [one, np.concatenate([no[920:1_300], yes[920:1_000]]), other, no[1_300:1_310]]


def test_holders_with_rows_like_those_of_all_sample(tmp_path):
    several = skewed(tmp_path, few_of_one_class)
    session = Session(LocalHolders(several), SCHEMA, 4.0, "run", 4)
    worth, weights = _compare_holders(session, range(4))
    assert max(worth, key=worth.get) == 1
    # 380 rows of "no" and 80 of "yes", where all have 1,310 and 1,000: a "no" counts a quarter
    assert weights[1][1] == WHOLE
    assert 0.2 * WHOLE < weights[1][0] < 0.36 * WHOLE
    np.testing.assert_allclose(session.spent, 0.05 * session.epsilon)


def test_holders_that_are_alike_count_every_row(tmp_path):
    session = Session(LocalHolders(holders(tmp_path, 4.0)), SCHEMA, 4.0, "run", 4)
    worth, weights = _compare_holders(session, range(4))
    assert all(min(listed) > 0.75 * WHOLE for listed in weights.values())
    assert min(worth.values()) > 0.8 * max(worth.values()) > 250


def test_weights_make_the_classes_of_a_holder_those_of_all(tmp_path):
    """Against a plain search over limits, for exact counts."""
    counts = np.array([[900, 20], [380, 80], [20, 900], [10, 1]])

    class Known(Session):
        def ask(self, epsilons, *_, **__):
            return dict(enumerate(counts))

    session = Known(LocalHolders(holders(tmp_path, 4.0)), SCHEMA, 4.0, "run", 4)
    worth, weights = _compare_holders(session, range(4))
    total = counts.sum(axis=0)
    for who, own in enumerate(counts):
        found = []
        for limit in np.linspace(1e-4, 1, 20_001):
            scaled = np.minimum(1, limit * total / own)
            rows = (scaled * own).sum()
            overlap = np.minimum(scaled * own / rows, total / total.sum()).sum()
            found.append(rows * overlap**4)
        assert worth[who] == pytest.approx(max(found), rel=0.02)
        assert 1 <= min(weights[who]) <= max(weights[who]) == WHOLE


@pytest.mark.parametrize("k", [1, 4])
def test_a_tree_of_one_block_is_sampled_by_two_where_there_are_two(tmp_path, k):
    several = holders(tmp_path, 1.0, k, n_rows=100)
    Coordinator(several, SCHEMA, 1.0, n_bins=4, testing_seed=0).fit()
    listed = [[entry.what for entry in holder.ledger.entries] for holder in several]
    assert sum("last block" in names for names in listed) == min(k, 2)
    assert all(names[0] == names[-1] == "leaf counts" for names in listed)


@pytest.mark.parametrize("method", [*METHODS, "secure_sum"])
def test_each_method_learns_and_spends_what_it_said(tmp_path, method):
    several = holders(tmp_path, 8.0)
    fitted = Coordinator(several, SCHEMA, 8.0, method, n_bins=4, testing_seed=0).fit()
    X, y = frame(500, 99)
    assert (fitted.predict(X) == y).mean() > 0.9
    np.testing.assert_allclose(fitted.predict_proba(X).sum(axis=1), 1.0)
    for holder in several:
        assert 0 < holder.ledger.spent <= 8.0
    assert max(holder.ledger.spent for holder in several) == pytest.approx(8.0)
    assert not fitted.privacy_.private
    assert fitted.privacy_.relation == "add or remove one row of one holder"


@pytest.mark.parametrize(("k", "epsilon"), [(1, 1.0), (2, 0.1), (3, 0.7), (4, 0.3)])
@pytest.mark.parametrize("method", [*METHODS, "secure_sum"])
def test_a_budget_of_just_epsilon_is_enough_for_any_number_of_holders(tmp_path, method, k, epsilon):
    several = holders(tmp_path, epsilon, k)
    Coordinator(several, SCHEMA, epsilon, method, n_bins=3, testing_seed=1).fit()
    assert all(holder.ledger.spent <= epsilon for holder in several)


# ---- DP-TopDown among holders ----
TOP_DOWN = ("local_rnm", "noisy_counts")


def run(several, method, epsilon=8.0, n_bins=4, **limits):
    session = Session(
        LocalHolders(several), SCHEMA, epsilon, "run", n_bins, limits=TopDown(**limits)
    )
    return session, METHODS[method](session, list(range(len(several))))


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("budget", ["decay", "uniform"])
@pytest.mark.parametrize("method", TOP_DOWN)
def test_each_depth_is_paid_for_once(tmp_path, method, budget, criterion):
    """Whatever the number of leaves: B(d) at depth d, and the rest for the leaves."""
    several = holders(tmp_path, 8.0, n_rows=3_000)
    limits = TopDown(6, budget=budget, criterion=criterion, leaf_share=0.2)
    _, (tree, _) = run(
        several, method, max_splits=6, budget=budget, criterion=criterion, leaf_share=0.2
    )
    assert 1 <= len(leaves_of(tree)) - 1 <= 6
    parts = limits.epsilons(8.0, 0.0)
    for holder in several:
        *costs, last = [float(entry.epsilon) for entry in holder.ledger.entries]
        if method == "local_rnm":
            kind = "choice" if criterion == "gini" else "entropy choice"
            assert {entry.what for entry in holder.ledger.entries[:-1:2]} == {kind}
            costs = [sum(pair) for pair in zip(costs[::2], costs[1::2], strict=True)]
        np.testing.assert_allclose(costs, parts[: len(costs)], rtol=1e-6)
        assert last == pytest.approx(8.0 - sum(costs))
        assert holder.ledger.spent <= 8.0


def test_noisy_counts_send_every_split_and_local_rnm_few(tmp_path):
    """Numbers in answers: 2 C a split and leaf, of all m splits or of at most k proposals."""
    k, found = 3, {}
    for method in TOP_DOWN:
        folder = tmp_path / method
        folder.mkdir()
        several = holders(folder, 8.0, k, n_rows=1_000)
        found[method], (tree, _) = run(several, method, max_splits=1)
        assert len(leaves_of(tree)) == 2
    classes, m = len(SCHEMA.classes), len(found["local_rnm"].candidates)
    leaf_counts = k * 2 * classes
    assert found["noisy_counts"].numbers == k * m * 2 * classes + leaf_counts
    most = k * (1 + k * 2 * classes) + leaf_counts
    assert k * (1 + 2 * classes) + leaf_counts <= found["local_rnm"].numbers <= most


def test_proposals_are_counted_with_noise_for_all_of_them(tmp_path):
    """A row counts once for each proposal, so the noise grows with the most at any leaf."""
    several = holders(tmp_path, 8.0)
    session = Session(LocalHolders(several), SCHEMA, 8.0, "run", 4)
    (first, second) = _count(session, SampledTree(0, OPEN, OPEN), ((1, 2, 3), (4,)), 2.0)
    assert first.variance == second.variance == count_variance(2.0, 3, len(several))
    assert first.counts.shape == (3, 2, len(SCHEMA.classes))
    assert second.counts.shape == (1, 2, len(SCHEMA.classes))


@pytest.mark.parametrize("times", [7, 1])
def test_counts_of_all_splits_need_noise_for_all_of_them(times):
    """The audit passes the right noise and catches a plan that pays for one split and counts 7."""
    schema = Schema(bounds={"u": (0, 8)}, classes=[0, 1])
    candidates, noise = SplitTable.declared(schema.space, 8), SeededNoise(times)
    assert len(candidates) == 7
    blocks = {}
    for n_extra in (0, 1):
        labels = np.array([0] * 8 + [1] * n_extra, np.int32)
        binned = np.array([[*range(8), *[0] * n_extra]], np.uint8)
        block = BlockRows(binned, labels, 2, np.arange(len(labels)))
        blocks[n_extra] = side_counts(bin_counts(block, candidates), candidates, range(7))

    def mechanism(n_extra):
        noisy = release_counts(blocks[n_extra], 1.0, noise, times)
        return int(np.clip(noisy[:, 0, 1].sum() // times, -12, 18))

    audit = audit_privacy(mechanism, 0, 1, 1.0, runs=8_000)
    assert audit.refuted == (times == 1), audit


def test_labels_are_pooled_by_the_noise_of_all_holders(tmp_path, monkeypatch):
    """k holders with the same epsilon left: k times the variance of one."""
    told = []
    pooled = TopDownTree.labelled

    def labelled(self, noisy, variance):
        told.append(variance)
        return pooled(self, noisy, variance)

    monkeypatch.setattr(TopDownTree, "labelled", labelled)
    several = holders(tmp_path, 8.0, k=3, n_rows=2_000)
    run(several, "local_rnm", leaf_share=0.5)
    counted = [e.epsilon for e in several[0].ledger.entries if e.what == "leaf counts"]
    assert told == [pytest.approx(3 * 2 / float(sum(counted)) ** 2)]
