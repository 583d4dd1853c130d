"""What can be refused from schema and parameters is refused before anybody pays."""

import numpy as np
import pytest

from steadytree._base.exceptions import BudgetError, RefusedError
from steadytree.data.schema import Schema
from steadytree.data.splits import SplitTable
from steadytree.federated import coordinator as _session_limits
from steadytree.federated.coordinator import Coordinator, bins_of
from steadytree.federated.holder import Holder, schema_digest
from steadytree.federated.messages import Request
from steadytree.privacy import budget as limits
from steadytree.privacy.budget import PrivacyStatement, allocate_blocks, greedy_depth
from steadytree.privacy.ledger import Ledger
from steadytree.privacy.private_tree import PrivateTreeClassifier
from tests.federated.test_holder import METHODS, SCHEMA, frame, holders

X, Y = [[0.5]] * 20, ["0", "1"] * 10
MANY = 400_000


@pytest.fixture(scope="module")
def many_classes():
    return Schema({"a": (0, 1)}, classes=[str(label) for label in range(MANY)])


@pytest.fixture(scope="module")
def many_questions():
    listed = [str(value) for value in range(1_000)]
    names = [f"c{j}" for j in range(MANY // 1_000)]
    return Schema({}, dict.fromkeys(names, listed), classes=["0", "1"])


@pytest.fixture(scope="module")
def crowd(many_classes, tmp_path_factory):
    """Two holders of many classes, who must not have paid when a test ends."""
    folder = tmp_path_factory.mktemp("crowd")
    return [
        Holder(f"h{j}", many_classes, X, Y, Ledger(folder / str(j), 9.0), testing_seed=j)
        for j in range(2)
    ]


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "l", 10.0)


# ---- one machine ----
def test_too_many_questions_for_blocks_cost_nothing(many_questions, ledger):
    rows = [["0"] * len(many_questions.names)] * 20
    model = PrivateTreeClassifier(1.0, many_questions, ledger=ledger, testing_seed=0)
    with pytest.raises(ValueError, match="400,000 candidate splits, and blocks of depth 2"):
        model.fit(rows, Y)
    assert ledger.entries == []


@pytest.mark.parametrize(
    ("method", "more", "message"),
    [
        ("gibbs", {}, "too many for blocks of depth 2"),
        ("greedy", {}, "need a table"),
        ("topdown", {"max_splits": 200}, "need a table"),
    ],
)
def test_too_many_classes_cost_nothing(many_classes, ledger, method, more, message):
    model = PrivateTreeClassifier(5.0, many_classes, method, ledger=ledger, testing_seed=0, **more)
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    assert ledger.entries == []


def test_what_passes_the_check_can_be_fitted(ledger):
    """The widest column there is, in each method."""
    wide = Schema({}, {"c": [str(value) for value in range(1_000)]}, classes=["0", "1"])
    for method in ("gibbs", "greedy", "topdown"):
        PrivateTreeClassifier(1.0, wide, method, ledger=ledger, testing_seed=0).fit(
            [["0"], ["1"]] * 10, Y
        )
    assert len(ledger.entries) == 3


def test_rounding_that_would_eat_epsilon_is_refused_from_public_numbers():
    limits.check_block(100, 2, 2, 1e-6)
    with pytest.raises(ValueError, match="rounding errors"):
        limits.check_block(2, 4_000_000, 1, 1.0)
    with pytest.raises(ValueError, match="rounding errors"):
        limits.check_block(5_000, 2, 2, 1e-11)


def test_a_wide_schema_finds_its_grid_at_once(many_questions):
    found = SplitTable.at_most(many_questions.space, 100, 160)
    assert len(found) == MANY
    assert SplitTable.at_most(many_questions.space, 100, 160) is found


# ---- several holders ----
def coordinate(several, schema, method, **more):
    return Coordinator(several, schema, 1.0, method, testing_seed=0, **more).fit()


@pytest.mark.parametrize("method", METHODS)
def test_a_session_with_too_many_classes_costs_no_holder_anything(crowd, many_classes, method):
    with pytest.raises(ValueError, match="declare fewer"):
        coordinate(crowd, many_classes, method)
    assert [holder.ledger.entries for holder in crowd] == [[], []]


@pytest.mark.parametrize("method", METHODS)
def test_holders_with_another_schema_are_found_before_the_first_pays(tmp_path, method):
    several = holders(tmp_path, 9.0, 1)
    other = Schema({"a": (0, 9), "b": (0, 8)}, SCHEMA.categories, SCHEMA.classes)
    rows = frame(50, 0)
    several.append(Holder("other", other, *rows, Ledger(tmp_path / "o", 9.0), testing_seed=1))
    with pytest.raises(RefusedError, match="another schema"):
        coordinate(several, SCHEMA, method)
    assert [holder.ledger.entries for holder in several] == [[], []]


def test_a_delta_that_one_ledger_lacks_costs_the_others_nothing(tmp_path):
    (tmp_path / "pure").mkdir()
    several = [holders(tmp_path, 9.0, 1, delta=1e-5)[0], holders(tmp_path / "pure", 9.0, 2)[1]]
    with pytest.raises(BudgetError, match="delta"):
        coordinate(several, SCHEMA, "secure_sum", delta=1e-6)
    assert [holder.ledger.entries for holder in several] == [[], []]


def test_more_trees_than_a_question_may_hold_are_not_voted_on(tmp_path, monkeypatch):
    monkeypatch.setattr(_session_limits, "MOST_TREES", 2)
    several = holders(tmp_path, 9.0, 3, n_rows=20)
    with pytest.raises(ValueError, match="at most 2 holders' trees"):
        coordinate(several, SCHEMA, "vote")
    assert all(holder.ledger.entries == [] for holder in several)


@pytest.mark.parametrize("wrong", [0, 1, 1_001, 10**9, 2.5, True, None])
def test_a_wrong_number_of_bins_is_refused_at_once(tmp_path, wrong):
    with pytest.raises((TypeError, ValueError), match="n_bins must be a whole number"):
        Coordinator(holders(tmp_path, 1.0, 1, n_rows=5), SCHEMA, n_bins=wrong)


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("block", {"depth": 2}),
        ("last block", {"depth": 3}),
        ("leaf counts", {"trees": ((0, -1, -1),) * 64}),
        ("side counts", {"questions": (tuple(range(60)),)}),
    ],
)
def test_a_holder_refuses_what_it_could_not_answer(crowd, kind, more):
    one = crowd[0]
    request = Request("run", 0, kind, 1.0, one._digest, 64, **more)
    with pytest.raises(RefusedError, match=r"too many|declare fewer|splits, and blocks"):
        one.answer(request)
    assert one.ledger.entries == []


def test_a_holder_scores_no_table_beyond_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MOST_COUNTERS", 10)
    one = holders(tmp_path, 1.0, 1)[0]
    with pytest.raises(RefusedError, match="need a table"):
        one.answer(Request("run", 0, "choice", 0.5, schema_digest(SCHEMA), 4))
    assert one.ledger.entries == []


def test_few_of_everything_pass():
    assert limits.weighs_triples(160, 2)
    assert not limits.weighs_triples(161, 2)
    assert not limits.weighs_triples(160, 400)
    limits.check_scores(1_000, 10, 32)
    listed = {"c": [str(value) for value in range(1_000)]}
    limits.check_leaves(Schema({}, listed, classes=["0", "1"]), 16)
    limits.check_released(np.int64(100))


def test_a_wide_schema_gets_fewer_bins_and_a_narrow_one_those_asked_for():
    wide = Schema({f"x{j}": (0, 1) for j in range(30)}, classes=["0", "1"])
    assert bins_of("delegate", wide, 64) == 34  # 990 questions
    assert bins_of("delegate", SCHEMA, 64) == 64
    assert bins_of("noisy_counts", SCHEMA, 64) == 10
    for n_columns, asked in ((83, 16), (90, 15)):  # 1,000 splits, one less than bins a column
        odd = Schema({f"x{j}": (0, 1) for j in range(n_columns)}, classes=["0", "1"])
        assert limits.bins_within(odd.space, asked) == 1 + 1_000 // n_columns
    widest = Schema({f"x{j}": (0, 1) for j in range(600)}, classes=["0", "1"])
    assert limits.bins_within(widest.space, 3) == 2  # one split a column, as few as there can be


@pytest.mark.parametrize(("n_splits", "levels"), [(64, (2, 2, 2, 2)), (65, (2, 2, 2))])
def test_few_candidate_splits_are_up_to_sixty_four(n_splits, levels):
    space = Schema({}, {"v": [str(k) for k in range(n_splits)]}, classes=[0, 1]).space
    assert len(SplitTable.at_most(space, 100, 160)) == n_splits
    assert depths(space, 3, 50_000) == levels


def test_a_guarantee_with_delta_says_when_it_does_not_hold():
    assert "except with probability about 1e-06" in PrivacyStatement(1.0, 1e-6, {}, "x").guarantee
    assert "except" not in PrivacyStatement(1.0, 0.0, {}, "x").guarantee


def depths(space, n_classes, strength):
    return allocate_blocks(space, n_classes, 1.0, strength, None, 0.0).depths


def test_an_allocation_grows_with_epsilon_times_rows():
    few = Schema({}, {"v": ["p", "q"]}, classes=[0, 1]).space
    many = Schema({f"u{j}": (0, 1) for j in range(3)}, classes=[0, 1]).space
    steps = (-5.0, 50, 300, 500, 3_000, 5_000, 50_000)
    found = [depths(few, 3, strength) for strength in steps]
    assert found == [(2,), (2,), (3,), (2, 3), (3, 3), (2, 2, 2, 2), (2, 2, 2, 2)]
    found = [depths(many, 3, strength) for strength in steps]
    assert found == [(2,), (2,), (3,), (3,), (2, 2), (2, 2), (2, 2, 2)]
    # sixteen leaves are few for ten classes
    assert [depths(many, 10, strength) for strength in (50, 500, 5_000)] == [(2,), (3,), (2, 2, 2)]


def test_many_columns_keep_their_bins_rather_than_gain_a_level():
    wide = Schema({f"u{j}": (0, 1) for j in range(57)}, classes=[0, 1]).space
    assert [depths(wide, 2, strength) for strength in (50, 500, 5_000)] == [(2,), (2, 2), (2, 2)]


@pytest.mark.parametrize("n_classes", [2, 7])
@pytest.mark.parametrize("n_columns", [1, 3, 30])
def test_more_budget_never_makes_a_tree_shallower(n_columns, n_classes):
    space = Schema({f"u{j}": (0, 1) for j in range(n_columns)}, classes=[0, 1]).space
    levels = [sum(depths(space, n_classes, strength)) for strength in np.geomspace(1, 1e7, 60)]
    assert levels == sorted(levels)


def test_a_greedy_tree_grows_with_epsilon_times_rows():
    assert [greedy_depth(s) for s in (10, 300, 1e7)] == [2, 3, 6]
    # one level more for each factor of 4 from 200 on
    at = [200 * 4**k for k in range(4)]
    assert [greedy_depth(s) for s in at] == [3, 4, 5, 6]
    assert [greedy_depth(s - 1) for s in at] == [2, 3, 4, 5]


# ---- limits, from both sides ----
@pytest.mark.parametrize(("depth", "most"), [(1, 100_000), (2, 20_000), (3, 400)])
def test_a_block_may_have_so_many_candidate_splits(depth, most):
    limits.check_block(most, 2, depth, 1.0)
    with pytest.raises(ValueError, match=f"at most {most:,}: declare fewer categories"):
        limits.check_block(most + 1, 2, depth, 1.0)


def test_a_block_may_read_four_billion_counts():
    limits.check_block(10_000, 10, 2, 1.0)  # 4 x 10,000^2 x 10
    with pytest.raises(ValueError, match="too many for blocks of depth 2"):
        limits.check_block(10_001, 10, 2, 1.0)
    # 160 splits, n classes: 4 x 160^3 x n at most 4 x 10^9
    assert limits.weighs_triples(160, 244)
    assert not limits.weighs_triples(160, 245)


def test_rounding_may_take_half_of_epsilon():
    from steadytree.privacy.tree_mechanism import sampler_slack

    for epsilon in np.geomspace(1e-12, 1e-6, 40):
        if sampler_slack(epsilon, 2, 500, 3) > 0.5 * epsilon:
            with pytest.raises(ValueError, match="rounding errors"):
                limits.check_block(500, 3, 2, epsilon)
        else:
            limits.check_block(500, 3, 2, epsilon)


def test_tables_and_answers_have_a_largest_size():
    limits.check_scores(1_000, 100, 1_000)  # 10^8 numbers
    with pytest.raises(ValueError, match="need a table of 100,100,000 numbers, more than 100,000"):
        limits.check_scores(1_001, 100, 1_000)
    schema = Schema({}, {"a": ["u"], "b": [str(k) for k in range(30)]}, classes=[*range(20)])
    limits.check_leaves(schema, 10**6)  # 2 x 10^6 leaves and splits, 30 categories, 20 classes
    with pytest.raises(ValueError, match="30 categories and 20 classes at 1,000,001 nodes"):
        limits.check_leaves(schema, 10**6 + 1)
    limits.check_released(20_000_000)
    with pytest.raises(ValueError, match="20,000,001 numbers, more than 20,000,000"):
        limits.check_released(20_000_001)


@pytest.mark.parametrize("strength", [0.0, 300.0, 999.0, 1_000.0, 5_000.0, 1e6])
@pytest.mark.parametrize("share", ["auto", 0.0, 0.25])
def test_an_allocation_adds_up_and_the_last_block_counts_twice(strength, share):
    space = Schema({f"u{j}": (0, 1) for j in range(3)}, classes=[0, 1]).space
    found = allocate_blocks(space, 2, 0.8, strength, None, share)
    assert sum(found.epsilons) + found.leaf_epsilon == pytest.approx(0.8)
    assert len(found.depths) == len(found.epsilons)
    *others, last = found.epsilons
    assert others == [pytest.approx(last / 2)] * len(others)
    if share != "auto":
        assert found.leaf_epsilon == pytest.approx(0.8 * share)
    else:  # noise of a third of each leaf's count, between 1 and 10 %; nothing for few rows
        wanted = 3.125 * 2 ** sum(found.depths) / max(strength, 1e-9)
        kept = min(0.1, max(0.01, wanted)) if strength >= 1_000 else 0.0
        assert found.leaf_epsilon == pytest.approx(0.8 * kept)
    few = len(found.candidates)
    assert few <= (160 if 3 in found.depths else 1_000)


def test_what_a_fit_needs_is_checked_at_its_deepest_level(monkeypatch):
    asked = []
    monkeypatch.setattr(limits, "check_scores", lambda *sizes: asked.append(sizes))
    monkeypatch.setattr(limits, "check_leaves", lambda schema, n: asked.append(n))
    monkeypatch.setattr(limits, "check_block", lambda *sizes: asked.append(sizes))
    schema = Schema({"a": (0, 1)}, {"b": ["u", "v", "w"]}, classes=[0, 1, 2])
    n_bins = limits.level_candidates(schema.space).n_bins
    for method, depth, expected in [
        ("greedy", None, [(n_bins, 3, 32), 64]),
        ("greedy", 3, [(n_bins, 3, 4), 8]),
        ("topdown", None, [(n_bins, 3, 1), 8]),
    ]:
        limits.check_fit(schema, method, 0.5, depth, 7)
        assert asked == expected
        asked.clear()
    limits.check_fit(schema, "gibbs", 0.5, 5, 7)
    n_splits = len(limits.block_candidates(schema.space, (2, 3)))
    assert sorted(map(str, asked)) == sorted(
        [f"({n_splits}, 3, 2, 0.5)", f"({n_splits}, 3, 3, 0.5)", "32"]
    )
    assert limits.level_candidates(schema.space, 5).n_bins < n_bins


def test_the_factor_of_a_guarantee_is_that_of_its_epsilon():
    for epsilon in (0.1, 1.0, 2.5):
        text = PrivacyStatement(epsilon, 0.0, {}, "gibbs").guarantee
        assert "this model learns of any one row, present or not, at most a factor of" in text
        assert f"a factor of {np.exp(epsilon):.3g} in odds (epsilon {epsilon:g}, " in text
    assert "e+130 in odds" in PrivacyStatement(1e9, 0.0, {}, "gibbs").guarantee
    accuracy = PrivacyStatement(1.0, 0.0, {}, "accuracy", relation=limits.relation(2)).guarantee
    assert "sees this answer learns of any one person" in accuracy
    assert "at most 2 rows)" in accuracy
    assert limits.relation(1)[-13:] == "at most 1 row"
    assert "NOT PRIVATE" in PrivacyStatement(1.0, 0.0, {}, "gibbs", private=False).guarantee


# ---- numbers that are chosen, as the pages state them ----
@pytest.mark.parametrize(
    ("n_splits", "n_classes", "steps"),
    [
        (64, 2, {0: (2,), 150: (3,), 400: (2, 3), 2_000: (3, 3), 4_000: (2, 2, 2, 2)}),
        (65, 4, {0: (2,), 150: (3,), 2_000: (2, 2), 20_000: (2, 2, 2)}),
        (160, 5, {0: (2,), 150: (3,), 2_000: (2, 2, 2)}),
        (161, 4, {0: (2,), 150: (2, 2), 20_000: (2, 2, 2)}),
        (161, 5, {0: (2,), 150: (2, 2), 2_000: (2, 2, 2)}),
    ],
)
def test_blocks_change_at_these_amounts_of_epsilon_times_rows(n_splits, n_classes, steps):
    space = Schema({}, {"v": [str(k) for k in range(n_splits)]}, classes=[0, 1]).space
    listed = list(steps.items())
    for k, (least, blocks) in enumerate(listed):
        assert depths(space, n_classes, float(least)) == blocks
        before = listed[max(k - 1, 0)][1]
        assert depths(space, n_classes, least - 1e-6) == before
    for max_depth in range(1, 8):
        triples = n_splits <= 160
        odd = 3 if triples and max_depth >= 3 else 1
        rest = max_depth - odd if max_depth % 2 else max_depth
        expected = (2,) * (rest // 2) + (odd,) * (max_depth % 2)
        assert allocate_blocks(space, n_classes, 1.0, 9.0, max_depth, 0.0).depths == expected


def test_rounding_may_take_exactly_half_of_epsilon(monkeypatch):
    for share, refused in ((0.499, False), (0.5, False), (0.501, True)):
        monkeypatch.setattr(limits, "sampler_slack", lambda e, *sizes, s=share: s * e)
        if refused:
            with pytest.raises(ValueError, match="rounding errors"):
                limits.check_block(9, 2, 2, 8.0)
        else:
            limits.check_block(9, 2, 2, 8.0)


@pytest.mark.parametrize("n_columns", [1, 9, 20, 23, 40])
def test_numeric_columns_have_as_many_bins_as_fit(n_columns):
    """100 at most, and 160 or 1,000 candidate splits in all; 32 and 4,000 level by level."""
    space = Schema({f"u{j}": (0, 1) for j in range(n_columns)}, classes=[0, 1]).space

    def fitting(finest, most):
        sizes = range(finest, 1, -1)
        return next((b for b in sizes if len(SplitTable.declared(space, b)) <= most), 2)

    for depth_list, most in (((3,), 160), ((2, 2), 1_000)):
        found = limits.block_candidates(space, depth_list)
        assert len(found) == len(SplitTable.declared(space, fitting(100, most)))
    found = limits.level_candidates(space)
    assert len(found) == len(SplitTable.declared(space, fitting(32, 4_000)))
    assert limits.bins_within(space, 100) == fitting(100, 1_000)


def test_shares_of_leaves_and_levels_by_their_formulas():
    for strength in (0.5, 1.0, 2.0, 150.0, 999.0, 1_000.0, 5_000.0, 1e6):
        for depth in (1, 2, 5):
            expected = min(0.5, 75 * 2**depth / max(strength, 1))
            assert limits.greedy_leaf_share(strength, depth) == expected
            share = min(0.1, max(0.01, 3.125 * 2**depth / strength)) if strength >= 1_000 else 0.0
            assert limits.gibbs_leaf_share(strength, 2**depth) == share
    assert (limits.ROWS_SHARE, limits.MOST_WEIGHED, limits.MOST_COUNTERS) == (0.02, 4e9, 1e8)
