"""Certify: how far inputs must move before the prediction of a tree or scorecard changes."""

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.clock import CLOCK, Clock, Limit
from steadytree._base.exceptions import NotATreeError, UnsuitableDataError
from steadytree._base.optional import PIPELINE, is_a
from steadytree._base.validation import Integer, Real
from steadytree.data.feature_space import FeatureSpace
from steadytree.data.parts import is_parted
from steadytree.data.table import Table, quote
from steadytree.metrics.accuracy import label_indices
from steadytree.models.base import check_weights
from steadytree.models.black_box import BlackBox
from steadytree.models.ensembles.ensemble import Ensemble, as_ensemble
from steadytree.models.files import opened
from steadytree.models.scorecard import Scorecard, as_scorecard
from steadytree.models.sklearn import as_tree, from_sklearn_for
from steadytree.models.tree import Tree
from steadytree.robustness.certificate import Certificate, EnsembleCertificate
from steadytree.robustness.moves import Moves
from steadytree.robustness.nearest import answers, nearest, unknown_flags
from steadytree.robustness.perturbation import Perturbation, check_integers
from steadytree.robustness.readings import recognise_one_hot
from steadytree.robustness.verify import verify

ENOUGH_ROWS = 20  # before columns are said to look like one-hot columns


def certify(
    model: Any,
    X: Any,
    y: Any,
    perturbation: Perturbation,
    sample_weight: Any = None,
    time_limit: float = math.inf,
    max_steps: int = 10_000,
) -> Certificate | EnsembleCertificate:
    """Exact size of the least move of each row that changes the prediction.

    A move may end at any float64 number (an integer in integer columns), and the model does predict
    another class at the witness of a row. Rows within a rounding of 1e-9 of the budget count as
    within it, so certified shares err on the safe side. No row's distance depends on other rows.

    A category that the model does not know goes where missing values go. It may turn into any known
    category at the cost of a changed one. Such categories, columns in which the noise is less than
    one step, and the like are warned of, and stand in `Certificate.notes`.

    A forest or boosted trees (extra ``ensembles``) are certified under a box, so the perturbation
    needs `radius` and a budget for each row. The result is an `EnsembleCertificate`: rows proven to
    keep their prediction, rows with a point in the box at which the model itself predicts another
    class, and rows that the limits left undecided.

    Parameters
    ----------
    model : Tree, Scorecard, fitted learner, fitted scikit-learn tree or pipeline, or path of a file
        Or a fitted forest, gradient boosting of scikit-learn, XGBoost or LightGBM, alone or at the
        end of a pipeline.
    X : array-like or frame of shape (n_rows, n_features)
        Which columns move in whole steps is described at `Perturbation`, parameter `whole`.
    y : array-like of shape (n_rows,)
        True classes. X may be a Parquet or Arrow file or a folder of such, y then being the name
        of the target, or both may be Dask collections: rows are certified part by part, for trees
        and risk scores of this package, and an entry of the result stands for all rows with the
        same distance.
    perturbation : Perturbation
    sample_weight : array-like of shape (n_rows,), optional
        A row of weight w counts as w rows. Of a shared budget each of them takes what it costs to
        move; of fractional weights any part may be moved.
    time_limit : float, default=inf
        Seconds after which an ensemble's remaining rows stay undecided.
    max_steps : int, default=10,000
        Steps of the search for each row of an ensemble; does not depend on the machine.

    Returns
    -------
    certificate : Certificate or EnsembleCertificate

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = [[0.0], [1.0], [4.0], [6.5]], ["no", "no", "yes", "yes"]
    >>> model = DecisionTreeClassifier().fit(X, y)
    >>> found = certify(model, X, y, Perturbation(radius={"x0": 2.0}))
    >>> found.worst_case_accuracy, found.certified_accuracy(0.5)
    (0.5, 1.0)
    >>> print(found.counterexamples(1)[0])
    row 2: 'yes' becomes 'no' at size 0.75: x0 from 4 to 2.5
    """
    if is_parted(X):
        from steadytree.robustness.part_certificate import certify_parts  # which certifies parts

        if sample_weight is not None:
            raise ValueError("sample_weight needs the rows in memory: leave it out, or load them.")
        model = opened(model)
        known = as_scorecard(model) or getattr(model, "tree_", model)
        found = certify_parts(known, X, y, perturbation)
    else:
        found = certificate_of(model, X, y, perturbation, sample_weight, time_limit, max_steps)
    for note in found.notes:
        warnings.warn(note, stacklevel=2)
    return found


def certificate_of(
    model: Any,
    X: Any,
    y: Any,
    perturbation: Perturbation,
    sample_weight: Any = None,
    time_limit: float = math.inf,
    max_steps: int = 10_000,
    clock: Clock = CLOCK,
) -> Any:
    """As `certify`, without warnings: for who shows the notes."""
    if not isinstance(perturbation, Perturbation):
        raise TypeError(f"perturbation must be a Perturbation, got {type(perturbation).__name__}.")
    Real(above=0).check(time_limit, "time_limit")
    Integer(1).check(max_steps, "max_steps")
    table, model = Table.read(X), opened(model)
    found = as_scorecard(model) or _tree_or_ensemble(model, table)
    # scikit-learn's trees, of single precision, and ensembles keep no kinds of columns
    learned = isinstance(found, Scorecard) or getattr(found, "single_precision", True) is False
    space = found.space.typed_like(table, fitted=learned)
    moves = perturbation.all_moves(space, table.names or ())
    rows, truth = labelled_rows(found, table, y, "certify")
    weight = check_weights(sample_weight, len(rows))
    weights = np.ones(len(rows)) if weight is None else weight
    check_integers(perturbation, found.space, rows)
    unknown = unknown_categories(found.space, table)
    allowed = space, moves, unknown
    notes = tuple(_notes(found, table, perturbation, moves, unknown))
    remarks = unknown, notes, _unused(found, perturbation)
    about = perturbation, found.space, found.classes
    if isinstance(found, Ensemble):
        limits = max_steps, Limit(time_limit, clock=clock)
        return _verified(found, table, (rows, truth, weights), about, allowed, limits, remarks)
    answer = answers(found, rows)
    if unknown and is_a(getattr(model, "best_estimator_", model), *PIPELINE):
        _check_unseen(model, found, table, answer)
    distance, witness = nearest(found, rows, answer, perturbation, allowed)
    other, reached = np.full(len(rows), -1), np.isfinite(distance)
    if reached.any():
        other[reached] = answers(found, witness[reached])
    return Certificate(*about, rows, witness, truth, answer, other, distance, weights, *remarks)


def _check_unseen(model: Any, tree: Any, table: Table, answer: NDArray[np.int64]) -> None:
    """Refuse rows with unseen categories that a pipeline sends elsewhere than its tree does."""
    own = label_indices(tree.classes, BlackBox(model, "").predict(table))
    wrong = np.flatnonzero(own != answer)
    if len(wrong):
        raise UnsuitableDataError(
            f"row {wrong[0]} holds a category that was not in training, and the pipeline predicts "
            "another class for it than for a missing value, which its tree cannot tell apart: "
            "leave such rows out, or correct the category."
        )


def _verified(
    ensemble: Ensemble,
    table: Table,
    labelled: tuple[Any, Any, Any],
    about: tuple[Perturbation, FeatureSpace, Any],
    allowed: tuple[FeatureSpace, Moves, Any],
    limits: tuple[int, Limit],
    remarks: tuple[Any, Any, Any],
) -> EnsembleCertificate:
    """The certificate of an ensemble; rows that are wrong as they are need no search."""
    rows, truth, weights = labelled
    noise, (space, moves, unknown) = about[0], allowed
    if noise.norm != "l_inf" or noise.scope != "row" or noise.together:
        raise UnsuitableDataError(
            "an ensemble is certified under a box of noise: state it by radius, with a budget for "
            "each row (scope='row') and no columns that move together."
        )
    answer = ensemble.predict(table)
    ensemble.check_answers(rows, answer)
    wanted = (answer == truth) & (weights > 0)
    strange = unknown_flags(unknown, rows.shape)
    findings, steps = verify(
        ensemble, table, rows, answer, wanted, noise, (space, moves, strange), limits
    )
    witness, other = np.full(rows.shape, np.nan), np.full(len(rows), -1)
    reached = [row for row, found in enumerate(findings) if found.end is not None]
    if reached:
        witness[reached] = [findings[row].end for row in reached]
        other[reached] = ensemble.predict(table.take(np.array(reached)), witness[reached])
    status: NDArray[Any] = np.array([found.status for found in findings])
    labels = truth, answer, other, status
    work = steps, limits[1].elapsed
    return EnsembleCertificate(*about, rows, witness, *labels, weights, *work, *remarks)


def unknown_categories(space: FeatureSpace, table: Table) -> dict[tuple[int, int], str]:
    """Categories that a space does not know, by row and column."""
    table, found = table.select(space.names), {}
    for j, column in enumerate(space):
        if column.is_categorical:
            text = table.text_for(j, column.index_of)
            strange = np.array([value not in column.index_of for value in text.values] + [False])
            for row in np.flatnonzero(strange[text.of_row]).tolist():
                found[row, j] = text.values[text.of_row[row]]
    return found


def _notes(
    model: Tree | Scorecard | Ensemble,
    table: Table,
    noise: Perturbation,
    moves: Moves,
    unknown: Mapping[tuple[int, int], str],
) -> list[str]:
    """What whoever reads the certificate must be remarks; it changes no number of it."""
    names, found = model.space.names, []
    for j in sorted({column for _, column in unknown}):
        texts = [text for (_, column), text in unknown.items() if column == j]
        found.append(
            f"column {names[j]!r}: the model does not know {quote(sorted(set(texts)))} "
            f"({len(texts)} row(s)). Such a category goes where missing values go, and may turn "
            "into any known one at the cost of a changed category."
        )
    if noise.scope == "row" and noise.budget is not None:
        stuck = moves.stuck(noise.spend(1.0))
        listed = [name for name, flag in zip(names, stuck, strict=True) if flag]
        if listed:
            found.append(
                f"the noise is less than one step of {quote(listed)}, whole numbers or categories, "
                "so none of these moves there: state at least one step, or leave columns that may "
                "hold fractions out of the perturbation's whole."
            )
    if not noise.one_hot and table.n_rows >= ENOUGH_ROWS:
        moved = {names[j] for j in np.flatnonzero(np.isfinite(np.minimum(moves.up, moves.down)))}
        for group in recognise_one_hot(table):
            if len(moved & set(group)) > 1:
                found.append(
                    f"{quote(group)} look like one-hot columns and move one by one here, to rows "
                    "that cannot be: declare them as one_hot of the perturbation."
                )
    return found


def _unused(model: Tree | Scorecard | Ensemble, noise: Perturbation) -> tuple[str, ...]:
    """Columns that the noise names and the model does not use."""
    used = {model.space.names[j] for j in used_columns(model)}
    groups = () if noise.one_hot == "auto" else noise.one_hot  # they move as one column
    used |= {name for group in groups if used & set(group) for name in group}
    given = (noise.radius, noise.step_cost, noise.change_cost)
    named = [name for one in given if isinstance(one, Mapping) for name in one]
    return tuple(name for name in dict.fromkeys(named) if name not in used)


def used_columns(model: Tree | Scorecard | Ensemble) -> list[int]:
    """Columns that some split or condition asks about."""
    if isinstance(model, Scorecard):
        return sorted({condition.feature for condition in model.conditions})
    return [int(j) for j in np.unique(model.feature[model.feature >= 0])]


def labelled_rows(
    model: Tree | Scorecard | Ensemble, X: Any, y: Any, purpose: str
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Encoded rows and their true classes; `purpose` is what needs at least one."""
    rows = np.asarray(model.space.encode(X), np.float64)
    truth = label_indices(model.classes, y)
    if len(rows) != len(truth):
        raise ValueError(f"X has {len(rows)} rows, but y has {len(truth)} labels.")
    if len(rows) == 0:
        raise ValueError(f"X and y have no rows: {purpose} needs at least one.")
    return rows, truth


def _tree_or_ensemble(model: Any, table: Table) -> Tree | Ensemble:
    try:
        tree = as_tree(model)
    except NotATreeError:
        inside = getattr(model, "best_estimator_", model)
        last = inside.steps[-1][1] if is_a(inside, *PIPELINE) else inside
        if is_a(last, "sklearn.tree", "DecisionTreeClassifier"):
            raise  # a tree behind steps that cannot be followed
        return as_ensemble(model, table)
    own = model is tree or getattr(model, "tree_", None) is tree
    return tree if own else from_sklearn_for(model, table)
