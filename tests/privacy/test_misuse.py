"""What a privacy review found, each as the misuse that went through before."""

import pickle

import numpy as np
import pytest

from steadytree.data.candidates import Candidates
from steadytree.federated import holder as holder_module
from steadytree.federated.coordinator import Coordinator
from steadytree.federated.holder import Holder, SecureSum
from steadytree.federated.messages import RefusedError
from steadytree.models.files import load, save
from steadytree.privacy.budget import PrivacyStatement
from steadytree.privacy.ledger import BudgetError, Ledger
from steadytree.privacy.mechanisms import score_slack, select
from steadytree.privacy.noise import NOT_PRIVATE, SecureNoise, SeededNoise
from steadytree.privacy.private_tree import PrivateTreeClassifier
from steadytree.privacy.tree_mechanism import OPEN, sampler_slack, whole_tree_measurement
from tests.federated.test_holder import DIGEST, SCHEMA, ask, frame, holders

CANDIDATES = Candidates.of(SCHEMA.space, 4)


# ---- seeds ----
def test_nobody_chooses_the_seed_of_real_holders(tmp_path):
    pytest.importorskip("opendp")
    several = holders(tmp_path, 1.0, 2, seed=None)
    with pytest.raises(ValueError, match="or to none of them"):
        Coordinator(several, SCHEMA, 1.0, "secure_sum", testing_seed=0).fit()
    assert [holder.ledger.spent for holder in several] == [0.0, 0.0]


def test_seeded_and_real_holders_are_never_summed_together(tmp_path):
    pytest.importorskip("opendp")
    (tmp_path / "real").mkdir()
    mixed = [holders(tmp_path, 1.0, 1)[0], holders(tmp_path / "real", 1.0, 2, seed=None)[1]]
    for seed in (None, 0):
        with pytest.raises(ValueError, match="or to none of them"):
            SecureSum(mixed, "run", DIGEST, 1.0, testing_seed=seed)


def test_a_ledger_tells_seeded_releases_from_ordinary_ones(tmp_path):
    one = holders(tmp_path, 4.0, 1)[0]
    one.answer(ask())
    one.join_sum("sums", DIGEST, 1.0, 0.0)
    PrivateTreeClassifier(1.0, SCHEMA, ledger=one.ledger, testing_seed=0).fit(*frame(50, 0))
    assert [entry.mechanism for entry in one.ledger.entries] == [NOT_PRIVATE] * 3


def test_a_ledger_names_the_mechanism_of_private_releases(tmp_path):
    pytest.importorskip("opendp")
    ledger = Ledger(tmp_path / "l", 1.0)
    PrivateTreeClassifier(1.0, SCHEMA, ledger=ledger).fit(*frame(50, 0))
    assert ledger.entries[0].mechanism == "gibbs"


def test_a_seeded_tree_bears_a_mark_in_its_file(tmp_path):
    fitted = PrivateTreeClassifier(1.0, SCHEMA, testing_seed=0).fit(*frame(50, 0))
    path = tmp_path / "a.tree.json"
    with pytest.warns(UserWarning, match="NOT PRIVATE"):
        fitted.save(path)
    again = load(path)
    assert fitted.tree_.note == again.note == NOT_PRIVATE
    assert again == fitted.tree_
    assert NOT_PRIVATE in repr(again)
    assert NOT_PRIVATE in repr(pickle.loads(pickle.dumps(again)))
    assert again.prune().note == again.restrict([0]).note == NOT_PRIVATE
    save(again, path)  # and keeps it when it is handed on
    assert load(path).note == NOT_PRIVATE
    path.write_text(path.read_text().replace(NOT_PRIVATE, "private"))
    with pytest.raises(ValueError, match="changed after saving"):
        load(path)


def test_a_private_tree_bears_no_mark(tmp_path):
    pytest.importorskip("opendp")
    path = tmp_path / "a.tree.json"
    PrivateTreeClassifier(1.0, SCHEMA).fit(*frame(50, 0)).save(path)
    assert load(path).note == ""
    assert "note" not in path.read_text()


def test_one_seeded_holder_marks_the_tree_of_all(tmp_path):
    pytest.importorskip("opendp")
    (tmp_path / "real").mkdir()
    mixed = [holders(tmp_path, 1.0, 1)[0], holders(tmp_path / "real", 1.0, 2, seed=None)[1]]
    assert Coordinator(mixed, SCHEMA, 1.0, n_bins=4).fit().tree_.note == NOT_PRIVATE
    real = holders(tmp_path / "real", 1.0, 1, seed=None)
    assert Coordinator(real, SCHEMA, 1.0, n_bins=4).fit().tree_.note == ""


def test_a_party_that_does_not_say_so_is_not_private(tmp_path):
    pytest.importorskip("opendp")

    class Silent:
        name = "silent"
        inner = holders(tmp_path, 1.0, 1, seed=None)[0]

        def answer(self, request):
            return self.inner.answer(request)

    assert not Coordinator([Silent()], SCHEMA, 1.0, n_bins=4).fit().privacy_.private


def test_a_seed_has_to_be_named(tmp_path):
    with pytest.raises(TypeError, match="positional"):
        Holder("h", SCHEMA, *frame(5, 0), Ledger(tmp_path / "l", 1.0), 0)


# ---- exact counts ----
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


# ---- ledger ----
@pytest.mark.parametrize("harm", ["removed", "emptied", "replaced"])
def test_a_ledger_that_vanishes_gives_no_new_budget(tmp_path, harm):
    path = tmp_path / "l"
    ledger = Ledger(path, 1.0)
    ledger.spend(1.0, "tree")
    if harm == "removed":
        path.unlink()
    else:
        path.write_text("" if harm == "emptied" else "steadytree ledger 1 budget 9.0 delta 0.0\n")
    with pytest.raises(BudgetError, match="removed or replaced"):
        ledger.spend(1.0, "another tree")
    with pytest.raises(BudgetError, match="removed or replaced"):
        _ = ledger.left
    assert path.exists() == (harm != "removed")


def test_long_names_of_groups_do_not_run_together(tmp_path):
    ledger = Ledger(tmp_path / "l", 1.0)
    for parallel in (("g" * 201, "left"), ("g", "p" * 201)):
        with pytest.raises(ValueError, match="at most 200 characters"):
            ledger.spend(0.5, "leaf", parallel=parallel)
    assert ledger.spent == 0


@pytest.mark.parametrize("method", ["delegate", "duel", "vote", "local_rnm", "noisy_counts"])
def test_the_parts_of_a_run_add_up_to_its_epsilon(tmp_path, method):
    several = holders(tmp_path, 2.0, n_rows=2_000)
    fitted = Coordinator(several, SCHEMA, 2.0, method, n_bins=4, testing_seed=0).fit()
    dearest = max(holder.ledger.spent for holder in several)
    assert sum(fitted.privacy_.spent.values()) == pytest.approx(dearest)
    assert sum(fitted.privacy_.spent.values()) <= 2.0


# ---- what a holder takes ----
def test_true_is_no_question(tmp_path):
    one = holders(tmp_path, 1.0, 1)[0]
    with pytest.raises(RefusedError, match="indices in the list"):
        one.answer(ask("side counts", questions=((True,),)))
    assert one.ledger.spent == 0


def test_names_end_where_they_end(tmp_path):
    with pytest.raises(RefusedError, match="session must be"):
        type(ask())("run\n", 0, "rows", 0.5, DIGEST)
    with pytest.raises(ValueError, match="name must be"):
        Holder("h\n", SCHEMA, *frame(5, 0), Ledger(tmp_path / "l", 1.0), testing_seed=0)


def test_a_holder_of_too_many_rows_is_refused_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(holder_module, "MOST_ROWS", 4)
    with pytest.raises(ValueError, match="at most 4 rows"):
        Holder("h", SCHEMA, *frame(5, 0), Ledger(tmp_path / "l", 1.0), testing_seed=0)


# ---- noise and rounding ----
@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_counts_beyond_32_bits_keep_their_size(kind):
    pytest.importorskip("opendp")
    large = np.array([2**33, -(2**33)])
    assert np.abs(getattr(SecureNoise(), kind)(large, 2.0) - large).max() < 1_000


def test_slack_grows_with_the_classes():
    assert sampler_slack(1.0, 2, 100, 1_000) > 10 * sampler_slack(1.0, 2, 100, 2)
    assert score_slack(2) < score_slack(100) < 2e-5
    with pytest.raises(ValueError, match="too many classes"):
        score_slack(10**7)


def test_a_choice_is_made_with_the_slack_of_its_classes():
    class Recorder(SeededNoise):
        def highest(self, scores, scale):
            self.scale = scale
            return 0

    noise = Recorder(0)
    select(np.zeros(2), 1.0, 2.0, noise, n_terms=1_000)
    assert noise.scale == pytest.approx(2.0 / (1 - score_slack(1_000)), rel=1e-12)


@pytest.mark.parametrize(
    "rows", [[[0, 0, 0, 2]], [[0, 0, 0, -1]], [[9, 0, 0, 0]], [[0, 0, 0]], [[0, 0, 0, True]], "x"]
)
def test_a_measurement_refuses_what_is_outside_its_domain(rows):
    pytest.importorskip("opendp")
    measurement = whole_tree_measurement(CANDIDATES, 2, 0.5, 1, SecureNoise())
    assert not measurement.input_domain.member(rows)
    with pytest.raises(Exception, match="bins of the candidates"):
        measurement(rows)


def test_a_measurement_takes_no_rows_and_no_seeded_noise():
    pytest.importorskip("opendp")
    assert whole_tree_measurement(CANDIDATES, 2, 0.5, 1, SecureNoise())([]) is not None
    with pytest.raises(ValueError, match="needs private noise"):
        whole_tree_measurement(CANDIDATES, 2, 0.5, 1, SeededNoise(0))


def test_a_guarantee_with_delta_says_when_it_does_not_hold():
    assert "except with probability about 1e-06" in PrivacyStatement(1.0, 1e-6, {}, "x").guarantee
    assert "except" not in PrivacyStatement(1.0, 0.0, {}, "x").guarantee
