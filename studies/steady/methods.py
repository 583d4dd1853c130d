"""The methods of the study. Each takes a fold's rows and returns a `Tree` over the raw columns."""

import numpy as np
from peers import fit_elsewhere
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier

import steadytree as st

SIZES = (4, 6, 8, 12)
USUAL = 8
# at equal numbers of leaves, then at the size that each chooses or has by default
SIZED = ("cart", "steady")
OTHERS = ("cart, size by cross-validation", "cart, pruned by cross-validation", "stable", "pareto")
PEERS = ("hierarchical shrinkage", "optimal")
# CART's usual guard against leaves of one row; with few rows it would not reach 12 leaves
LEAST = 5


def methods(others, peers):
    """Pairs of a method's name and its number of leaves (None where it chooses)."""
    sized = [(name, leaves) for leaves in SIZES for name in SIZED]
    return [*sized, *((n, None) for n in others), *((n, USUAL) for n in peers)]


def fit(name, leaves, case, train):
    """Fit one method on the training rows of a fold."""
    X, y = case.X.iloc[train], case.y[train]
    if name == "steady":
        return st.SteadyTreeClassifier(max_leaf_nodes=leaves).fit(X, y).tree_
    if name == "stable":
        return st.StableTreeClassifier().fit(X, y).tree_
    if name == "pareto":
        return st.ParetoTreeClassifier().fit(X, y).tree_
    numbers = case.encoded.numbers[train]
    if name in PEERS:
        nodes = fit_elsewhere(name, leaves, numbers, y)
    else:
        nodes = _nodes(_cart(name, leaves, numbers, y), case.n_classes)
    return case.encoded.tree(case.space, np.arange(case.n_classes), nodes)


def _cart(name, leaves, numbers, y):
    least = LEAST if len(y) >= 200 else 2
    cart = DecisionTreeClassifier(min_samples_leaf=least, random_state=0)
    if name == "cart":
        return cart.set_params(max_leaf_nodes=leaves).fit(numbers, y)
    if name == "cart, size by cross-validation":
        grid = {"max_leaf_nodes": list(range(2, 13))}
    else:
        cart = DecisionTreeClassifier(random_state=0)
        alphas = np.unique(cart.cost_complexity_pruning_path(numbers, y).ccp_alphas.clip(0))
        thinned = alphas[np.linspace(0, len(alphas) - 1, 25).round().astype(int)]
        grid = {"ccp_alpha": np.unique(thinned).tolist()}
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    return GridSearchCV(cart, grid, cv=folds).fit(numbers, y).best_estimator_


def _nodes(model, n_classes):
    tree = model.tree_
    value = np.zeros((tree.node_count, n_classes))
    value[:, model.classes_] = tree.value[:, 0]
    return {
        "feature": tree.feature,
        "threshold": tree.threshold,
        "left": tree.children_left,
        "right": tree.children_right,
        "value": value,
        "weight": tree.weighted_n_node_samples,
    }
