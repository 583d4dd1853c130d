"""Methods to grow one tree from several holders."""

import numpy as np
import pytest

from steadytree.federated.coordinator import Coordinator
from steadytree.federated.holder import Holder
from steadytree.federated.strategies import METHODS, Session
from steadytree.federated.transport import LocalHolders
from steadytree.privacy.ledger import Ledger
from tests.federated.test_holder import SCHEMA, frame, holders


@pytest.mark.parametrize("method", ["delegate", "duel", "vote", "local_rnm", "noisy_counts"])
def test_the_parts_of_a_run_add_up_to_its_epsilon(tmp_path, method):
    several = holders(tmp_path, 2.0, n_rows=2_000)
    fitted = Coordinator(several, SCHEMA, 2.0, method, n_bins=4, testing_seed=0).fit()
    most = max(holder.ledger.spent for holder in several)
    assert sum(fitted.privacy_.spent.values()) == pytest.approx(most)
    assert sum(fitted.privacy_.spent.values()) <= 2.0


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
