"""Budgets that a private fit divides."""

import numpy as np
import pytest

from steadytree.privacy.ledger import Ledger
from steadytree.privacy.mechanisms import SMALLEST_PART
from steadytree.privacy.private_tree import PrivateTreeClassifier
from tests.federated.test_holder import SCHEMA, frame

METHODS = ["gibbs", "greedy", "topdown"]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epsilon", [1e-6, 1e-5, 1e-3])
def test_a_budget_too_small_to_be_divided_is_refused_before_it_is_spent(tmp_path, method, epsilon):
    ledger = Ledger(tmp_path / "l", 1.0)
    model = PrivateTreeClassifier(
        epsilon, SCHEMA, method, max_depth=16, ledger=ledger, testing_seed=0
    )
    if model._smallest_part() < SMALLEST_PART:
        with pytest.raises(ValueError, match="to be divided as requested"):
            model.fit(*frame(50, 0))
        assert ledger.spent == 0
    else:  # then no part of it fails later on, however deep the tree becomes
        model.set_params(max_depth=6 if method == "topdown" else 4).fit(*frame(50, 0))
        assert ledger.spent == epsilon


def test_small_parts_of_decaying_budgets_can_be_spent():
    """Depth 16 halves a budget sixteen times: 0.01 used to end in an error, half way and paid."""
    model = PrivateTreeClassifier(
        0.01, SCHEMA, "topdown", max_depth=16, error=0.0, max_splits=500, testing_seed=0
    )
    assert model.fit(*frame(300, 0)).tree_.depth >= 0


@pytest.mark.parametrize("epsilon", [np.float32(0.5), np.int64(1), 1])
def test_any_number_is_an_epsilon(tmp_path, epsilon):
    ledger = Ledger(tmp_path / "l", 2.0)
    PrivateTreeClassifier(epsilon, SCHEMA, ledger=ledger, testing_seed=0).fit(*frame(50, 0))
    assert ledger.spent == float(epsilon)
