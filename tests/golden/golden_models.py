"""Trees and cards as text and hashes that do not depend on the machine."""

import hashlib
import json
import math

import numpy as np

import steadytree as st


def plain(values, digits=9):
    """A number or array as nested lists of text with so many significant digits."""
    if isinstance(values, np.ndarray):
        return [plain(item, digits) for item in values]
    if isinstance(values, float | np.floating):
        return f"{float(values) + 0.0:.{digits}g}"
    return values.item() if isinstance(values, np.generic) else values


def digest(content):
    text = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def tree_line(model):
    """Size and hash of a tree: its questions, shares, weights and classes."""
    tree = st.as_tree(model)
    content = {
        "names": [str(name) for name in tree.space.names],
        "classes": [str(label) for label in tree.classes],
        "note": tree.note,
    }
    for name in ("feature", "threshold", "left", "right", "value", "weight", "missing_left"):
        content[name] = plain(np.asarray(getattr(tree, name)))
    content["subset"] = plain(np.asarray(tree.subset))
    return f"{tree.n_leaves} leaves, depth {tree.depth}, {digest(content)}"


def card_line(model):
    """Size and hash of a card; its fitted risks with fewer digits, being found by iteration."""
    card = model.card_
    content = {
        "texts": card.texts(),
        "classes": [str(label) for label in card.classes],
        "points": plain(np.asarray(card.points)),
        "offset": plain(np.asarray(card.offset)),
        "risk": plain(np.array([card.slope, card.intercept], float), 4),
    }
    return f"{card.n_conditions} conditions, {digest(content)}"


def lines(found):
    """One line for each name."""
    return "\n".join(f"{name}: {value}" for name, value in found.items())


def rounded(value, digits=9):
    """Plain values with numbers of so many significant digits, as another machine finds them."""
    if isinstance(value, dict):
        return {key: rounded(item, digits) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item, digits) for item in value]
    if isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.{digits}g}") + 0.0  # no minus zero
    return value


# ---- models that several tests look at ----
def tree_of(rows, **changes):
    parameters = {"max_depth": 3, "epsilon": 0.1, "random_state": 0, **changes}
    return st.StableTreeClassifier(**parameters).fit(rows.X, rows.y)


def card_of(rows):
    fixed = {"noise": 0.01, "gamma": 0.01, "n_rounds": 6, "max_conditions": 4}
    return st.RiskScoreClassifier("logistic", **fixed, random_state=0).fit(rows.X, rows.y)
