"""The ways of learning a tree that the study compares; each returns fitted models by name."""

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

from steadytree.stability.pareto_tree import ParetoTreeClassifier

GRID = {"max_depth": list(range(3, 13)), "min_samples_leaf": [3, 5, 10, 30, 50]}


def cross_validated(X, y, seed, grid=GRID):
    """CART with depth and leaf size from five folds, by AUC."""
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    search = GridSearchCV(
        DecisionTreeClassifier(random_state=seed), grid, scoring=scoring_of(y), cv=folds
    )
    return search.fit(X, y).best_estimator_


def forest(X, y, seed):
    return RandomForestClassifier(n_estimators=100, random_state=seed).fit(X, y)


def pareto(X, y, seed, n_trees=100, **options):
    """One run; its collections serve every way of choosing."""
    published = {"select": "knee", "refit": False} | options
    return ParetoTreeClassifier(n_trees=n_trees, random_state=seed, **published).fit(X, y)


def chosen_trees(model):
    """The two ends of the frontier, the knee, and the nearest within 0.01 of the best score."""
    from steadytree.stability.bootstrap import choose

    columns, frontier = model.candidates_, model.frontier_
    picks = {
        "Pareto, best AUC": choose(columns, frontier, 0.0, 0.0),
        "Pareto, least distance": choose(columns, frontier, 1.0, 0.0),
        "Pareto, knee": choose(columns, frontier, "knee", 0.0),
        "Pareto, 0.01 tolerance": choose(columns, frontier, "tolerance", 0.01),
    }
    return {name: model.trees_[place] for name, place in picks.items()}


def size_matched(X, y, tree, seed):
    """Plain CART with no more depth and no more leaves than a given tree."""
    depth, leaves = max(tree.depth, 1), max(tree.n_leaves, 2)
    return DecisionTreeClassifier(max_depth=depth, max_leaf_nodes=leaves, random_state=seed).fit(
        X, y
    )


def scoring_of(y):
    return "roc_auc" if len(np.unique(y)) == 2 else "roc_auc_ovr"
