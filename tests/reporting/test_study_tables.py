"""Tables of the studies: every number of a few made-up cells worked out by hand."""

import importlib
from dataclasses import make_dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from tests.reporting.test_studies import loaded


@pytest.fixture
def module():
    """A module of a study."""
    inside = []

    def load(name, part):
        inside.append(loaded(name))
        inside[-1].__enter__()
        return importlib.import_module(part)

    yield load
    for one in inside:
        one.__exit__(None, None, None)


# ---- average sensitivity ----
def sensitivity_cell(epsilon, removed, values, test):
    return {
        "epsilon": epsilon,
        "removed": removed,
        "sensitivity": values,
        "sensitivity_features": [v / 2 for v in values],
        "train_accuracy": [0.9, 0.8],
        "test_accuracy": test,
    }


def test_sensitivities_have_student_intervals_over_samples(module):
    tables = module("average_sensitivity", "tables")
    cells = [
        sensitivity_cell(0.0, 1, [0.02, 0.04], [0.9, 0.94]),
        sensitivity_cell(0.1, 1, [0.01], [0.5]),
        sensitivity_cell(0.316, 1, [0.01, 0.02], [0.9, 0.9]),
        sensitivity_cell(0.316, 0.1, [0.2, 0.2], [None, None]),
    ]
    # 12.706 is Student's with one degree of freedom: .03 -+ 12.706 * .01, cut off at 0
    lines = tables.table(cells).splitlines()
    assert lines[2].split(" | ")[1:] == [
        "0.0300 (0.0000 to 0.1571)", "", "0.0150 (0.0000 to 0.0785)", "0.8500", "0.9200 |",
    ]  # fmt: skip
    assert lines[4].split(" | ")[:3] == [
        "| 0.316",
        "0.0150 (0.0000 to 0.0785)",
        "0.2000 (0.2000 to 0.2000)",
    ]
    assert tables.verdict(cells) == (
        "epsilon 0.316 beside greedy: 0.50 of the sensitivity to one row, "
        "+2.00 points of test accuracy lost"
    )


def test_a_set_that_is_not_there_is_named(module, monkeypatch, tmp_path):
    run = module("average_sensitivity", "run")
    sets = [SimpleNamespace(name="one", is_large=True), SimpleNamespace(name="two", is_large=True)]
    monkeypatch.setattr(run, "all_sets", lambda: sets)
    with pytest.raises(SystemExit, match=r"^there is no set 'on' here: choose some of one, two\.$"):
        run.main(["--sets", "on", "--out", str(tmp_path)])


# ---- robust trees ----
def proof(confidence, depth, seconds, gap=0.0, objective=9):
    return {
        "set": "one", "confidence": confidence, "depth": depth, "seconds": seconds,
        "proven": gap == 0, "gap": gap, "objective": objective, "majority": 7,
    }  # fmt: skip


def test_shares_proven_count_what_was_not_proven(module):
    tables = module("robust_optimal", "tables")
    cells = [proof(0.5, 2, 0.05), proof(0.5, 3, 0.5), proof(0.5, 3, 1.9, 0.3, 7)]
    cells += [proof(0.5, 3, 1.9, 0.1), proof(0.99, 2, 0.005)]
    lines = tables.proofs(cells).splitlines()[1:]
    assert lines[0].split("instances: ")[1] == (
        "0.01s   0% 0.1s  25% 1s  50% 2s  50%; gap median 20.0% largest 30.0%; "
        "majority not beaten 25%"
    )
    assert lines[1].endswith("0.01s 100% 0.1s 100% 1s 100% 2s 100%; all; majority not beaten 0%")
    assert [line.split()[:3] for line in lines[2:]] == [
        ["depth", "2", "2"], ["depth", "3", "3"], ["set", "one", "5"],
    ]  # fmt: skip


def test_gains_are_robust_less_plain_worst_before_average(module):
    tables = module("robust_optimal", "tables")
    cells = [
        {"confidence": 0.85}
        | {shift: [[60.0 + k, 80.0], [50.0, 81.0 - k]] for shift in tables.SHIFTS}
        for k in range(5)
    ]
    line = tables.gains(cells).splitlines()[1]
    assert line == (
        " as expected confidence 0.85 : +12.00; +12.00 [+11.00 +13.00] (+10.00 to +14.00) "
        "| +1.00; +1.00 [+0.00 +2.00] (-1.00 to +3.00)"
    )


# ---- separation ----
def card(method, seed, nodes, accuracy, er, name="heart"):
    found = {"set": name, "method": method, "seed": seed, "questions": nodes - 1, "nodes": nodes}
    return found | {"accuracy": accuracy, "er": er, "depth": 3, "at05": accuracy / 2, "seconds": 2}


def test_standard_errors_are_those_of_a_mean_over_splits(module):
    tables = module("separation", "tables")
    cells = [
        card("CART", 0, 10, 0.8, 0.2),
        card("CART", 1, 14, 0.9, None),
        card("LCPA", 0, 3, 1, 1),
    ]
    assert tables.error_table(cells, ["CART", "LCPA"]).splitlines()[2:] == [
        "| heart | CART | 2 | 12 (± 2) | 0.85 (± 0.05) | 0.2 | 3 (± 0) |",
        "| heart | LCPA | 1 | 3 | 1 | 1 | 3 |",
    ]
    assert tables.means(cells[:2])[[0, 2, 3]] == pytest.approx([11, 0.85, 0.2])


def test_sets_are_counted_on_which_the_published_card_is_ahead(module):
    tables = module("separation", "tables")
    cells = []
    for name, own in (
        ("heart", (5, 0.80, 0.3)),
        ("bank", (9, 0.85, 0.496)),
        ("adult", (2, 0.7, 0.1)),
    ):
        cells.append(card("published", 0, *own, name))
        cells += [card(m, 0, 8, 0.82, er, name) for m, er in (("CART", 0.5), ("RobDT", 0.2))]
        if name != "adult":
            cells.append(card("LCPA", 0, 6, 0.78, 0.1, name))
    # printed: heart 9.5 < 11.9, .82 of .82, .32 of .32; bank 8 < 8.9, .9 of .9, .5 of .5
    assert tables.count_table(cells).splitlines()[2:] == [
        "| ours | 2 | 1 | 1 | 2 |",
        "| printed | 2 | 2 | 2 | 2 |",
    ]
    assert tables.count_table([card("published", 0, 5, 0.8, 0.3, "a set of mine")]) == ""


def test_a_figure_without_a_number_has_a_dash(module):
    tables = module("separation", "tables")
    cells = [
        card(f"noise {who}", 0, 5, 0.8, er) | {"setting": 0.25}
        for who, er in (("published", 0.3), ("ours", None))
    ]
    row = tables.figure_table(cells, "noise").splitlines()[2]
    assert row == "| heart | 0.25 | 1 | 4 | 4 | 0.8 | 0.8 | 0.3 | - |"


def test_a_tree_of_the_theorems_has_one_line(module):
    lines = module("separation", "run").construction_table().splitlines()
    assert len(lines) == len({*lines}) == 13


def test_paired_differences_are_ours_less_the_others(module):
    tables = module("separation", "tables")
    ours, other = tables.PAIRS[0]
    cells = [card(ours, s, 9, 0.9 + s / 100, 0.1) for s in range(3)]
    cells += [card(other, s, 9, 0.8, 0.1) | {"seconds": 8} for s in range(3)]
    line = tables.paired_table(cells).splitlines()[2].split(" | ")
    half = 4.302653 * 0.01 / 3**0.5
    assert line[3:6] == ["3", "+0.1100", f"{0.11 - half:+.4f} to {0.11 + half:+.4f}"]
    assert line[6] == "+0.0550"
    assert line[-1] == "4 |"


# ---- tree distance ----
def test_distances_are_in_percent_of_the_bound_of_the_deepest_tree(module):
    frontier = module("tree_distance", "frontier")

    class Deep:
        depth = 3

    names = ("Pareto, best AUC", "Pareto, least distance", "cross-validated CART")
    kept = {name: [(0.9, 1.0 + k, None), (0.9, 3.0 + k, None)] for k, name in enumerate(names)}
    # 2^3 (2 * 3 + 1) = 56
    assert frontier.percent_line(kept, [Deep()]) == (
        "distance in % of the bound at depth 3: Pareto, best AUC 3.571, "
        "Pareto, least distance 5.357, cross-validated CART 7.143"
    )
    assert frontier._n_top(np.array([[0.5, 0.3, 0.2, 0.0], [0.9, 0.0, 0.0, 0.1]])) == 4
    tables = importlib.import_module("tables")
    assert tables.spread([1, 2, 3, 6]) == (3.0, pytest.approx(3.5**0.5))


# ---- private trees ----
def test_means_of_repeats_and_paired_differences(module):
    topdown = module("private_distributed", "topdown")

    numbers = ("80", "2", "4", "3", "10", "99", "0.5")
    tests = (("rnm", 82, 1), ("local_rnm", 81, 0), ("noisy_counts", 81.5, 0.1))
    rows = [
        ("adult", method, "1.0", str(seed), str(test + step * seed), *numbers)
        for method, test, step in tests
        for seed in range(4)
    ]
    text = topdown.table(SimpleNamespace(rows=rows), {}).splitlines()
    # 82 to 85: deviation 1.29, error .65
    assert "rnm                4   83.50 ± 0.65   80.00    2.0     4.0    3.0         10" in text[3]
    assert text[-2].endswith("rnm - local_rnm: +2.50 ± 0.65 (4 pairs), >= 0 holds")
    assert text[-1].endswith("local_rnm - noisy_counts: -0.65 ± 0.06 (4 pairs), >= 0 FAILS")


def test_figures_of_private_trees_are_means_over_repeats(module, tmp_path):
    tables = module("private_distributed", "tables")
    key = ("2", "adult", "topdown", "1.0", "1", "1.0")
    rows = [(*key, "0", "80", "81", "2", "5", "0.1"), (*key, "1", "84", "83", "4", "9", "0.3")]
    tables.write_results([*rows, rows[0]], tmp_path / "results.txt")
    line = (tmp_path / "results.txt").read_text("utf-8").splitlines()[-1]
    shown = "topdown 1 1 1 2 82.00 (80.00- 84.00) 82.00 3.0 7.0 0.20"
    assert " ".join(line.split()) == shown


@pytest.mark.parametrize(
    ("fixed", "n_train", "first"), [(None, 72, None), (60, 60, set(range(60)))]
)
def test_rows_to_learn_from_are_nine_in_ten_or_those_published(module, fixed, n_train, first):
    split = module("private_distributed", "common").split
    train, test = split(80, 3, 1.0, 0.9, fixed)
    assert len(train) == n_train
    assert sorted([*train, *test]) == list(range(80))
    assert first is None or set(train.tolist()) == first
    half, same = split(80, 3, 0.5, 0.9, fixed)
    assert len(half) == n_train // 2
    assert set(half.tolist()) <= set(train.tolist())
    assert same.tolist() == test.tolist()


def test_the_full_protocol_of_private_trees_is_the_papers(module):
    run = module("private_distributed", "run")
    assert run.PAPER_EPSILONS[0] == 0.125
    assert run.PAPER_EPSILONS[-1] == 512
    assert run.PAPER == {
        "criterion": "entropy", "max_splits": 512, "error": 0.1, "budget": "decay",
        "leaf_share": 0.5,
    }  # fmt: skip
    told = [setting[:5] for setting in run.as_published("skin", None, "2")]
    assert len(told) == 14 * 3
    assert ("2", "noisy_counts", 512.0, 4, 1.0) in told
    shares = [setting[1] for setting in run.as_published("skin", None, "1")]
    assert len(set(shares)) == 3 * 2 * 7
    assert "local_rnm uniform 0.5" in shares
    assert len(list(run.as_published("skin", None, "3"))) == 14 * 4 * 3


# ---- what is measured ----
def test_samples_have_seeds_of_their_own_and_training_accuracy_comes_first(module, monkeypatch):
    cells = module("average_sensitivity", "cells")
    asked = []

    def record(learner, X, y, removed, repeats, seeds, **_):
        asked.append((repeats, list(seeds)))
        return SimpleNamespace(value=0.5)

    monkeypatch.setattr(cells, "average_sensitivity", record)
    X = np.arange(20.0)[:, None]
    y = (X[:, 0] > 9).astype(int)
    data = SimpleNamespace(sample=lambda k: (X, y), test=(X, 1 - y), depth=1)
    found = cells.measure_cell(data, 0.0, 1, {"samples": 2, "seeds": 3, "repeats": 7})
    assert asked == [(None, [0, 1, 2])] * 2 + [(None, [3, 4, 5])] * 2
    assert found["train_accuracy"] == [1.0, 1.0]
    assert found["test_accuracy"] == [0.0, 0.0]
    cells.measure_cell(data, 0.0, 0.1, {"samples": 1, "seeds": 1, "repeats": 7})
    assert asked[-1] == (7, [0])


def test_a_tree_that_always_comes_out_is_a_hundred_of_a_hundred(module):
    counts = module("average_sensitivity", "counts")
    X = np.repeat([[0.0], [1.0]], 20, axis=0)
    data = SimpleNamespace(sample=lambda k: (X, np.repeat([0, 1], 20)), depth=1)
    assert counts.most_frequent(data, 0.0, 0.1, 0, 0, 30) == [100] * len(counts.LEVELS)


def test_trees_are_judged_by_inner_nodes_on_columns_scaled_by_training_rows(module):
    methods = module("separation", "methods")
    X = np.c_[np.arange(60.0), np.arange(60.0)[::-1] ** 2]
    a, b, c, d = importlib.import_module("data").split(X, (X[:, 0] > 30).astype(int), 0)
    assert (a.min(axis=0) == 0).all()
    assert (a.max(axis=0) == 1).all()
    assert len(b) == 20
    tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(a, c + (a[:, 0] > 0.9))
    found = methods.judge(tree, b, d, methods.box(a, b))
    assert (found["nodes"], found["questions"], found["depth"]) == (2, 2, 2)


def test_test_accuracy_of_private_trees_comes_first(module, monkeypatch):
    run = module("private_distributed", "run")
    rows, y = np.arange(50), np.arange(50) % 3
    frame = pytest.importorskip("pandas").DataFrame({"row": rows})

    def learn_by_heart(X, y, seed):
        return SimpleNamespace(known=X["row"].to_numpy(), depth=2, n_nodes=5)

    def predict(model, values):
        return np.where(np.isin(values, model.known), values % 3, -1)

    monkeypatch.setattr(run, "predict", predict)
    assert run.measure((frame, y), rows, learn_by_heart, 1.0, 0)[:4] == (0.0, 100.0, 2, 5)


def test_the_robust_tree_comes_first_in_a_gain(module, monkeypatch):
    measure = module("robust_optimal", "measure")

    class Learner:
        proven_ = True

        def __init__(self, depth, noise=None, **_):
            self.worst = 0.5 if noise is None else 0.9

        def fit(self, X, y):
            return self

        def score(self, X, y):
            return 1.0

    def judge(model, *_, **__):
        return SimpleNamespace(worst=model.worst, average=model.worst + 0.05)

    monkeypatch.setattr(measure, "RobustTreeClassifier", Learner)
    monkeypatch.setattr(measure, "shift_accuracy", judge)
    X, y = importlib.import_module("instances").make("made monks-1")
    asked = {"set": "one", "depth": 2, "mean": 0.8, "confidence": 0.85}
    found = measure.gain(X, y, asked, 1)
    assert found["as expected"] == found["within 0.2"] == [[90.0, 95.0], [50.0, 55.0]]


def test_thresholds_move_down_as_far_as_up(module):
    sensitivity = module("tree_distance", "sensitivity")
    made = make_dataclass("Thresholds", ["threshold", "n_nodes"])
    tree = made(np.ones(2000), 2000)
    moved = sensitivity.move_thresholds(tree, 0.5, np.random.default_rng(0)).threshold
    assert moved.mean() == pytest.approx(1.0, abs=0.03)  # five errors of a mean of 2,000
    assert 0.5 <= moved.min() < 0.51
    assert 1.49 < moved.max() <= 1.5
