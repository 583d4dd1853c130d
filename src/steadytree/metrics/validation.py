"""Validation: ranking, calibration and usefulness of the risks of one class."""

from dataclasses import asdict, dataclass
from typing import Any

from numpy.typing import NDArray

from steadytree._base.notebook import Shown
from steadytree.data.labels import UNKNOWN, match_labels
from steadytree.data.table import quote
from steadytree.metrics.accuracy import Answers, answer_rows
from steadytree.metrics.calibration import CalibrationLine
from steadytree.metrics.measurement import Measurement
from steadytree.metrics.ranking import Cutoff, Ranking


@dataclass(frozen=True, eq=False, repr=False)
class Validation(Shown):
    """Predicted risks of one class, the event, beside what was observed."""

    label: Any  # the class that is the event
    ranking: Ranking
    line: CalibrationLine
    own: float | None  # the risk from which the model predicts the event; None where there is none

    @property
    def cutoffs(self) -> tuple[Cutoff, ...]:
        """A table of cut-offs, the lowest first."""
        return self.ranking.cutoffs(self.own)

    def measurements(self) -> tuple[Measurement, ...]:
        """The numbers with what they mean."""
        return self.ranking.measurements() + self.line.measurements()

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "label": str(self.label),
            "n_rows": self.ranking.n_rows,
            "n_events": self.ranking.n_events,
            "n_extreme": self.line.n_extreme,
            "curves": self.ranking.to_dict(),
            "decision_curve": self.ranking.decision_curve(),
            "cutoffs": [asdict(one) for one in self.cutoffs],
        }


def validate(model: Any, X: Any, y: Any, positive: Any = None) -> Validation:
    """Ranking, calibration and usefulness of predicted risks.

    Parameters
    ----------
    model : Tree, Scorecard, fitted learner, fitted scikit-learn tree, or any fitted classifier
        One that is no tree needs ``predict_proba`` and ``classes_``.
    X : array-like or frame of shape (n_rows, n_features)
        Rows the model was not fitted to: on its training rows every figure is too good.
    y : array-like of shape (n_rows,)
    positive : optional
        The class that is the event, against all others; needed with more than two classes. With
        two it is the second by default.

    Returns
    -------
    validation : Validation

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier(max_depth=1).fit([[0], [1], [1]], ["no", "yes", "no"])
    >>> found = validate(model, [[0], [0], [1], [1]], ["no", "yes", "yes", "yes"])
    >>> round(found.ranking.auc, 3), [one.sensitivity for one in found.cutoffs]
    (0.833, [1.0, 0.6666666666666666])
    """
    return validate_answers(answer_rows(model, X, y), positive)


def validate_answers(found: Answers, positive: Any = None) -> Validation:
    """As `validate`, of predictions that were made."""
    if found.counts is not None:
        raise TypeError(
            "validate needs the rows in memory: load them, or measure accuracy, calibration and "
            "groups, which count rows in files and of Dask."
        )
    index = event_index(found.classes, positive)
    risk, event = found.shares[:, index], found.truth == index
    predicted = found.answer == index
    own = float(risk[predicted].min()) if predicted.any() else None
    if own is not None and ((risk >= own) != predicted).any():
        own = None  # above two classes the class with the highest probability is predicted
    ranking = Ranking.of(risk, event)  # which says what is wrong where there is one class
    line = CalibrationLine.of(risk, event)
    return Validation(found.classes.tolist()[index], ranking, line, own)


def event_index(classes: NDArray[Any], positive: Any = None) -> int:
    """Index of the class that is the event: the second of two, or the one that is named."""
    known = classes.tolist()
    if positive is None:
        if len(known) == 2:
            return 1
        raise ValueError(
            f"positive must name one of the classes {quote(known)}: there are more than two."
        )
    index = match_labels([positive], known)[0]
    if index == UNKNOWN:
        raise ValueError(f"positive must be one of the classes {quote(known)}, got {positive!r}.")
    return int(index)
