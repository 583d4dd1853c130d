"""Sections 2.5 and 3.2 to 3.5: frontier, accuracy, size, importances and retraining distance.

Every choice is made on validation rows; one line shows what choosing on the test rows, as the
paper allows, would have printed instead. Distances are raw: dividing each by the bound of its own
depth would make deep trees look near.
"""

from collections import defaultdict

import numpy as np
from methods import chosen_trees, cross_validated, forest, pareto, size_matched
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from tables import show, spread

from steadytree.distance.path import path_distance, path_distances
from steadytree.distance.tree_distance import collection_facts, gini_importance
from steadytree.models.sklearn import from_sklearn
from steadytree.stability.bootstrap import choose
from steadytree.stability.retrain import RetrainedTreeClassifier

HEAD = ("", "AUC", "distance to first batch", "depth", "leaves", "imp. dev.", "top-3 features")
AGAIN = ("", "distance", "same root", "agreement", "AUC")


def area(model, X, y):
    return roc_auc_score(y, model.predict_proba(X)[:, 1])


def one_split(X, y, seed, n_trees):
    """All trees of one split into 67 % training and 33 % test rows, from half and all of it."""
    rows = np.arange(len(X))
    train, test = train_test_split(rows, test_size=0.33, random_state=seed, stratify=y)
    half = train_test_split(train, train_size=0.5, random_state=seed, stratify=y[train])[0]
    found = {}
    runs = {}
    for part, own in (("half", half), ("full", train)):
        A, b = X.iloc[own], y[own]
        run = runs[part] = pareto(A, b, seed + (part == "full") * 1000, n_trees)
        trees = chosen_trees(run)
        for name in ("Pareto, knee", "Pareto, 0.01 tolerance"):
            trees[f"CART of that size ({name[8:]})"] = size_matched(A, b, trees[name], seed)
        trees["cross-validated CART"] = cross_validated(A, b, seed)
        for name, tree in trees.items():
            model = tree if hasattr(tree, "space") else from_sklearn(tree, X)
            found[name, part] = model
    for name in ("cross-validated CART", "Pareto, knee"):
        near = RetrainedTreeClassifier(
            found[name, "half"], scoring="roc_auc", random_state=seed
        ).fit(X.iloc[train], y[train], seen=np.isin(train, half))
        found[f"staying close to {name}", "half"] = found[name, "half"]
        found[f"staying close to {name}", "full"] = near.tree_
    return found, runs["full"], train, test


def study(name, X, y, n_splits=10, n_trees=100):
    """Print the tables of one data set; returns what is drawn."""
    sizes, firsts, best_on_test, chosen = [], [], [], []
    kept, again, forests = defaultdict(list), defaultdict(list), defaultdict(list)
    for seed in range(n_splits):
        found, run, train, test = one_split(X, y, seed, n_trees)
        sizes.append(len(run.frontier_))
        firsts += run.trees_
        chosen.append(run)
        T, truth = X.iloc[test], y[test]
        best_on_test.append(max(area(tree, T, truth) for tree in run.trees_))
        for (method, part), tree in found.items():
            if part == "full":
                far = path_distances([tree], run.first_trees_, space=X).mean()
                kept[method].append((area(tree, T, truth), far, tree))
                old = found[method, "half"]
                apart = path_distance(old, tree, space=X).value
                agree = (old.predict(T) == tree.predict(T)).mean()
                root = float(old.feature[0] == tree.feature[0])
                again[method].append((apart, root, agree, area(tree, T, truth)))
        model = forest(X.iloc[train].to_numpy(), y[train], seed)
        forests["AUC"].append(area(model, T.to_numpy(), truth))
        forests["depth"].append(max(one.get_depth() for one in model.estimators_))
        forests["leaves"].append(max(one.get_n_leaves() for one in model.estimators_))
        forests["importances"].append(model.feature_importances_)
    size = f"{len(X)} x {X.shape[1]}"
    print(f"\n== {name}: {size}, {n_splits} splits, {n_trees} trees a collection")
    print(f"trees on the frontier: {min(sizes)} to {max(sizes)}, mean {np.mean(sizes):.1f}")
    rows = [_line(method, runs) for method, runs in kept.items()]
    rows.append(_forest_line(forests))
    show("sections 3.3 to 3.5 (AUC on test rows)", HEAD, rows)
    print(percent_line(kept, firsts))
    print(f"Pareto, best AUC chosen on the test rows instead: {np.mean(best_on_test):.3f}")
    rows = [(m, *(spread([r[k] for r in runs]) for k in range(4))) for m, runs in again.items()]
    show("section 2.5: half of the training rows, then all (raw distance)", AGAIN, rows)
    table = [
        (place, one, f"{share:.1%}")
        for place, one, share in collection_facts(firsts).most_chosen(2)
    ]
    show("table 3: features chosen first, all trees of all splits", ("", "feature", "share"), table)
    print(upper_splits(chosen[0]))
    return {"again": again, "run": chosen[0], "sizes": sizes, "kept": kept, "forests": forests}


def percent_line(kept, trees):
    """Figure 4, right: mean distances in percent of one bound, that of the deepest tree."""
    depth = max(tree.depth for tree in trees)
    bound = 2**depth * (2 * depth + 1)
    ends = ("Pareto, best AUC", "Pareto, least distance", "cross-validated CART")
    shares = [f"{name} {100 * np.mean([r[1] for r in kept[name]]) / bound:.3f}" for name in ends]
    return f"distance in % of the bound at depth {depth}: " + ", ".join(shares)


def mean_choice(run):
    """The tree that equation 4, second form, chooses."""
    return run.trees_[choose(run.candidates_, run.frontier_, "mean", 0.0)]


def upper_splits(run):
    """Figure 7: root and its children of the tree that equation 4 chooses, with their shares."""
    tree = mean_choice(run)
    lines = ["figure 7: upper splits of the tree that equation 4 (mean) chooses, first split"]
    for place, node in (("root", 0), ("left", tree.left[0]), ("right", tree.right[0])):
        share = f"{tree.weight[node] / tree.weight[0]:.0%} of the rows" if node >= 0 else "none"
        text = f"class {tree.label[node]}" if node < 0 or tree.is_leaf[node] else None
        text = text or f"{tree.space[int(tree.feature[node])].name} <= {tree.threshold[node]:.4g}"
        lines.append(f"{place:>6}: {text}, {share}")
    return "\n".join(lines)


def _line(method, runs):
    importances = np.stack([gini_importance(tree) for *_, tree in runs])
    return (
        method,
        spread([run[0] for run in runs]),
        spread([run[1] for run in runs]),
        spread([tree.depth for *_, tree in runs]),
        spread([tree.n_leaves for *_, tree in runs]),
        float(importances.std(axis=0).mean()),
        f"{_n_top(importances)}",
    )


def _forest_line(found):
    importances = np.stack(found["importances"])
    return (
        "random forest (largest tree)",
        spread(found["AUC"]),
        "-",
        spread(found["depth"]),
        spread(found["leaves"]),
        float(importances.std(axis=0).mean()),
        f"{_n_top(importances)}",
    )


def _n_top(importances):
    return len({j for row in importances for j in np.argsort(-row)[:3] if row[j] > 0})
