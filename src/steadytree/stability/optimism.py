"""Optimism: how much better a learner looks on the rows it was fitted to."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.notebook import Shown
from steadytree._base.parallel import fan_out
from steadytree._base.validation import Integer
from steadytree.data.dataset import Dataset
from steadytree.metrics.accuracy import answer_rows
from steadytree.metrics.measurement import Measurement
from steadytree.metrics.validation import validate_answers
from steadytree.stability.removal import fit_again
from steadytree.stability.sensitivity import mean_interval

FIGURES = ("AUC", "Brier score", "calibration slope")
MEANINGS = (
    "AUC to expect on new rows",
    "Brier score to expect on new rows",
    "calibration slope to expect on new rows; below 1 the risks are too extreme",
)


@dataclass(frozen=True, eq=False, repr=False)
class Optimism(Shown):
    """Figures on the training rows, and how much of them is optimism (Harrell 1996)."""

    apparent: NDArray[np.float64]  # AUC, Brier score and calibration slope on the training rows
    # (n_refits, 3): figures of each refit on its own bootstrap sample less those on all rows
    differences: NDArray[np.float64]

    @property
    def corrected(self) -> NDArray[np.float64]:
        """Apparent figures less the mean optimism."""
        return self.apparent - np.nanmean(self.differences, axis=0)

    def measurements(self) -> tuple[Measurement, ...]:
        """Corrected figures; the interval is that of the mean over the refits, not over rows."""
        found = []
        for k, (name, meaning) in enumerate(zip(FIGURES, MEANINGS, strict=True)):
            own = self.differences[:, k][np.isfinite(self.differences[:, k])]
            if not len(own) or not np.isfinite(self.apparent[k]):
                continue
            low, high = mean_interval(own) if len(own) > 1 else (own[0], own[0])
            within = (float(self.apparent[k] - high), float(self.apparent[k] - low))
            shown = f"{meaning} (on the training rows {self.apparent[k]:.3g})"
            value = float(self.apparent[k] - own.mean())
            found.append(Measurement(f"corrected {name}", value, shown, within))
        return tuple(found)


def optimism(
    estimator: Any,
    X: Any,
    y: Any,
    repeats: int = 20,
    n_jobs: int | None = None,
    random_state: int = 0,
    positive: Any = None,
) -> Optimism:
    """Fit a learner again to bootstrap samples; how much better is it on its own sample?

    Parameters
    ----------
    estimator : learner, or any classifier with ``predict_proba``
        Fitted or not; it is not changed.
    X, y : training data of two classes
    repeats : int, default=20
        Refits: the budget of work.
    n_jobs : int or None, default=None
        Processes, as in joblib.
    random_state : int, default=0
        Which rows.
    positive : optional
        The class that is the event; the second by default.

    Returns
    -------
    optimism : Optimism
    """
    Integer(1).check(repeats, "repeats")
    data = Dataset.of(X, y)
    classes, truth = np.unique(data.labels, return_inverse=True)
    if len(classes) != 2:
        raise ValueError(f"optimism is measured with two classes, but y has {len(classes)}.")
    rng, samples = np.random.default_rng(random_state), list[NDArray[np.int64]]()
    while len(samples) < repeats:
        rows = np.sort(rng.integers(0, data.n_rows, data.n_rows))
        if 0 < truth[rows].sum() < data.n_rows:  # else there is nothing to fit
            samples.append(rows)
    whole = np.arange(data.n_rows)
    apparent, *_ = _both(whole, estimator, data, positive)
    pairs = fan_out(_both, samples, estimator, data, positive, n_jobs=n_jobs)
    return Optimism(apparent, np.array([own - on_all for own, on_all in pairs]))


def _both(
    rows: NDArray[np.int64], estimator: Any, data: Dataset, positive: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Figures of a model fitted to some rows: on these rows, and on all."""
    part = data.take(rows)
    fitted = fit_again(estimator, part.form_for(estimator), part.labels, part.weights)
    return _figures(fitted, part, positive), _figures(fitted, data, positive)


def _figures(fitted: Any, data: Dataset, positive: Any) -> NDArray[np.float64]:
    answers = answer_rows(fitted, data, data.labels).with_event(positive)
    found = validate_answers(answers)
    brier = float(np.mean((answers.shares[:, 1] - answers.truth) ** 2))
    slope = np.nan if found.line.slope is None else found.line.slope
    return np.array([found.ranking.auc, brier, slope])
