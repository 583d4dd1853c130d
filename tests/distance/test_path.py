"""The path distance equals its definition, and keeps what is said of it."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, linprog
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from steadytree.data.feature_space import FeatureSpace
from steadytree.distance.diff import find_changes
from steadytree.distance.path import MOST_PAIRS, distances_between, path_distance, path_distances
from steadytree.models.boxes import rebase, rename, shared_space
from steadytree.models.tree import Tree
from tests.models.trees import random_tree

UNIT = FeatureSpace.declare({"x": (0, 1)})


# ---- the definition, written out ----
def literal_paths(tree):
    """(upper, lower, categories, label, shares) of each leaf."""

    def walk(node, upper, lower, inside):
        if tree.left[node] < 0:
            value = tree.value[node]
            label = tree.classes.tolist()[value.argmax()]
            shares = dict(zip(tree.classes.tolist(), value.tolist(), strict=True))
            found[node] = upper, lower, inside, label, shares
            return
        j, t = tree.feature[node], tree.threshold[node]
        column = tree.space[j]
        if column.is_categorical:
            chosen = {c for c, flag in enumerate(tree.subset[node]) if flag}
            walk(tree.left[node], upper, lower, inside | {j: inside[j] & chosen})
            walk(tree.right[node], upper, lower, inside | {j: inside[j] - chosen})
        else:
            t = min(max(t, column.low), column.high)
            walk(tree.left[node], upper | {j: min(upper[j], t)}, lower, inside)
            walk(tree.right[node], upper, lower | {j: max(lower[j], t)}, inside)

    found, space = {}, tree.space
    numbers = [j for j, column in enumerate(space) if not column.is_categorical]
    walk(
        0,
        {j: space[j].high for j in numbers},
        {j: space[j].low for j in numbers},
        {j: set(range(len(c.categories))) for j, c in enumerate(space) if c.is_categorical},
    )
    return [found[node] for node in sorted(found)]


def literal_pair(p, q, space, class_weight, leaves):
    """Equation 1."""
    total = 0.0
    for j in p[0]:
        gap = abs(p[0][j] - q[0][j]) + abs(p[1][j] - q[1][j])
        total += gap / (2 * (space[j].high - space[j].low))
    for j in p[2]:
        total += len(p[2][j] ^ q[2][j]) / len(space[j].categories)
    if leaves == "label":
        return total + class_weight * (p[3] != q[3])
    labels = set(p[4]) | set(q[4])
    return total + class_weight * sum(abs(p[4].get(k, 0) - q[4].get(k, 0)) for k in labels) / 2


def literal_weight(p, space):
    """Equation 2; a range that a repeated question left empty counts as 0."""
    total = 0.0
    for j in p[0]:
        column = space[j]
        if p[0][j] != column.high or p[1][j] != column.low:
            total += max(p[0][j] - p[1][j], 0) / (column.high - column.low)
    for j in p[2]:
        n_categories = len(space[j].categories)
        if len(p[2][j]) != n_categories:
            total += len(p[2][j]) / n_categories
    return total


def literal_distance(a, b, class_weight, leaves="label"):
    """Equation 3 with dummy paths that cost an unmatched path's weight."""
    many, few = sorted((literal_paths(a), literal_paths(b)), key=len, reverse=True)
    cost = [[literal_pair(p, q, a.space, class_weight, leaves) for q in few] for p in many]
    dummy = [[literal_weight(p, a.space)] * (len(many) - len(few)) for p in many]
    cost = np.hstack([np.array(cost), np.array(dummy).reshape(len(many), -1)])
    rows, columns = linear_sum_assignment(cost)
    return cost[rows, columns].sum()


def literal_surjection(a, b, class_weight):
    """Each path of the larger tree to one of the smaller, onto, as a linear programme."""
    many, few = sorted((literal_paths(a), literal_paths(b)), key=len, reverse=True)
    cost = np.array(
        [[literal_pair(p, q, a.space, class_weight, "label") for q in few] for p in many]
    )
    n, m = cost.shape
    return linprog(
        cost.ravel(),
        A_eq=np.kron(np.eye(n), np.ones(m)),
        b_eq=np.ones(n),
        A_ub=-np.kron(np.ones(n), np.eye(m)),
        b_ub=-np.ones(m),
    ).fun


def relaxed_matching(a, b, class_weight):
    """Equation 3 without whole numbers: its value, and a solution at a corner."""
    many, few = sorted((literal_paths(a), literal_paths(b)), key=len, reverse=True)
    cost = np.array(
        [
            [*(literal_pair(p, q, a.space, class_weight, "label") for q in few)]
            + [literal_weight(p, a.space)] * (len(many) > len(few))
            for p in many
        ]
    )
    n, m = cost.shape
    each_of_few = np.kron(np.ones(n), np.eye(m)[: len(few)])
    rows = np.vstack([np.kron(np.eye(n), np.ones(m)), each_of_few])
    found = linprog(cost.ravel(), A_eq=rows, b_eq=np.ones(len(rows)), method="highs-ds")
    return found.fun, found.x


def random_pair(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 11, 2)
    a, b = (random_tree(rng, n_leaves=int(n), n_numeric=3, n_categorical=2) for n in sizes)
    space = a.space
    try:
        b = rebase(b, space)
    except ValueError:  # another draw of categories: ask the same features of a's
        b = random_tree(rng, n_leaves=int(sizes[1]), n_numeric=3, n_categorical=0)
        b = rebase(b, space)
    return a, b


def test_equals_the_definition_on_300_pairs_with_categories():
    with_categories = 0
    for seed in range(300):
        a, b = random_pair(seed)
        weight = float(seed % 7) / 2
        for leaves in ("label", "distribution"):
            found = path_distance(a, b, class_weight=weight, leaves=leaves).value
            assert found == pytest.approx(literal_distance(a, b, weight, leaves), abs=1e-12)
        with_categories += bool(np.isnan(a.threshold[~a.is_leaf]).any())
    assert with_categories > 100


@pytest.mark.parametrize("seed", range(8))
def test_equation_1_is_a_metric_between_paths(seed):
    """Lemma 1, on all paths of two trees with categories."""
    a, b = random_pair(seed)
    paths = [*literal_paths(a), *literal_paths(b)]
    D = np.array([[literal_pair(p, q, a.space, 2.0, "label") for q in paths] for p in paths])
    same = [[p[:4] == q[:4] for q in paths] for p in paths]
    assert (D == D.T).all()
    assert ((D == 0) == same).all()
    assert (D[:, None, :] <= D[:, :, None] + D[None, :, :] + 1e-12).all()


def test_the_relaxation_of_equation_3_is_integral():
    """Corollary 1: corners of the linear programme match whole paths, and best as ours does."""
    for seed in range(60):
        a, b = random_pair(seed)
        value, solution = relaxed_matching(a, b, 2.0)
        assert np.abs(solution - solution.round()).max() < 1e-9
        assert path_distance(a, b, class_weight=2.0).value == pytest.approx(value, abs=1e-9)


def test_surjective_matching_equals_a_linear_programme():
    for seed in range(60):
        a, b = random_pair(seed)
        found = path_distance(a, b, class_weight=2.0, matching="surjective")
        assert found.value == pytest.approx(literal_surjection(a, b, 2.0), abs=1e-9)
        assert (found.matching >= 0).all()


def test_all_pairs_at_once_equal_one_pair_at_a_time():
    A, B = zip(*(random_pair(seed) for seed in range(6)), strict=True)
    A = [A[0], *(t for t in A[1:] if t.space.names == A[0].space.names)]
    space = FeatureSpace.declare(
        {c.name: (-2, 2) for t in (*A, *B) for c in t.space if not c.is_categorical},
        {
            c.name: [f"c{k}" for k in range(7)]
            for t in (*A, *B)
            for c in t.space
            if c.is_categorical
        },
    )
    for matching in ("unmatched-cost", "surjective"):
        cross = path_distances(A, B, matching=matching, space=space)
        for (i, a), (j, b) in itertools.product(enumerate(A), enumerate(B)):
            one = path_distance(a, b, matching=matching, space=space).value
            assert cross[i, j] == pytest.approx(one, abs=1e-12)
        own = path_distances(B, matching=matching, space=space)
        np.testing.assert_allclose(own, path_distances(B, B, matching=matching, space=space))
    unmatched = path_distances(A, B, space=space)
    np.testing.assert_array_equal(distances_between(A, B, space), unmatched)
    np.testing.assert_array_equal(distances_between(B, None, space), path_distances(B, space=space))


def stump(pieces):
    """A tree over x in [0, 1] from rising (upper end, label) pairs."""
    ends, labels = zip(*pieces, strict=True)
    n = len(ends)
    feature, threshold, left, right = [], [], [], []
    for end in ends[:-1]:
        k = len(feature)
        feature += [0, -1]
        threshold += [end, np.nan]
        left += [k + 1, -1]
        right += [k + 2, -1]
    shares = np.eye(2)[list(labels)]
    value = [row for label in shares[:-1] for row in (label, label)]
    return Tree(
        UNIT,
        [0, 1],
        [*feature, -1],
        [*threshold, np.nan],
        [*left, -1],
        [*right, -1],
        [*value, shares[-1]],
        np.ones(2 * n - 1),
    )


def test_triangle_inequality_fails_between_trees_of_different_size():
    one, leaf, other = stump([(0.01, 1), (1, 0)]), stump([(1, 0)]), stump([(0.99, 0), (1, 1)])
    d12, d23 = path_distance(one, leaf).value, path_distance(leaf, other).value
    assert d12 == pytest.approx(0.015)
    assert d23 == pytest.approx(0.015)
    assert path_distance(one, other).value > 0.9 > d12 + d23


@given(st.integers(0, 2**32 - 1), st.integers(1, 8))
@settings(max_examples=60)
def test_it_is_a_metric_among_trees_with_equally_many_paths(seed, n_leaves):
    rng = np.random.default_rng(seed)
    drawn = [random_tree(rng, n_leaves=n_leaves, n_categorical=0, n_numeric=2) for _ in range(3)]
    D = path_distances(drawn, class_weight=float(rng.choice([0.5, 1.0, 4.0])))
    np.testing.assert_array_equal(D, D.T)
    assert (np.diag(D) == 0).all()
    for a, b, c in itertools.permutations(range(3)):
        assert D[a, c] <= D[a, b] + D[b, c] + 1e-12


def test_order_of_questions_does_not_matter():
    space = FeatureSpace.declare({"x": (0, 1), "y": (0, 1)})
    value, weight = np.eye(2)[[0, 0, 0, 0, 1, 0, 1]], np.ones(7)
    nan, children = [np.nan] * 4, ([1, 3, 5, -1, -1, -1, -1], [2, 4, 6, -1, -1, -1, -1])
    a = Tree(
        space, [0, 1], [0, 1, 1, -1, -1, -1, -1], [0.3, 0.6, 0.6, *nan], *children, value, weight
    )
    swapped = value[[0, 1, 2, 3, 5, 4, 6]]
    b = Tree(
        space, [0, 1], [1, 0, 0, -1, -1, -1, -1], [0.6, 0.3, 0.3, *nan], *children, swapped, weight
    )
    found = path_distance(a, b)
    assert found.value == 0
    assert found.matching.tolist() == [[3, 3], [4, 5], [5, 4], [6, 6]]


def test_matching_names_leaves_and_adds_up():
    for seed in range(20):
        a, b = random_pair(seed)
        found = path_distance(a, b)
        assert found.costs.sum() == pytest.approx(found.value)
        for side, tree in enumerate((a, b)):
            used = found.matching[:, side]
            used = used[used >= 0]
            assert len(set(used.tolist())) == len(used)
            assert tree.is_leaf[used].all()
        assert len(found.matching) == max(a.n_leaves, b.n_leaves)
        other = path_distance(b, a)
        assert other.value == pytest.approx(found.value, abs=1e-12)


def test_normalised_by_one_depth_for_a_study():
    a, b = random_pair(3)
    raw = path_distance(a, b, class_weight=2.0).value
    deep = max(a.depth, b.depth) + 2
    found = path_distance(a, b, class_weight=2.0, normalise=deep).value
    assert found == pytest.approx(raw / (2**deep * (2 * deep + 2.0)))
    with pytest.raises(ValueError, match="largest depth of the study"):
        path_distance(a, b, normalise=1)
    with pytest.raises(ValueError, match="normalise must be"):
        path_distance(a, b, normalise=0)


def test_columns_are_matched_by_name_and_bounds_widened():
    a = stump([(0.25, 0), (1, 1)])
    wide = FeatureSpace.declare({"x": (0, 2)})
    b = replace(stump([(0.5, 0), (1, 1)]), space=wide)
    assert path_distance(a, b).value == pytest.approx(0.125)  # both bounds move by 0.25 of 2
    b = rename(b, {"x": "z"})
    with pytest.raises(ValueError, match=r"only the first has 'x', only the other has 'z'"):
        path_distance(a, b)
    both = FeatureSpace.declare({"x": (0, 1), "z": (0, 1)})
    assert path_distance(a, b, space=both).value > 0


def test_sklearn_trees_need_the_data_for_bounds():
    X = np.array([[0.0], [1.0], [2.0], [4.0]])
    a, b = (DecisionTreeClassifier().fit(X, y) for y in ([0, 0, 1, 1], [0, 1, 1, 1]))
    with pytest.raises(ValueError, match="pass space=X"):
        path_distance(a, b)
    assert path_distance(a, b, space=X).value == pytest.approx(0.25)
    ours = stump([(0.5, 0), (1, 1)])
    with pytest.raises(ValueError, match="different features"):
        path_distance(ours, a)


def test_refuses_what_it_cannot_compare():
    a = stump([(0.5, 0), (1, 1)])
    regression = DecisionTreeRegressor().fit([[0.0], [1.0]], [0.1, 0.7])
    with pytest.raises(TypeError, match="1 of the 2 trees are regression trees"):
        path_distance(a, regression)
    text = FeatureSpace.declare(categories={"x": ["u", "v"]})
    b = Tree(text, [0, 1], [-1], [np.nan], [-1], [-1], [[1, 0]], [1])
    with pytest.raises(ValueError, match="holds numbers for one tree and categories"):
        path_distance(a, b)
    for wrong in ({"class_weight": -1}, {"matching": "any"}, {"leaves": "shares"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            path_distance(a, a, **wrong)
    with pytest.raises(ValueError, match="at least one tree"):
        path_distances([])


def test_rebased_trees_decide_as_before():
    from tests.models.trees import random_rows

    for seed in range(20):
        rng = np.random.default_rng(seed)
        tree = random_tree(rng, n_leaves=7)
        rows = random_rows(rng, tree)
        columns = [
            replace(c, categories=(*c.categories[::-1], "never seen")) if c.is_categorical else c
            for c in tree.space
        ]
        other = rebase(tree, FeatureSpace((*columns[::-1], *UNIT)))
        rows["x"] = 0.0
        np.testing.assert_array_equal(other.apply(rows), tree.apply(rows))


def test_a_shared_space_is_the_widest_of_both():
    for missing in itertools.product([False, True], repeat=2):
        for kinds in itertools.product(["integer", "numeric"], repeat=2):
            both = [
                FeatureSpace.declare(
                    {"a": (0, 1 + k)}, {"b": ["u", "v"][: 1 + k]}, {"a": kind}, own
                )
                for k, (own, kind) in enumerate(zip(missing, kinds, strict=True))
            ]
            found = shared_space(both)
            assert [column.missing for column in found] == [any(missing)] * 2
            assert found[0].kind == ("integer" if set(kinds) == {"integer"} else "numeric")
            assert (found[0].low, found[0].high, found[1].categories) == (0, 2, ("u", "v"))


@pytest.mark.parametrize(("most", "fits"), [(11, False), (12, True), (13, True)])
def test_as_many_pairs_of_leaves_as_are_compared(most, fits, monkeypatch):
    """Three leaves beside four; a diff leaves the distance out where there are more."""
    few = {"n_numeric": 1, "n_categorical": 0}
    pair = [random_tree(np.random.default_rng(0), n_leaves=n, **few) for n in (3, 4)]
    for name in ("path.MOST_PAIRS", "diff.MOST_PATHS"):
        monkeypatch.setattr(f"steadytree.distance.{name}", most)
    space = shared_space([tree.space for tree in pair])
    assert (find_changes(*pair).distance is not None) == fits
    if fits:
        assert path_distance(*pair, space=space).value >= 0
    else:
        with pytest.raises(ValueError, match="3 and 4 leaves"):
            path_distance(*pair, space=space)


@pytest.mark.parametrize("normalise", [False, True, 0, 1, 3])
@pytest.mark.parametrize("class_weight", [0, 0.5, 2.0])
def test_two_leaves_differ_by_their_labels_alone(class_weight, normalise):
    ends = [stump([(1, label)]) for label in (0, 1)]
    depth = max(int(normalise), 1)  # that of two leaves counts as 1
    most = 1 if normalise is False else 2**depth * (2 * depth + class_weight)
    given = {"class_weight": class_weight, "normalise": normalise}
    assert path_distance(*ends, **given).value == pytest.approx(class_weight / most)
    assert path_distances(ends, **given) == pytest.approx(
        class_weight / most * np.array([[0, 1], [1, 0]])
    )


def test_limits_of_options():
    pair = [stump([(0.5, 0), (1, 1)]), stump([(0.25, 0), (1, 1)])]
    assert path_distance(*pair, normalise=1).value == pytest.approx(0.25 / (2 * 3))
    numbers = [DecisionTreeRegressor().fit([[0.0], [1.0]], [0.0, y]) for y in (0.5, 2.0)]
    found = path_distance(*numbers, space=[[0.0], [1.0]], target_range=1e-9).value
    assert found == pytest.approx(1.5e9)
    by_range = path_distance(*numbers, space=[[0.0], [1.0]]).value
    assert by_range == pytest.approx(1.5 / 2)  # predictions from 0 to 2
    same = DecisionTreeRegressor().fit([[0.0], [1.0]], [3.0, 3.0])
    assert path_distance(same, same, space=[[0.0], [1.0]]).value == 0
    for wrong in (0, 0.0, -1.0, np.inf, np.nan, "1"):
        with pytest.raises(ValueError, match="target_range must be a finite number above 0"):
            path_distance(*numbers, space=[[0.0], [1.0]], target_range=wrong)
    for wrong in (-1e-9, np.inf, np.nan, "1"):
        with pytest.raises(ValueError, match="class_weight must be a finite number of at least 0"):
            path_distance(*pair, class_weight=wrong)
    for wrong in (0, 0.5, "1"):
        with pytest.raises(ValueError, match="normalise must be True, False or a depth"):
            path_distance(*pair, normalise=wrong)
    assert MOST_PAIRS * 8 == 1.2e9  # bytes of their costs


def test_options_that_are_left_out():
    a, b = random_pair(5)
    named = {"class_weight": 1.0, "normalise": False, "leaves": "label"}
    expected = path_distance(a, b, matching="unmatched-cost", **named).value
    assert path_distance(a, b).value == expected
    assert path_distances([a], [b]).tolist() == [[expected]]
    assert distances_between([a], [b], a.space).tolist() == [[expected]]
    assert path_distance(a, b, class_weight=2.0).value > expected  # a label somewhere differs
    other = distances_between([a], [b], a.space, surjective=True)
    assert other.tolist() == [[path_distance(a, b, matching="surjective").value]]
