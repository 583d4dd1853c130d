"""Audits on the worst neighbours: each shows at least half of the claim, and planted faults fail.

Neighbours and statistics are derived from the mechanisms' proofs, so that the privacy loss of the
audited event is close to epsilon. An audit that stays far below its claim would not notice a fault.
"""

import itertools

import numpy as np
import pytest
from scipy.stats import beta

from steadytree.data.schema import Schema
from steadytree.data.splits import SplitTable
from steadytree.federated.holder import Holder, schema_digest
from steadytree.federated.messages import WHOLE, Request
from steadytree.privacy import growers
from steadytree.privacy.evaluation import audit_privacy
from steadytree.privacy.mechanisms import SeededNoise, release_counts_zcdp, release_share
from steadytree.privacy.private_tree import PrivateTreeClassifier
from steadytree.privacy.tree_mechanism import select_splits
from tests.privacy.test_audit import FreeLedger

COLUMNS = ("a", "b0", "b1", "b2", "b3", "z")
SCHEMA = Schema({}, {name: ["n", "y"] for name in COLUMNS}, classes=[0, 1])
DIGEST = schema_digest(SCHEMA)
SIDE = 12
# every column divides the classes perfectly; the new row spoils "a" alone, by nearly 2 in impurity
BASE = [("n", *"yyyy", "n", 0)] * SIDE + [("y", *"nnnn", "n", 1)] * SIDE
MORE = [*BASE, ("n", *"nnnn", "n", 1)]  # "z" is the same for all
STUMP = ((0, -1, -1),)
REQUESTS = {
    "rows": {},
    "block": {"depth": 1},
    "block of depth 2": {"kind": "block", "depth": 2},
    "block by weights": {"kind": "block", "depth": 1, "weights": (WHOLE // 2, WHOLE)},
    "last block": {"depth": 1},
    "choice": {},
    "choice below": {"kind": "choice", "trees": ((5, -1, -1),)},
    "leaf counts": {"trees": STUMP},
    "leaf counts of two trees": {"kind": "leaf counts", "trees": STUMP * 2},
    "side counts": {"questions": ((0, 1),)},
}
RUNS = 6_000
SLOW = {name for name in REQUESTS if "block" in name}


class Exact(SeededNoise):
    """No noise, to see which counts the new row moves."""

    def laplace(self, values, scale):
        return values


def request_of(name, epsilon):
    fields = dict(REQUESTS[name])
    return Request("audit", 0, fields.pop("kind", name), epsilon, DIGEST, n_bins=2, **fields)


def answers_of(name, epsilon, noise_of=SeededNoise, times=1):
    """A function from rows to the decisive part of a holder's answer, given several times."""
    request = request_of(name, epsilon)
    pair = {}
    for rows in (BASE, MORE):
        X, y = [row[:-1] for row in rows], [row[-1] for row in rows]
        holder = Holder("h", SCHEMA, X, y, FreeLedger(), testing_seed=0)
        holder._noise = noise_of(len(rows))
        pair[len(rows)] = holder
    parsed = pair[len(BASE)]._check(request)
    decide = decisive(request, parsed, pair)

    def mechanism(rows):
        drawn = [pair[len(rows)]._numbers(request, *parsed) for _ in range(times)]
        return tuple(itertools.chain(*(decide(numbers) for numbers in drawn)))

    return mechanism


def decisive(request, parsed, pair):
    if "block" in request.kind:  # the column that was spoiled, and below it nothing that mends it
        return lambda numbers: (bool(numbers[0] == 0 and numbers[1] in (-1, 0, 5)),)
    if request.kind == "choice":  # of the leaf that the new row is in
        return lambda numbers: (int(numbers[0]) == 0,)
    kept = {size: holder._noise for size, holder in pair.items()}
    exact = {}
    for size, holder in pair.items():
        holder._noise = Exact(0)
        exact[size] = holder._numbers(request, *parsed)
        holder._noise = kept[size]
    moved = np.flatnonzero(exact[len(MORE)] - exact[len(BASE)])
    return lambda numbers: tuple((numbers - exact[len(BASE)])[moved] > 0)


def audit(name, epsilon=1.0, runs=RUNS, **how):
    return audit_privacy(answers_of(name, epsilon, **how), BASE, MORE, 1.0, runs=runs)


def marked(names):
    return [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in names]


@pytest.mark.parametrize("name", marked(REQUESTS))
def test_answers_of_holders_show_half_of_their_claim_and_no_more_than_it(name):
    found = audit(name, runs=2 * RUNS if name in SLOW else RUNS)
    assert 0.5 <= found.lower_bound < 1.0, found


class Halved(SeededNoise):
    """Half of the noise that is needed: the same as a sensitivity taken as half of what it is."""

    def laplace(self, values, scale):
        return super().laplace(values, scale / 2)

    def highest(self, scores, scale):
        return super().highest(scores, scale / 2)

    def sample_index(self, log_weights):
        return super().sample_index(2 * np.asarray(log_weights))


HALF, TWICE = {"noise_of": Halved}, {"times": 2}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fault", "runs"),
    [
        *(("rows", HALF, 2_000), ("rows", TWICE, 2_000)),
        *(("leaf counts", HALF, 2_000), ("side counts", HALF, 4_000)),
        *(("block", HALF, 4_000), ("choice", HALF, 4_000), ("choice", TWICE, 16_000)),
    ],
)
def test_half_of_the_noise_or_a_budget_used_twice_is_caught(name, fault, runs):
    found = audit(name, runs=runs, **fault)
    assert found.refuted, found


def test_a_selection_by_entropy_shows_half_of_its_claim():
    """Its sensitivity is met by a side of nearly as many rows of one class as are allowed."""
    schema = Schema({}, {"a": ["n", "y"], "b": ["n", "y"]}, classes=[0, 1])
    candidates, noise, many = SplitTable.declared(schema.space, 2), SeededNoise(4), 2**26
    base = np.zeros((1, candidates.n_bins, 2), np.int64)
    offsets = candidates.space.bin_offsets
    for feature, (no, yes) in enumerate((((many, 0), (0, many)), ((0, many), (many, 0)))):
        base[0, offsets[feature]], base[0, offsets[feature] + 1] = no, yes
    more = base.copy()
    more[0, offsets[:2], 1] += 1  # class 1: among all of class 0 by "a", among its own by "b"
    data = {"base": base, "more": more}
    limits = (candidates, "entropy", 1.0, noise)
    first = int(np.flatnonzero(candidates.arrays[0] == 0)[0])

    def mechanism(name):
        return select_splits(data[name], *limits)[0] == first

    found = audit_privacy(mechanism, "base", "more", 1.0, runs=2 * RUNS)
    assert 0.5 <= found.lower_bound < 1.0, found


# ---- learners, as they divide their budget; the number of rows is public ----
PAIR = Schema({}, {"a": ["n", "y"], "b": ["n", "y"]}, classes=[0, 1])
SIDES = [("n", "n", 0)] * SIDE + [("y", "n", 1)] * SIDE
# labels of whole trees: three or four rows of class 0 at one point, against five of class 1;
# noisy counts: one row more of the class that fills its leaf
LEARNERS = {
    "gibbs": ({"leaf_share": 0}, [("n", "n", k > 2) for k in range(8)], ("n", "n", 0)),
    "greedy": ({"leaf_share": 0.8}, SIDES, SIDES[0]),
    "topdown": ({"leaf_share": 0.8, "max_splits": 1}, SIDES, SIDES[0]),
}


def grown_by(method, monkeypatch, noise_of):
    """A function from rows to the decisive part of a learner's tree."""
    more, base, row = LEARNERS[method]
    model = PrivateTreeClassifier(1.0, PAIR, method, max_depth=1, public_rows=24, **more)
    model.n_rows_ = 24.0
    monkeypatch.setattr(growers, "build_tree", lambda sampled, _, __, counts: (sampled, counts))

    def rows_of(rows):
        return growers.RowsInMemory(PAIR, [r[:2] for r in rows], [int(r[2]) for r in rows])

    pair = {name: rows_of(rows) for name, rows in (("base", base), ("more", [*base, row]))}
    noises = {name: noise_of(place) for place, name in enumerate(pair)}

    def mechanism(name):
        sampled, counts = model._grow(PAIR, pair[name], noises[name], {})
        if method == "gibbs":
            return bool(counts[0, 0] > 0)  # the label of the leaf that all rows are in
        return sampled.split, bool(counts[0, 0] > SIDE + 0.25)

    return mechanism


@pytest.mark.slow
@pytest.mark.parametrize("method", LEARNERS)
def test_learners_show_half_of_their_claim_and_no_more_than_it(method, monkeypatch):
    mechanism = grown_by(method, monkeypatch, SeededNoise)
    found = audit_privacy(mechanism, "base", "more", 1.0, runs=RUNS)
    assert 0.5 <= found.lower_bound < 1.0, found


@pytest.mark.slow
@pytest.mark.parametrize("method", LEARNERS)
def test_half_of_the_noise_of_a_learner_is_caught(method, monkeypatch):
    mechanism = grown_by(method, monkeypatch, Halved)
    assert audit_privacy(mechanism, "base", "more", 1.0, runs=RUNS).refuted


# ---- noise under zCDP: what an event shows of rho, since epsilon is reached far out only ----
MANY, RHO = 400_000, 0.02


def least_rho(above, runs, confidence=0.999):
    """Lower bound on rho from how often an event happens on two neighbours.

    Under rho-zCDP the Renyi divergence of order a of any event is at most a rho (data processing).
    Clopper-Pearson bounds on both probabilities make the divergence smaller than it is.
    """
    each = (1 - confidence) / 2
    low, high = sorted(above)
    p = beta.ppf(each, high, runs - high + 1)
    q = beta.ppf(1 - each, low + 1, runs - low)
    orders = np.array([1.001, 1.5, 2.0, 4.0])
    terms = p**orders * q ** (1 - orders) + (1 - p) ** orders * (1 - q) ** (1 - orders)
    return float((np.log(terms) / (orders - 1) / orders).max()) if p > q else 0.0


def shown_rho(draw):
    """The bound for counts 0 and 1, by whether an answer exceeds 0, with half of the zeros."""
    coin = np.random.default_rng(5).random(MANY) < 0.5
    found = (draw(np.full(MANY, value)) for value in (0, 1))
    return least_rho([int(((each > 0) | ((each == 0) & coin)).sum()) for each in found], MANY)


def gaussian_sum(counts, rho=RHO, n_parts=1):
    """A count that was released several times for parts of rho: the mean tells most."""
    noise = SeededNoise(int(counts[0]) + 8)
    parts = [release_counts_zcdp(counts, rho / n_parts, noise) for _ in range(n_parts)]
    return 2 * sum(parts) - n_parts


def shared_sum(counts, honest=3, present=3):
    noise = SeededNoise(int(counts[0]) + 9)
    parts = [counts, *[np.zeros_like(counts)] * (present - 1)]
    return 2 * sum(release_share(part, RHO, noise, 1, honest) for part in parts) - 1


@pytest.mark.parametrize("draw", [gaussian_sum, lambda c: gaussian_sum(c, n_parts=2), shared_sum])
def test_gaussian_sums_show_half_of_their_rho_and_no_more_than_it(draw):
    assert 0.5 * RHO <= shown_rho(draw) < RHO


@pytest.mark.parametrize(
    "draw",
    [
        lambda counts: gaussian_sum(counts, 4 * RHO),  # half of the noise
        lambda counts: gaussian_sum(counts, 2 * RHO, 2),  # the budget used twice
        lambda counts: shared_sum(counts, present=1),  # two of three add none
        lambda counts: shared_sum(2 * counts),  # a row that counts twice
    ],
)
def test_too_little_noise_in_a_sum_is_caught(draw):
    assert shown_rho(draw) > RHO
