"""Random cases of certificates as users have them: fitted models, any types, stated noise.

What the noise is in units, and which columns move in whole steps, is worked out here from the
documentation alone, for comparison with what the package makes of it.
"""

import math

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

from steadytree.riskscore.risk_score import RiskScoreClassifier
from steadytree.robustness.perturbation import Perturbation
from steadytree.robustness.robust_tree import RobustTreeClassifier
from steadytree.stability.stable_tree import StableTreeClassifier
from tests.robustness.brute_force import Raw, around, is_missing

TRAINED, ASKED = 60, 8  # rows that a model is fitted on, and that are certified
MODELS = {
    "sklearn": lambda: DecisionTreeClassifier(max_leaf_nodes=6, random_state=0),
    "stable": lambda: StableTreeClassifier(3, 0, random_state=0),
    "robust": lambda: RobustTreeClassifier(
        2, Perturbation(radius=0.4), math.inf, n_thresholds=3, max_nodes=30
    ),
    "score": lambda: RiskScoreClassifier(noise=0, max_conditions=4, random_state=0),
}
WHOLE_TYPES = ("float64", "int64", "Int64")
FLAG_FORMS = ("int64", "float64", "bool", "boolean", "text", "digits")


def flag_in(form, values):
    """The same fact as numbers, bools or text."""
    if form == "text":
        return np.where(values == 1, "smokes", "does not").astype(object)
    if form == "digits":
        return values.astype(int).astype(str).astype(object)
    return pd.array(values, dtype=form)


def frame_of_people(rng, n, forms):
    """Numbers with decimals, whole numbers, a flag and text, some missing."""
    whole, flag, text, gaps = forms
    frame = pd.DataFrame({"bmi": rng.normal(2.0, 1.5, n).round(1)})
    visits = rng.integers(0, 6, n)
    frame["visits"] = pd.array(visits, dtype=whole)
    frame["flag"] = flag_in(flag, rng.integers(0, 2, n))
    if text:
        frame["job"] = rng.choice(["clerk", "miner", "nurse"], n).astype(object)
    for name in gaps:
        if frame[name].dtype in (np.dtype("int64"), np.dtype("bool")):
            continue
        frame.loc[rng.random(n) < 0.2, name] = None
    return frame


def label_of(rng, frame):
    flags = frame["flag"].isin(["smokes", "1", 1, True]).to_numpy()
    score = frame["bmi"].fillna(0.0).to_numpy(float) + 2.0 * flags
    score += frame["visits"].astype(float).fillna(0.0).to_numpy() - 2.5
    if "job" in frame:
        score += 1.5 * (frame["job"] == "miner").to_numpy()
    return np.where((score > 1.5) ^ (rng.random(len(frame)) < 0.15), "ill", "well")


def ends_of(model, name):
    """Values beside the thresholds of a column."""
    j = list(model.feature_names_in_).index(name)
    if hasattr(model, "card_"):
        at = [c.threshold for c in model.card_.conditions if c.feature == j]
        return [one for t in at if np.isfinite(t) for one in (t, np.nextafter(t, -np.inf))]
    at, single = model.tree_.threshold[model.tree_.feature == j], name_of(model) == "sklearn"
    return [end for t in at for end in around(t, single)]


def name_of(model):
    return "sklearn" if isinstance(model, DecisionTreeClassifier) else "own"


def kind_of(column, by_type, fitted):
    """What is known of a column of numbers: its kind, and the bounds that it has by itself."""
    flag = (0.0, 1.0)
    if by_type:
        if column.dtype in ("bool", "boolean"):
            return "whole", flag
        return ("whole" if column.dtype in ("int64", "Int64") else "number"), (-np.inf, np.inf)
    values = fitted.dropna().astype(float).to_numpy()
    if np.isin(values, flag).all():
        return "whole", flag
    return ("whole" if (values == np.floor(values)).all() else "number"), (-np.inf, np.inf)


def units_of(text, values):
    """A share of the range, or standard deviations, of a column in its units."""
    x = np.sort(np.array([float(v) for v in values if not is_missing(v)]))
    n, (amount, unit) = len(x), text.split()
    if unit == "sd":
        first, third = np.percentile(x, [25, 75])
        far = 3 * (third - first)
        near = [v for v in x if first - far <= v <= third + far] if far else x
        return float(amount) * np.std(near)
    for left_out in (max(1, int(0.025 * n)), 1):
        inside = x[left_out : n - left_out]
        if inside[-1] > inside[0]:
            break
    return float(amount) / 100 * (inside[-1] - inside[0])


def stated(rng, kind, trained, numbers):
    """Noise as it is stated, and the same in units."""
    names = list(trained)
    if kind == "percent":
        share = str(rng.choice(["5 %", "20 %", "60 %"]))
        moved = [name for name in numbers if name != "flag"]
        return {"radius": share}, {"radius": {n: units_of(share, trained[n]) for n in moved}}
    if kind == "mixed":
        texts = {name: str(rng.choice(["10 %", "0.5 sd", "1 sd"])) for name in numbers}
        given = {
            name: texts[name] if name in texts and rng.random() < 0.7 else 1.2 for name in names
        }
        units = {n: units_of(g, trained[n]) if isinstance(g, str) else g for n, g in given.items()}
        return {"radius": given}, {"radius": units}
    if kind == "wrong":
        most, some = int(rng.integers(1, 3)), [n for n in names if rng.random() < 0.8] or names[:1]
        others = {"radius": 1.5} if rng.integers(2) else {}
        counted = {"change_cost": dict.fromkeys(some, 1.0), "budget": float(most)}
        return {"wrong_values": most, "columns": some, **others}, {**counted, **others}
    if kind == "certainty":
        sure = {name: float(rng.choice([0.6, 0.9, 1.0])) for name in names}
        costs = {name: -math.log(1 - q) if q < 1 else math.inf for name, q in sure.items()}
        units = {"step_cost": costs, "budget": -math.log(0.8), "scope": "mean"}
        return {"certainty": sure, "confidence": 0.8}, units
    if kind == "readings":
        return measured_twice(rng, trained, numbers)
    cost = {name: float(rng.choice([0.3, 1.0, 2.5])) for name in names}
    return {kind: cost, "budget": 1.0}, {kind: cost, "budget": 1.0}


def measured_twice(rng, trained, numbers):
    """The least radius that covers four fifths of the differences between two readings."""
    second, radius = trained.copy(), {}
    for name in numbers:
        if name != "flag" and second[name].dtype == np.float64:
            second[name] += rng.normal(0, 0.8, len(second)).round(1)
    for name in trained:
        pairs = zip(trained[name], second[name], strict=True)
        known = [(a, b) for a, b in pairs if not (is_missing(a) or is_missing(b))]
        apart = sorted(abs(float(a) - float(b)) if name in numbers else a != b for a, b in known)
        radius[name] = float(apart[math.ceil((len(apart) + 1) * 0.8) - 1])
    return {"first": trained, "second": second, "coverage": 0.8}, {"radius": radius}


KINDS = ("percent", "mixed", "wrong", "certainty", "readings", "radius", "step_cost", "change_cost")


def perturbation_of(given, **others):
    """The perturbation by the way that it is stated."""
    given = {**given, **others}
    if "wrong_values" in given:
        return Perturbation.wrong_values(given.pop("wrong_values"), given.pop("columns"), **given)
    if "certainty" in given:
        return Perturbation.from_certainty(given.pop("certainty"), given.pop("confidence"), **given)
    if "first" in given:
        return Perturbation.from_readings(given.pop("first"), given.pop("second"), **given)
    return Perturbation(**given)


def restrictions(rng, asked, numbers):
    """Further parameters: frozen, one-sided, bounded and whole columns, values that may appear."""
    names, free = list(asked), [name for name in numbers if name != "flag"]
    found = {
        "frozen": [name for name in names if rng.random() < 0.1],
        "direction": {n: str(rng.choice(["up", "down"])) for n in numbers if rng.random() < 0.25},
        "bounds": {n: (-0.5, 4.0) for n in free if rng.random() < 0.25},
        "missing_cost": {n: float(rng.choice([0.0, 0.7])) for n in names if rng.random() < 0.4},
    }
    if rng.random() < 0.3:
        found["whole"] = [n for n in numbers if n != "bmi" and is_whole(asked[n])]
        found["whole"] = found["whole"] if rng.random() < 0.6 else []
    return found


def is_whole(column):
    values = column.dropna().astype(float)
    return bool((values == np.floor(values)).all())


def forms_of(rng, by_type):
    """Types of the columns, and those with missing values; scikit-learn takes numbers alone."""
    whole = str(rng.choice(WHOLE_TYPES[:2] if by_type else WHOLE_TYPES))
    flag = str(rng.choice(FLAG_FORMS[:4] if by_type else FLAG_FORMS))
    gaps = [name for name in ("bmi", "visits", "flag", "job") if rng.random() < 0.3]
    nullable = ["flag"] if flag == "boolean" else []
    gaps = [name for name in gaps if not by_type or name not in ("job", *nullable)]
    return whole, flag, not by_type, [name for name in gaps if name != "job" or not by_type]


def learned_case(rng, name):
    """A fitted model, rows to certify, their raw columns, the noise as stated, and in units."""
    by_type = name == "sklearn"
    forms = forms_of(rng, by_type)
    trained, asked = (frame_of_people(rng, n, forms) for n in (TRAINED, ASKED))
    model = MODELS[name]().fit(trained, label_of(rng, trained))
    if forms[0] == "float64" and rng.integers(2):  # was whole in training
        asked.loc[asked.index[::3], "visits"] += 0.5
    if "job" in asked:
        asked.loc[asked.index[1::4], "job"] = "Clerk "
    numbers = ["bmi", "visits", *(["flag"] if forms[1] in FLAG_FORMS[:4] else [])]
    given, units = stated(rng, str(rng.choice(KINDS)), trained, numbers)
    others = restrictions(rng, asked, numbers)
    raws = {}
    for column in asked:
        if column in numbers:
            kind, bounds = kind_of(asked[column], by_type, trained[column])
            if "whole" in others:
                kind = "whole" if column in others["whole"] else "number"
            raws[column] = Raw(kind, ends_of(model, column), bounds=bounds)
        else:
            known = sorted({value for value in trained[column] if not is_missing(value)})
            raws[column] = Raw("category", categories=known)
    noise = perturbation_of(given, **others).scaled_to(trained)
    return model, asked, raws, noise, Perturbation(**units, **others)
