"""Explain: one row, its path, its probability, and the smallest changes of the prediction."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.intervals import wilson_interval
from steadytree._base.optional import is_a
from steadytree.data.column import Column
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.table import Table, quote, value_text
from steadytree.models.boxes import exact_thresholds
from steadytree.models.scorecard import Scorecard, as_scorecard
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree
from steadytree.models.variable import Variable
from steadytree.reporting.formatting import (
    label_text,
    number_text,
    one_line,
    percent_text,
    plain,
    plain_text,
)
from steadytree.reporting.html import render_explanation
from steadytree.reporting.svg.sheet import interval_of
from steadytree.reporting.wording import describe_split
from steadytree.robustness.certificate import Certificate, Step
from steadytree.robustness.certify import certificate_of, used_columns
from steadytree.robustness.perturbation import Perturbation

SHARES_OF_RANGE = (
    "Size is the sum over columns of the change as a share of the column's range; another "
    "category counts as 1."
)
STATED = "Size is that of the stated perturbation."


@dataclass(frozen=True)
class Stage:
    """One split on the path of a row, or its band in one variable of a risk score."""

    text: str
    holds: bool  # of a band always
    value: str  # of the row
    margin: float | None  # distance of the value to the nearest threshold; None where there is none
    margin_share: float | None  # the same as a share of the column's range
    points: int | None = None  # of a risk score's band, for the predicted class or the second


@dataclass(frozen=True)
class Change:
    """A smallest change of some columns that changes the prediction."""

    size: float
    decision: Any
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return f"{'; '.join(map(str, self.steps))} (size {self.size:.4g}): {self.decision}"


@dataclass(frozen=True, eq=False)
class Explanation:
    """The decision of a model on one row, and why."""

    decision: Any
    # probability of the decision, None where a risk score gives none; its 95 % interval from the
    # training rows of the leaf or of the total, None where those are not known
    probability: float | None
    interval: tuple[float, float] | None
    n_rows: float | None  # those training rows
    path: tuple[Stage, ...]
    # the least change first; then those of a single column, one a column, least first
    changes: tuple[Change, ...]
    measure: str  # what the size of a change is
    # tree: size of the least change into another leaf; infinite without one
    # risk score: points between its total and that of another decision
    inside: float
    kind: str  # "tree" or "card"
    previous: Any = None  # decision of the previous model
    previous_probability: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, with texts."""
        return {
            **plain(asdict(self)),
            "shown": label_text(self.decision),
            "shown_probability": self._probability_text(),
            "shown_inside": self._inside_text(),
            "shown_previous": self._previous_text(),
            "shown_changes": [_change_dict(one) for one in self.changes],
        }

    def _probability_text(self) -> str:
        if self.probability is None:
            return "This risk score gives no probabilities."
        text = f"Probability {percent_text(self.probability)}"
        if self.interval is None or self.n_rows is None:
            return text + "."
        low, high = map(percent_text, self.interval)
        whose = "leaf" if self.kind == "tree" else "total"
        return f"{text}; {low} to {high} by the {self.n_rows:,.6g} training rows of its {whose}."

    def _inside_text(self) -> str:
        if self.kind == "card":
            many = "point" if self.inside == 1 else "points"
            return f"Its total is {self.inside:g} {many} away from another decision."
        if np.isinf(self.inside):
            return "No allowed change leads to another leaf."
        near = self._nearest()
        return f"The smallest change into another leaf has size {self.inside:.4g}{near}."

    def _nearest(self) -> str:
        shares = [one.margin_share for one in self.path if one.margin_share is not None]
        if not shares:
            return ""
        near = next(one for one in self.path if one.margin_share == min(shares))
        margin = number_text(near.margin or 0.0, 1e-3 * (near.margin or 0.0))
        return f"; the nearest threshold on its path is {margin} away ({near.text})"

    def _previous_text(self) -> str:
        if self.previous is None:
            return ""
        share = self.previous_probability
        chance = "" if share is None else f" ({percent_text(share)})"
        same = "the same" if str(self.previous) == str(self.decision) else "another decision"
        return f"The previous model decided {label_text(self.previous)}{chance}: {same}."

    def __str__(self) -> str:
        lines = [f"{label_text(self.decision)}. {self._probability_text()}"]
        for one in self.path:
            answer = "? yes" if one.holds else "? no"
            if one.points is not None:
                answer = f", {one.points:+d}" if one.points else ", 0"
            lines.append(f"  {one.text}{answer} (it is {one.value})")
        lines.append(self._inside_text())
        if not self.changes:
            lines.append("No allowed change changes the prediction.")
        for k, change in enumerate(self.changes):
            head = "Smallest change of the prediction" if k == 0 else "or alone"
            lines.append(f"  {head}: {one_line(change)}")
        lines += [self._previous_text()] if self.previous is not None else []
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return render_explanation(self.to_dict())


def _change_dict(change: Change) -> dict[str, Any]:
    return {
        "size": change.size,
        "decision": label_text(change.decision),
        "steps": [one_line(step) for step in change.steps],
    }


def explain(
    model: Any,
    row: Any,
    *,
    perturbation: Perturbation | None = None,
    previous: Any = None,
) -> Explanation:
    """Explain the prediction for one row, with the smallest changes that would change it.

    The changes are exact: each changes the prediction, and no smaller allowed change does.

    Parameters
    ----------
    model : Tree, Scorecard, fitted learner or fitted scikit-learn tree
    row : mapping of names to values, sequence of values, or frame or array of one row
        A mapping may lack columns that the model does not use.
    perturbation : Perturbation, optional
        What changes cost, which columns are frozen, and which rise or fall only. By default every
        column may change, in shares of its range in the model; another category counts as 1.
        A scikit-learn tree knows no ranges but those of its thresholds: pass ``as_tree(model, X)``.
    previous : Tree, Scorecard, fitted learner or fitted scikit-learn tree, optional
        The model in use so far, to show its decision beside.

    Returns
    -------
    explanation : Explanation

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = [[0.0], [1.0], [4.0], [6.5]], ["no", "no", "yes", "yes"]
    >>> model = DecisionTreeClassifier().fit(X, y)
    >>> found = explain(model, [4.0], perturbation=Perturbation(step_cost={"x0": 1.0}))
    >>> found.decision, round(found.changes[0].size, 3)
    ('yes', 1.5)
    >>> print(found.changes[0])
    x0 from 4 to 2.5 (size 1.5): no
    """
    fitted = as_scorecard(model) or as_tree(model)
    table = one_row(row, fitted)
    measure = STATED if perturbation is not None else SHARES_OF_RANGE
    if perturbation is None:
        perturbation = range_costs(fitted.space)
    elif not isinstance(perturbation, Perturbation):
        raise TypeError(f"perturbation must be a Perturbation, got {type(perturbation).__name__}.")
    decision = fitted.predict(table)[0]
    # certify reads kinds of columns off a scikit-learn tree itself
    certified = model if is_a(model, "sklearn.tree", "DecisionTreeClassifier") else fitted
    least = certificate_of(certified, table, [decision], perturbation)
    x = least.rows[0]
    probability, interval, n_rows = _probability(fitted, x, int(least.answer[0]))
    if isinstance(fitted, Scorecard):
        kind, path, inside = "card", _bands(fitted, x), _lead(fitted, x)
    else:
        kind, path = "tree", _splits(fitted, x)
        inside = _to_leave(fitted, table, perturbation)
    return Explanation(
        decision=decision.item() if hasattr(decision, "item") else decision,
        probability=probability,
        interval=interval,
        n_rows=n_rows,
        path=tuple(path),
        changes=_changes(certified, fitted, table, least, perturbation),
        measure=measure,
        inside=inside,
        kind=kind,
        **({} if previous is None else _previous(previous, row)),
    )


def range_costs(space: FeatureSpace) -> Perturbation:
    """Every column may change: numbers in shares of their range, another category costs 1."""
    ranges = {
        column.name: column.high - column.low for column in space if not column.is_categorical
    }
    return Perturbation(
        step_cost={
            column.name: 1.0 / ranges[column.name] if ranges.get(column.name) else 1.0
            for column in space
        }
    )


def one_row(row: Any, model: Tree | Scorecard) -> Table:
    """A table of one row, whatever form the row has."""
    if not isinstance(row, Mapping) and getattr(row, "ndim", None) == 1 and hasattr(row, "to_dict"):
        row = row.to_dict()  # a series of a frame
    if isinstance(row, Mapping):
        return _named_row({str(name): value for name, value in row.items()}, model)
    if isinstance(row, Sequence | np.ndarray) and np.ndim(np.asarray(row, object)) == 1:
        row = np.array([list(row)], dtype=object)
    table = Table.read(row)
    if table.n_rows != 1:
        raise ValueError(f"row must hold one row, got {table.n_rows:,}: pass one of them.")
    return table


def _named_row(row: dict[str, Any], model: Tree | Scorecard) -> Table:
    names, used = model.space.names, used_columns(model)
    absent = [names[j] for j in used if names[j] not in row]
    if absent:
        raise ValueError(
            f"row lacks the column(s) {quote(absent)} that the model uses; it has {quote(row)}."
        )
    # columns that no split or condition uses may be left out
    return Table(names, [_named_value(column, row.get(column.name)) for column in model.space], {})


def _named_value(column: Column, value: Any) -> NDArray[Any]:
    """One value as a column of a table."""
    missing = value is None or type(value).__name__ == "NAType" or value != value
    if column.is_categorical:
        return np.array([None if missing else value_text(value)], dtype=object)
    if isinstance(value, str):
        raise ValueError(f"row: {column.name!r} holds numbers for the model, got {value!r}.")
    return np.array([np.nan if missing else value], dtype=np.float64)


def _changes(
    certified: Any, fitted: Tree | Scorecard, table: Table, least: Certificate, noise: Perturbation
) -> tuple[Change, ...]:
    """The least change of all, then the least of each column alone where that is another one."""
    found = _change(least)
    if found is None:
        return ()
    names, alone = fitted.space.names, []
    for j in used_columns(fitted):
        others = [name for name in names if name != names[j]]
        single = replace(noise, frozen=tuple({*noise.frozen, *others}))
        own = _change(certificate_of(certified, table, fitted.classes[least.answer], single))
        if own is not None and (own.size, own.steps) != (found.size, found.steps):
            alone.append(own)
    return (found, *sorted(alone, key=lambda one: one.size))


def _change(found: Certificate) -> Change | None:
    if np.isinf(found.distance[0]):
        return None
    example = found.counterexamples(1)[0]
    return Change(example.size, example.other, example.steps)


def _probability(
    model: Tree | Scorecard, x: NDArray[np.float64], label: int
) -> tuple[float | None, tuple[float, float] | None, float | None]:
    """Probability of the predicted class, its interval, and the training rows behind it."""
    if isinstance(model, Tree):
        leaf = int(model.apply_encoded(x[None])[0])
        share, n = float(model.value[leaf, label]), float(model.weight[leaf])
        return share, wilson_interval(share * n, n) if n > 0 else None, n
    total = model.holds_encoded(x[None]) @ model.points + model.offset
    risk = None
    if model.gives_risks:
        risk = float(model.risk(total[:, 0] if model.is_binary else total)[0, label])
    column, wanted = (0, 1) if model.is_binary else (label, label)
    name = model.classes[wanted]
    for one in model.risk_table.rows if model.risk_table is not None else ():
        if one.total == total[0, column] and str(one.label) == str(name):
            low, high = interval_of(model, one)
            return risk, (low, high) if wanted == label else (1 - high, 1 - low), one.n_rows
    return risk, None, None


def _splits(tree: Tree, x: NDArray[np.float64]) -> list[Stage]:
    found, leaf, exact = [], int(tree.apply_encoded(x[None])[0]), exact_thresholds(tree)
    path = tree.path(leaf)
    for node, below in itertools.pairwise(path):
        j = int(tree.feature[node])
        yes, at = bool(tree.left[node] == below), float(exact[node])
        text = describe_split(tree, node).text
        found.append(_stage(text, yes, tree.space, j, x[j], at, None))
    return found


def _bands(card: Scorecard, x: NDArray[np.float64]) -> list[Stage]:
    own, found = 0 if card.is_binary else int(card.answer_encoded(x[None])[0]), []
    for variable in card.variables:
        j, known = variable.feature, variable.thresholds
        band = int(variable.band_of(x[j : j + 1])[0])
        at = float(known[np.argmin(np.abs(known - x[j]))]) if len(known) else np.nan
        text, points = band_texts(variable)[band], int(variable.bands[band].points[own])
        stage = _stage(text, True, card.space, j, x[j], at, points)
        answer = variable.texts()[band]
        # a band of yes or no is the value itself, which stands in the row as 1 or 0
        found.append(replace(stage, value=answer) if answer in ("yes", "no") else stage)
    return found


def band_texts(variable: Variable) -> list[str]:
    """The bands of a variable as explanations name them."""
    return [one_line(f"{variable.name}: {text}") for text in variable.texts()]


def _stage(
    text: str, yes: bool, space: FeatureSpace, j: int, x: float, at: float, points: int | None
) -> Stage:
    column, margin, share = space[j], None, None
    if np.isfinite(at) and not np.isnan(x) and not column.is_categorical:
        margin = abs(float(x) - at)
        share = margin / (column.high - column.low) if column.high > column.low else None
    return Stage(text, yes, shown_value(space, j, x), margin, share, points)


def shown_value(space: FeatureSpace, j: int, x: float) -> str:
    """A value of an encoded row as text."""
    if np.isnan(x):
        return "missing"
    column = space[j]
    return label_text(column.categories[int(x)]) if column.is_categorical else plain_text(float(x))


def _to_leave(tree: Tree, table: Table, noise: Perturbation) -> float:
    """Size of the least change into another leaf: of the tree that tells the row's from others."""
    value = np.tile([0.0, 1.0], (tree.n_nodes, 1))
    value[tree.apply(table)[0]] = 1.0, 0.0
    named = replace(tree, classes=np.arange(2), value=value)
    return float(certificate_of(named, table, named.predict(table), noise).distance[0])


def _lead(card: Scorecard, x: NDArray[np.float64]) -> float:
    """Points that another class would have to gain to be predicted."""
    totals = (card.holds_encoded(x[None]) @ card.class_points + card.class_offset)[0]
    own = int(totals.argmax())
    needed = [totals[own] - totals[k] + (k > own) for k in range(len(totals)) if k != own]
    return float(min(needed))


def _previous(previous: Any, row: Any) -> dict[str, Any]:
    model = as_scorecard(previous) or as_tree(previous)
    table = one_row(row, model)
    decision = model.predict(table)[0]
    x = np.asarray(model.space.encode(table), np.float64)[0]
    label = model.classes.tolist().index(decision)
    plain_decision = decision.item() if hasattr(decision, "item") else decision
    probability = _probability(model, x, label)[0]
    return {"previous": plain_decision, "previous_probability": probability}
