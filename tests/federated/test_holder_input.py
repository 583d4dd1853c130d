"""Bad input of each kind: refused in words that tell nothing of rows, logged, nothing spent."""

import logging

import numpy as np
import pytest

from steadytree.data.schema import Schema
from steadytree.federated.coordinator import Coordinator
from steadytree.federated.holder import Holder, schema_digest
from steadytree.federated.messages import Answer, Request
from steadytree.privacy.evaluation import private_accuracy
from steadytree.privacy.ledger import Ledger
from steadytree.privacy.private_tree import PrivateTreeClassifier

SCHEMA = Schema({"age": (0, 100)}, classes=["no", "yes"])
DIGEST = schema_digest(SCHEMA)
SECRET = 77.125  # an age that no message may show
X, Y = [[SECRET]] * 9 + [[20.0]] * 8, ["yes"] * 9 + ["no"] * 8
EPSILONS = [0, 0.0, -1.0, float("inf"), float("nan"), "1", None, True]


class Site:
    """A ledger, a fitted tree and a holder."""

    def __init__(self, folder):
        self.ledger = Ledger(folder / "l", 1.0)
        self.tree = PrivateTreeClassifier(1.0, SCHEMA, testing_seed=0).fit(X, Y).tree_
        self.holder = Holder("h", SCHEMA, X, Y, self.ledger, testing_seed=0)

    def ask(self, round=0, epsilon=0.25, kind="rows", **more):
        return self.holder.answer(Request("run", round, kind, epsilon, DIGEST, **more))


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def refused(caplog, act, spent=0.0, site=None):
    """Run what must be refused; look at what was said and logged."""
    caplog.clear()
    with (
        caplog.at_level(logging.WARNING, "steadytree"),
        pytest.raises((ValueError, TypeError)) as caught,
    ):
        act()
    logged = " ".join(record.getMessage() for record in caplog.records)
    assert "refused" in logged
    for told in (str(caught.value), logged):
        assert str(SECRET) not in told
        assert str(len(Y)) not in told
    if site is not None:
        assert site.ledger.spent == spent


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_wrong_epsilon_wherever_it_is_given(site, caplog, epsilon):
    fit = PrivateTreeClassifier(epsilon, SCHEMA, ledger=site.ledger, testing_seed=0).fit
    for act in (
        lambda: fit(X, Y),
        lambda: private_accuracy(site.tree, X, Y, epsilon, SCHEMA, site.ledger, testing_seed=0),
        lambda: Coordinator([site.holder], SCHEMA, epsilon),
        lambda: site.ask(epsilon=epsilon),
    ):
        refused(caplog, act, site=site)


@pytest.mark.parametrize("schema", [None, 5, {"age": (0, 100)}])
def test_no_schema(site, caplog, schema):
    for act in (
        lambda: PrivateTreeClassifier(1.0, schema, ledger=site.ledger, testing_seed=0).fit(X, Y),
        lambda: private_accuracy(site.tree, X, Y, 1.0, schema, site.ledger, testing_seed=0),
        lambda: Coordinator([site.holder], schema),
        lambda: Holder("h", schema, X, Y, site.ledger, testing_seed=0),
    ):
        refused(caplog, act, site=site)


@pytest.mark.parametrize(
    "wrong",
    [
        {"bounds": {"age": (100, 0)}},
        {"bounds": {"age": (0, 0)}},
        {"bounds": {"age": (0, float("inf"))}},
        {"bounds": {"age": (float("nan"), 1)}},
        {"bounds": {"age": "x"}},
        {"bounds": {}},
        {"classes": []},
        {"classes": ["no"]},
        {"classes": ["no", "no"]},
        {"categories": {"age": ["a"]}},
        {"categories": {"ward": []}},
        {"kinds": {"age": "magic"}},
        {"missing": ["ward"]},
    ],
)
def test_a_wrong_schema(caplog, wrong):
    given = {"bounds": {"age": (0, 100)}, "classes": ["no", "yes"], **wrong}
    refused(caplog, lambda: Schema(**given))


def test_a_spent_budget(site, caplog):
    site.ledger.spend(0.9, "earlier")
    fit = PrivateTreeClassifier(0.5, SCHEMA, ledger=site.ledger, testing_seed=0).fit
    for act in (
        lambda: fit(X, Y),
        lambda: private_accuracy(site.tree, X, Y, 0.5, SCHEMA, site.ledger, testing_seed=0),
        lambda: Coordinator([site.holder], SCHEMA, 0.5).fit(),
        lambda: site.ask(epsilon=0.5),
        lambda: site.holder.join_sum("run", DIGEST, 0.5, 0.0),
    ):
        refused(caplog, act, 0.9, site)


@pytest.mark.parametrize("empty", [([], []), (np.empty((0, 1)), np.empty(0))])
def test_whether_a_holder_has_rows_is_private(site, empty):
    Holder("h", SCHEMA, *empty, site.ledger, testing_seed=0)


@pytest.mark.parametrize(
    "numbers",
    [[[1, 2]], [np.nan], [np.inf], [1.5], [2**41], [-(2**41)], ["1"], [True], [None], 3, []],
)
def test_a_message_that_is_no_answer(caplog, numbers):
    class HolderLike:
        name, private = "p", True

        def answer(self, request):
            return Answer("p", request.session, request.round, request.kind, np.array(numbers))

    refused(caplog, lambda: Coordinator([HolderLike()], SCHEMA).fit())


def test_something_else_than_an_answer(caplog):
    class HolderLike:
        name, private = "p", True

        def answer(self, request):
            return {"numbers": [1]}

    refused(caplog, lambda: Coordinator([HolderLike()], SCHEMA).fit())


def test_a_repeated_and_a_stale_round(site, caplog):
    site.ask(3)
    for round_ in (3, 2):
        refused(caplog, lambda number=round_: site.ask(number), 0.25, site)
    again = Holder("h", SCHEMA, X, Y, site.ledger, testing_seed=0)
    request = Request("run", 3, "rows", 0.25, DIGEST)
    refused(caplog, lambda: again.answer(request), 0.25, site)


@pytest.mark.parametrize(
    "more",
    [
        {"kind": "leaf counts", "trees": ((0, -1),)},
        {"kind": "leaf counts", "trees": ((0, -1, float("nan")),)},
        {"kind": "leaf counts", "trees": (("0", -1, -1),)},
        {"kind": "block", "depth": 0},
        {"kind": "side counts", "questions": ((10**9,),)},
        {"kind": "side counts", "questions": ((0, 0),)},
        {"kind": "side counts", "questions": ((-1,),)},
        {"kind": "everything"},
        {"round": -1},
        {"round": 2**80},
        {"n_bins": 0},
    ],
)
def test_a_request_that_makes_no_sense(site, caplog, more):
    refused(caplog, lambda: site.ask(**more), site=site)


def test_labels_and_rows_that_do_not_match(site, caplog):
    fit = PrivateTreeClassifier(0.5, SCHEMA, ledger=site.ledger, testing_seed=0).fit
    for act in (
        lambda: fit(X, Y[:-1]),
        lambda: fit([[1.0, 2.0]] * 17, Y),
        lambda: private_accuracy(site.tree, X, Y[:-1], 0.5, SCHEMA, site.ledger, testing_seed=0),
        lambda: Holder("h", SCHEMA, X, Y[:-1], site.ledger, testing_seed=0),
    ):
        refused(caplog, act, site=site)
