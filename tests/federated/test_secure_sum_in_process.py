"""SecureSum: paid for before it sums, and never without noise."""

import pytest

from steadytree.data.splits import SplitTable
from steadytree.federated.coordinator import Coordinator
from steadytree.federated.messages import RefusedError
from steadytree.federated.secure_sum import SecureSum
from steadytree.privacy.ledger import BudgetError
from steadytree.privacy.mechanisms import SeededNoise
from steadytree.privacy.sampled_tree import OPEN
from tests.federated.test_holder import DIGEST, SCHEMA, holders

CANDIDATES = SplitTable.declared(SCHEMA.space, 4)


def test_seeded_and_real_holders_are_never_summed_together(tmp_path):
    pytest.importorskip("opendp")
    (tmp_path / "real").mkdir()
    mixed = [holders(tmp_path, 1.0, 1)[0], holders(tmp_path / "real", 1.0, 2, seed=None)[1]]
    for seed in (None, 0):
        with pytest.raises(ValueError, match="or to none of them"):
            SecureSum(mixed, "run", DIGEST, 1.0, testing_seed=seed)


def test_exact_counts_need_a_sum_that_was_paid_for(tmp_path):
    one = holders(tmp_path, 1.0, 1)[0]
    assert not hasattr(one, "exact_counts")
    with pytest.raises(RefusedError, match="joined and paid for"):
        one._exact_counts("run", OPEN, CANDIDATES, "rows")
    one.join_sum("run", DIGEST, 1.0, 0.0)
    assert one._exact_counts("run", OPEN, CANDIDATES, "rows").tolist() == [400]
    with pytest.raises(BudgetError):
        one.join_sum("more", DIGEST, 1.0, 0.0)
    with pytest.raises(RefusedError, match="joined and paid for"):
        one._exact_counts("more", OPEN, CANDIDATES, "rows")


def test_sums_for_another_schema_are_refused(tmp_path):
    one = holders(tmp_path, 1.0, 1)[0]
    with pytest.raises(RefusedError, match="another schema"):
        SecureSum([one], "run", "other", 1.0, testing_seed=0)
    assert one.ledger.spent == 0


def test_sums_together_cost_no_more_than_was_paid(tmp_path):
    class Recorder(SeededNoise):
        cost = 0.0

        def laplace(self, values, scale):
            self.cost += 1 / scale
            return values

    sums = SecureSum(holders(tmp_path, 1.0, 2), "run", DIGEST, 1.0, testing_seed=0)
    sums._noise = Recorder(0)
    for share in (0.5, 0.5 + 9e-10):  # within what rounding may add
        sums.ask(share, "rows", OPEN, CANDIDATES)
    assert sums._noise.cost <= 1.0


def test_nobody_is_summed_when_one_holder_cannot_pay(tmp_path):
    several = holders(tmp_path, 1.0, 3)
    several[2].ledger.spend(0.5, "earlier")
    counted = []
    for holder in several:
        holder._exact_counts = lambda *_: counted.append(1)
    with pytest.raises(BudgetError):
        SecureSum(several, "run", DIGEST, 1.0, testing_seed=0)
    assert counted == []
    assert [holder.ledger.spent for holder in several] == [1.0, 1.0, 0.5]  # at least what left


def test_a_sum_without_an_absent_holder_is_no_sum(tmp_path):
    """A holder that fails half way ends the run: no sum of fewer goes out under the same noise."""
    from steadytree.data.splits import SplitTable
    from steadytree.privacy.sampled_tree import OPEN

    several = holders(tmp_path, 1.0, 3)
    sums = SecureSum(several, "run", DIGEST, 1.0, testing_seed=0)
    candidates = SplitTable.declared(SCHEMA.space, 4)

    def gone(*_):
        raise ConnectionError("gone")

    several[1]._exact_counts = gone
    with pytest.raises(ConnectionError):
        sums.ask(0.6, "rows", OPEN, candidates)
    with pytest.raises(RefusedError, match="spent"):  # what was tried counts as spent
        sums.ask(0.6, "rows", OPEN, candidates)


def test_zcdp_sums_cost_delta(tmp_path):
    several = holders(tmp_path, 4.0, 2, delta=1e-6)
    fitted = Coordinator(several, SCHEMA, 4.0, "secure_sum", 1e-6, testing_seed=0).fit()
    assert fitted.privacy_.delta == 1e-6
    assert [holder.ledger.spent_delta for holder in several] == [1e-6, 1e-6]


def test_a_secure_sum_ends_with_its_budget(tmp_path):
    several = holders(tmp_path, 1.0, 2)
    sums = SecureSum(several, "run", DIGEST, 1.0, testing_seed=0)
    candidates = SplitTable.declared(SCHEMA.space, 4)
    sums.ask(0.6, "rows", OPEN, candidates)
    with pytest.raises(RefusedError, match="spent"):
        sums.ask(0.6, "rows", OPEN, candidates)
    assert [holder.ledger.left for holder in several] == [0.0, 0.0]
