"""The section "Validation" of a report: ranking, calibration slope, cut-offs and usefulness."""

from typing import Any

from steadytree._base.exceptions import UnsuitableDataError
from steadytree.data.dataset import Sampled
from steadytree.metrics.accuracy import answer_rows
from steadytree.metrics.validation import validate_answers
from steadytree.models.scorecard import as_scorecard
from steadytree.reporting.formatting import label_text, plain, plain_measurements
from steadytree.reporting.options import ReportOptions
from steadytree.stability.optimism import optimism

MOST_ROWS, REFITS = 1_000, 5  # the budget of refits for the optimism
SEVERAL = (
    "The model has {} classes. Ranking, cut-offs and usefulness are about one event: "
    "steadytree.metrics.validation.validate(model, X, y, positive=...) measures one class against "
    "the others."
)
ONE_CLASS = "All rows are of one class, so there is nothing to rank and no error to count."
ANSWERS_ONLY = "The model gives predictions and no risks."
SAMPLED = "All models compared are fitted to this sample: on all rows the optimism is smaller."


def build_validation(model: Any, X: Any, y: Any, options: ReportOptions) -> dict[str, Any]:
    """Figures of the risk of the second of two classes; else a sentence that says why not."""
    found = answer_rows(model, X, y)
    scorecard = as_scorecard(model)
    why = ""
    if len(found.classes) != 2:
        why = SEVERAL.format(len(found.classes))
    elif len(set(found.truth.tolist())) < 2:
        why = ONE_CLASS
    elif scorecard is not None and not scorecard.gives_risks:
        why = ANSWERS_ONLY
    if why:
        return {"why_not": why, "readings": []}
    result = validate_answers(found)
    return {
        "why_not": "",
        "readings": plain_measurements(result.measurements()),
        "optimism": None if options.quick else _optimism(options),
        **plain(result.to_dict()),
        "label": label_text(result.label),
    }


def _optimism(options: ReportOptions) -> dict[str, Any] | None:
    """Figures corrected by refits to bootstrap samples.

    None without learner and training rows, and where rows held out show the same directly.
    """
    if options.learner is None or options.train is None or options.origin.seen is False:
        return None
    rows = Sampled.of(options.train, options.train.labels, MOST_ROWS, options.seed)
    try:
        found = optimism(
            options.learner, rows.features, rows.labels, REFITS, random_state=options.seed
        )
    except UnsuitableDataError:  # a learner that cannot take a sample of the rows
        return None
    note = f"{rows.note} {SAMPLED}" if rows.note else ""
    readings = plain_measurements(found.measurements())
    return {"n_refits": REFITS, "note": note, "readings": readings}
