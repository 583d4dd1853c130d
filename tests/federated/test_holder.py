import logging

import numpy as np
import pandas as pd
import pytest

from steadytree._base.exceptions import BudgetError, RefusedError
from steadytree.data.schema import Schema
from steadytree.data.splits import SplitTable
from steadytree.federated import holder as holder_module
from steadytree.federated.coordinator import Coordinator
from steadytree.federated.holder import Holder, schema_digest
from steadytree.federated.messages import Answer, Request, SumStep
from steadytree.federated.secure_sum import SecureSum
from steadytree.privacy.ledger import Ledger
from steadytree.privacy.mechanisms import NOT_PRIVATE, SeededNoise
from steadytree.privacy.private_tree import PrivateTreeClassifier
from steadytree.privacy.sampled_tree import from_numbers

SCHEMA = Schema({"a": (0, 8), "b": (0, 8)}, {"c": ["x", "y", "z"]}, classes=["no", "yes"])
METHODS = ["delegate", "duel", "vote", "local_rnm", "noisy_counts", "secure_sum"]
DIGEST = schema_digest(SCHEMA)


def frame(n_rows, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.uniform(0, 8, n_rows),
            "b": rng.uniform(0, 8, n_rows),
            "c": rng.choice(["x", "y", "z"], n_rows),
        }
    )
    return X, np.where((X["a"] > 4) ^ (X["c"] == "x"), "yes", "no")


def holders(folder, budget, k=4, n_rows=400, delta=0.0, seed=0):
    return [
        Holder(
            f"h{j}",
            SCHEMA,
            *frame(n_rows, j),
            Ledger(folder / f"{j}.ledger", budget, delta),
            testing_seed=None if seed is None else 100 * seed + j,
        )
        for j in range(k)
    ]


@pytest.fixture
def one(tmp_path):
    return holders(tmp_path, 10.0, 1)[0]


def ask(kind="rows", round=0, epsilon=0.5, **more):
    return Request("run", round, kind, epsilon, DIGEST, **{"n_bins": 4, **more})


# ---- one holder ----
def test_it_spends_before_it_answers(one, monkeypatch):
    def broken(*_):
        raise RuntimeError("died")

    monkeypatch.setattr(one, "_numbers", broken)
    with pytest.raises(RuntimeError):
        one.answer(ask())
    assert one.ledger.spent == 0.5


@pytest.mark.parametrize(
    ("request_", "size"),
    [
        (ask("rows"), 1),
        (ask("choice", trees=((0, -1, -1),)), 2),
        (ask("leaf counts", trees=((0, -1, -1), (-1,))), 6),
        (ask("side counts", trees=((0, -1, -1),), questions=((1, 2), (3,))), 12),
    ],
)
def test_answers_have_the_size_that_was_asked_for(one, request_, size):
    answer = one.answer(request_)
    assert len(answer.check(request_, size)) == size
    assert answer.numbers.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        answer.numbers[0] = 1
    with pytest.raises(RefusedError, match="were asked for"):
        answer.check(request_, size + 1)


class Recorder:
    """Notes how often a row may be counted, by the scale of the noise."""

    private = False

    def laplace(self, values, scale):
        self.scale = scale
        return values


@pytest.mark.parametrize(
    ("request_", "times"),
    [
        (ask("rows"), 1),
        (ask("leaf counts"), 1),
        (ask("leaf counts", trees=((-1,), (0, -1, -1), (1, -1, -1))), 3),
        (ask("side counts", trees=((0, -1, -1),), questions=((1, 2, 3), (4,))), 3),
    ],
)
def test_noise_grows_with_how_often_a_row_is_counted(one, request_, times):
    one._noise = Recorder()
    exact = one.answer(request_).numbers
    assert one._noise.scale == pytest.approx(times / 0.5)
    # by brute force: without its last row, the exact answer moves by `times` at most
    fewer = Holder("h", SCHEMA, *(part[:-1] for part in frame(400, 0)), one.ledger, testing_seed=0)
    fewer._noise = Recorder()
    other = Request(
        "again",
        0,
        *[
            getattr(request_, n)
            for n in ("kind", "epsilon", "schema", "n_bins", "trees", "depth", "questions")
        ],
    )
    assert np.abs(exact - fewer.answer(other).numbers).sum() <= times


def test_repeated_and_stale_rounds_are_refused_even_after_a_restart(tmp_path, caplog):
    holder = holders(tmp_path, 10.0, 1)[0]
    holder.answer(ask(round=3))
    for stale in (3, 2):
        with caplog.at_level(logging.WARNING), pytest.raises(RefusedError, match="stale"):
            holder.answer(ask(round=stale))
    assert "refused" in caplog.text
    restarted = holders(tmp_path, 10.0, 1)[0]
    with pytest.raises(BudgetError, match="answered before"):
        restarted.answer(ask(round=3))
    assert restarted.ledger.spent == 0.5


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request("run", 0, "rows", 0.5, "other"), "another schema"),
        (ask(trees=((0, -1),)), "one tree"),
        (ask(trees=((999, -1, -1),)), "one tree"),
        (ask("block"), "depth"),
        (ask("side counts"), "for each of its leaves"),
        (ask("side counts", questions=((999,),)), "indices in the list"),
        (ask("side counts", questions=((),)), "indices in the list"),
        ("rows, please", "a Request and nothing else"),
    ],
)
def test_a_holder_refuses_what_makes_no_sense_and_spends_nothing(one, request_, message):
    with pytest.raises(RefusedError, match=message):
        one.answer(request_)
    assert one.ledger.spent == 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"epsilon": float("nan")}, "epsilon must be"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": float("inf")}, "epsilon must be"),
        ({"round": -1}, "round must be"),
        ({"round": 1.5}, "round must be"),
        ({"kind": "everything"}, "kind must be"),
        ({"depth": 9}, "depth must be"),
        ({"n_bins": 10**6}, "n_bins must be"),
        ({"trees": ()}, "trees must be"),
        ({"trees": ((-1,),) * 65}, "trees must be"),
    ],
)
def test_requests_are_checked_when_made(wrong, message):
    with pytest.raises(RefusedError, match=message):
        ask(**wrong)


@pytest.mark.parametrize("numbers", [[1.5], [np.nan], [[1]], [2**41], [-(2**41)], ["a"], [None]])
def test_answers_are_checked_when_made(numbers):
    with pytest.raises(RefusedError, match="an answer"):
        Answer("h", "run", 0, "rows", np.array(numbers))


def test_an_answer_to_another_request_is_refused():
    answer = Answer("h", "run", 0, "rows", np.array([1]))
    with pytest.raises(RefusedError, match="another request"):
        answer.check(ask(round=1))


def test_a_holder_needs_a_ledger_and_a_name(tmp_path):
    ledger = Ledger(tmp_path / "l", 1.0)
    X, y = frame(5, 0)
    with pytest.raises(TypeError, match="ledger must be"):
        Holder("h", SCHEMA, X, y, None, testing_seed=0)
    with pytest.raises(ValueError, match="name must be"):
        Holder("a b", SCHEMA, X, y, ledger, testing_seed=0)
    with pytest.raises(TypeError, match="schema must be"):
        Holder("h", None, X, y, ledger, testing_seed=0)


def test_a_ledger_tells_seeded_releases_from_ordinary_ones(tmp_path):
    one = holders(tmp_path, 4.0, 1)[0]
    one.answer(ask())
    one.join_sum("sums", DIGEST, 1.0, 0.0)
    PrivateTreeClassifier(1.0, SCHEMA, ledger=one.ledger, testing_seed=0).fit(*frame(50, 0))
    assert [entry.mechanism for entry in one.ledger.entries] == [NOT_PRIVATE] * 3


def test_a_seed_has_to_be_named(tmp_path):
    with pytest.raises(TypeError, match="positional"):
        Holder("h", SCHEMA, *frame(5, 0), Ledger(tmp_path / "l", 1.0), 0)


def test_true_is_no_split(tmp_path):
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
    # how many there are is not told: refusals are logged
    with pytest.raises(ValueError, match=r"at most 4 rows: use a sample of them\.$"):
        Holder("h", SCHEMA, *frame(5, 0), Ledger(tmp_path / "l", 1.0), testing_seed=0)


def chain(length):
    return (0, -1) * length + (-1,)


def test_a_tree_as_deep_as_a_chain_is_refused_before_it_is_walked(tmp_path):
    one = holders(tmp_path, 1.0, 1)[0]
    assert from_numbers(chain(1_000), 1)
    for kind in ("leaf counts", "choice", "block"):
        with pytest.raises(RefusedError, match="at most 1,000 levels"):
            one.answer(ask(kind, trees=(chain(50_000),), depth=1))
    assert one.ledger.spent == 0


def test_closed_leaves_are_left_out_of_choices_and_side_counts_alone(tmp_path):
    one = holders(tmp_path, 40.0, 1)[0]
    tree = ((0, -1, 1, -2, -1),)
    answers = [
        (ask("choice", 1, trees=tree), 2),
        (ask("entropy choice", 2, trees=tree), 2),
        (ask("side counts", 3, trees=tree, questions=((1, 2), (3,))), 12),
    ]
    for request, size in answers:
        assert len(one.answer(request).numbers) == size
    spent = one.ledger.spent
    refused = [ask(kind, 9, trees=tree, depth=1) for kind in ("leaf counts", "block", "rows")]
    refused.append(ask("side counts", 9, trees=tree, questions=((1,), (1,), (1,))))
    refused.append(ask("choice", 9, trees=((0, -1, -3),)))
    refused += [ask(kind, 9, trees=((-2,),)) for kind in ("choice", "side counts")]
    for request in refused:
        with pytest.raises(RefusedError):
            one.answer(request)
    assert one.ledger.spent == spent


def test_blocks_of_too_many_splits_are_refused(tmp_path):
    one = holders(tmp_path, 1.0, 1)[0]
    with pytest.raises(RefusedError, match="may have at most"):
        one.answer(ask("last block", n_bins=1_000, depth=3))
    assert one.ledger.spent == 0


class Untouchable:
    """Rows that nobody may look at."""

    def __getattribute__(self, name):
        raise AssertionError("a refusal looked at rows")


@pytest.mark.parametrize(
    "request_",
    [
        Request("run", 0, "rows", 0.5, "other schema"),
        ask(trees=((0, -1),)),
        ask("block"),
        ask("side counts", questions=((999,),)),
        ask(epsilon=2.0),  # beyond the budget
    ],
)
def test_refusals_do_not_look_at_rows(tmp_path, request_):
    """So that neither their words nor their time can tell anything of them."""
    one = holders(tmp_path, 1.0, 1)[0]
    one._rows = Untouchable()
    with pytest.raises((RefusedError, BudgetError)):
        one.answer(request_)


@pytest.mark.parametrize("kind", ["rows", "block", "last block", "choice", "leaf counts"])
def test_a_holder_without_rows_answers_like_one_with_a_row(tmp_path, kind):
    X, y = frame(5, 0)
    sizes = []
    for n_rows in (0, 1):
        ledger = Ledger(tmp_path / f"{n_rows}", 1.0)
        one = Holder("h", SCHEMA, X[:n_rows], y[:n_rows], ledger, testing_seed=0)
        depth = 2 if "block" in kind else 0
        answer = one.answer(Request("run", 0, kind, 0.5, schema_digest(SCHEMA), depth=depth))
        sizes.append((one.done, len(answer.numbers) if depth == 0 else 0, ledger.spent))
    assert sizes[0] == sizes[1]


def test_more_rows_than_were_declared_are_refused(tmp_path, caplog):
    X, y = frame(80, 0)
    with pytest.raises(ValueError, match="more rows than the 64 declared: declare more"):
        Holder("h", SCHEMA, X, y, Ledger(tmp_path / "l", 1.0), most_rows=64)
    one = Holder("h", SCHEMA, X, y, Ledger(tmp_path / "l", 1.0), most_rows=100, testing_seed=0)
    assert one.capacity == 128


# ---- persons with several rows ----
def person_holder(folder, most, n_rows=90, seed=3, **more):
    X, y = frame(n_rows, 5)
    whose = np.arange(n_rows) % 20  # the first 20 rows are of 20 persons, and so on
    ledger = Ledger(folder / f"{most}.ledger", 50.0, 1e-6)
    if most is not None:
        more |= {"persons": whose, "rows_per_person": most}
    else:
        X, y = X[:60], y[:60]  # what three rows a person leave
    return Holder("h", SCHEMA, X, y, ledger, testing_seed=seed, **more)


PERSON_REQUESTS = {
    "rows": {},
    "block": {"depth": 1},
    "last block": {"depth": 2},
    "choice": {},
    "leaf counts": {"trees": ((0, -1, -1),) * 2},
    "side counts": {"questions": ((0, 1, 3),)},
}


@pytest.mark.parametrize("kind", PERSON_REQUESTS)
def test_a_request_covers_all_rows_of_a_person(tmp_path, kind):
    """Three rows a person at epsilon 1.5 are these rows at 0.5 each, and cost 1.5."""
    persons, rows = person_holder(tmp_path, 3), person_holder(tmp_path, None)
    found = persons.answer(ask(kind, epsilon=1.5, **PERSON_REQUESTS[kind]))
    twin = rows.answer(ask(kind, epsilon=0.5, **PERSON_REQUESTS[kind]))
    assert found.numbers.tolist() == twin.numbers.tolist()
    assert persons.ledger.spent == 1.5


def test_the_ledger_and_the_model_say_that_persons_are_protected(tmp_path, monkeypatch):
    monkeypatch.setattr("steadytree.privacy.mechanisms.SeededNoise.private", True)
    persons = person_holder(tmp_path, 3)
    persons.answer(ask("rows"))
    named = "run, add or remove one person with at most 3 rows"
    assert persons.ledger.entries[-1].mechanism == named
    model = Coordinator([persons], SCHEMA, 1.0, n_bins=4, testing_seed=0).fit()
    assert model.privacy_.relation == "add or remove one person with at most 3 rows of one holder"
    both = [persons, *holders(tmp_path, 5.0, 1)]
    mixed = Coordinator(both, SCHEMA, 1.0, n_bins=4, testing_seed=0).fit()
    assert mixed.privacy_.relation == "add or remove one row of one holder"


@pytest.mark.parametrize(("delta", "scale"), [(0.0, 3.0), (1e-6, 3.0)])
def test_noise_of_sums_grows_with_the_rows_of_a_person(tmp_path, delta, scale):
    """Laplace and Gaussian scales alike: k rows move a sum by k times as much."""

    class Scales(SeededNoise):
        def laplace(self, values, scale):
            self.scale = scale
            return values

        gaussian = laplace

    found = []
    for most in (None, 3):
        sums = SecureSum([person_holder(tmp_path, most)], "s", DIGEST, 1.0, delta, 0)
        sums._noise = Scales(0)
        sums.ask(0.5, "bins", from_numbers((-1,), 9), SplitTable.declared(SCHEMA.space, 4))
        found.append(sums._noise.scale)
    assert found[1] / found[0] == pytest.approx(scale)


def test_shares_of_masked_sums_grow_with_the_rows_of_a_person(tmp_path, monkeypatch):
    seen = []

    def share(exact, rho, noise, rows_counted, n_honest):
        seen.append((rows_counted, n_honest))
        return exact

    monkeypatch.setattr(holder_module, "release_share", share)
    how = SumStep("vector", 0, "bins", 0.01, 3, 2)
    request = ask("secure sum", sum=how)
    for most in (None, 3):
        one = person_holder(tmp_path, most)
        monkeypatch.setattr(one.sums, "take", lambda request, private, vector: vector())
        candidates = SplitTable.declared(SCHEMA.space, 4)
        one._numbers(request, candidates, [from_numbers((-1,), 9)])
    # three columns, the square of the l2 sensitivity; and noise that two of three make up
    assert seen == [(3, 2), (27, 2)]


def test_too_many_rows_of_a_person_for_an_epsilon_are_refused_before_paying(tmp_path):
    X, y = frame(4, 0)
    ledger = Ledger(tmp_path / "l", 1.0)
    more = {"persons": range(4), "rows_per_person": 1_000_000, "testing_seed": 0}
    one = Holder("h", SCHEMA, X, y, ledger, **more)
    with pytest.raises(RefusedError, match="too small for so many rows of a person"):
        one.answer(ask("rows", epsilon=1e-6))
    assert ledger.spent == 0
    with pytest.raises(ValueError, match="go together"):
        Holder("h", SCHEMA, X, y, ledger, rows_per_person=2)
