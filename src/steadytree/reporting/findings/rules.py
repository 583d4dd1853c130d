"""Findings: what the measurements mean, in red, amber and green, without any limits."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from steadytree.reporting.findings.screening import TINY
from steadytree.reporting.formatting import percent_text
from steadytree.robustness.perturbation import NOISE_SHARE

RED, AMBER, GREEN = "red", "amber", "green"
LEVELS = (RED, AMBER, GREEN)


class Seen(NamedTuple):
    """A figure of the report, its sentence, and the mild end of its interval."""

    value: float
    figure: str
    sentence: str
    mild: float | None = None  # None where the figure is exact


class Check(NamedTuple):
    """One row of the table: when a figure is amber or red, why it matters, and what to do."""

    name: str
    limit: str  # its name in limits.toml
    amber: float  # the figure is worse than this
    red: float
    # where there is an interval, its mild end must be worse than these, too
    amber_proof: float | None
    red_proof: float | None
    high_is_bad: bool
    why: str
    do: str


NEVER = float("inf")
# Thresholds are conventions, not laws: 0.1 and 0.25 of the stability index are usual in credit
# scoring, 20 rows give a share an interval of about 40 points, all others were chosen by us.
CHECKS = (
    Check("training rows", "", 0.5, NEVER, None, None, True,
          "Accuracy on the rows of the fit is too optimistic.",
          "Evaluate the model on rows that were held out."),
    Check("accuracy", "min_accuracy", 0.0, -0.02, None, None, False,
          "The model is no better than always predicting one class.",
          "Do not use the model for decisions; look for better columns or another learner."),
    Check("AUC", "min_auc", 0.7, 0.6, None, None, False,
          "The model hardly ranks rows of one class above those of another.",
          "Look for better columns, or use the model only where ranking does not matter."),
    Check("recall", "min_recall", 0.5, 1 / 3, None, 0.5, False,
          "Most rows of this class are missed, whatever the accuracy says.",
          "Lower the decision threshold, weight the class (class_weight), or collect more of it."),
    Check("calibration", "max_calibration_error", 0.05, 0.10, 0.01, 0.03, True,
          "Decisions based on the predicted probabilities inherit this error.",
          "Fit the probabilities again on new rows, or use the predicted classes only."),
    Check("leaf rows", "min_leaf_rows", 20, -NEVER, None, None, False,
          "A rule based on few rows may be due to chance.",
          "Ask for fewer or larger leaves (max_leaf_nodes, min_samples_leaf)."),
    Check("tiny leaves", "max_tiny_leaf_share", 0.01, 0.05, None, None, True,
          "Leaves fitted to a handful of rows make predictions for many new ones.",
          "Ask for fewer or larger leaves (max_leaf_nodes, min_samples_leaf)."),
    Check("retraining", "max_changed_decisions", 0.05, 0.15, None, None, True,
          "A decision that depends on which rows were drawn is hard to defend.",
          "Use a steadier learner (SteadyTreeClassifier), a smaller tree, or more rows."),
    Check("robustness", "max_robustness_loss", 0.10, 0.25, None, None, True,
          "Small measurement errors or slightly misreported values change decisions.",
          "Measure these columns better, fit with noise in mind (RobustTreeClassifier), or state "
          "the noise that is realistic."),
    Check("group accuracy", "max_group_gap", 0.05, 0.15, 0.0, 0.05, True,
          "The model is wrong more often for one group than for another.",
          "Find out why (few rows, other base rates, a weak column) before people are affected."),
    Check("group recall", "max_recall_gap", 0.05, 0.15, 0.0, 0.05, True,
          "Cases of one group are missed more often than those of another.",
          "Find out why before people are affected; a limit can cap the gap."),
    Check("group false positives", "max_false_positive_gap", 0.05, 0.15, 0.0, 0.05, True,
          "One group is flagged wrongly more often than another.",
          "Find out why before people are affected; a limit can cap the gap."),
    Check("group calibration", "max_calibration_gap", 0.05, 0.15, 0.0, 0.05, True,
          "The same stated probability means different risks in different groups.",
          "Calibrate in each group, or leave out the columns that cause it."),
    Check("protected columns", "max_protected_columns", 0.5, NEVER, None, None, True,
          "Law or policy may forbid that a decision depends on such a column.",
          "Check that its use is allowed and wanted, or leave it out (--drop) and compare."),
    Check("leakage", "max_single_column_auc", 0.98, 0.995, None, None, True,
          "A column that nearly decides by itself is often recorded after the outcome.",
          "Check that its value is known at the time of the decision; if not, leave it out."),
    Check("outliers", "max_outlier_noise", 0.25, NEVER, None, None, True,
          "A few outliers stretch the range of a column far beyond most of its values.",
          "Look at them, and correct or leave out what was mistyped."),
    Check("drift", "max_drift", 0.10, 0.25, 0.0, 0.0, True,
          "What was measured at the fit need not hold for rows with another distribution.",
          "Find out what changed since the fit; retrain if it lasts."),
)  # fmt: skip


def make_findings(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Findings from the data of a report, the worst first; what was not measured gives none."""
    found = []
    for check in CHECKS:
        seen = FIGURES[check.name](data)
        if seen is None:
            continue
        found.append(
            {
                "name": check.name,
                "level": level_of(check, seen),
                "sentence": seen.sentence,
                "figure": seen.figure,
                "value": seen.value,
                "why": check.why,
                "do": check.do,
                "limit": check.limit,
            }
        )
    return sorted(found, key=lambda one: LEVELS.index(one["level"]))


def level_of(check: Check, seen: Seen) -> str:
    """The level of a figure: worse than a threshold, and surely so where proof is asked for."""
    sign = 1.0 if check.high_is_bad else -1.0

    def worse(limit: float, proof: float | None) -> bool:
        mild = seen.value if seen.mild is None else seen.mild
        return sign * seen.value > sign * limit and (proof is None or sign * mild > sign * proof)

    if worse(check.red, check.red_proof):
        return RED
    return AMBER if worse(check.amber, check.amber_proof) else GREEN


def _measured(data: Mapping[str, Any], name: str) -> dict[str, Any] | None:
    listed = data["readings"]["accuracy"]
    return next((one for one in listed if one["name"] == name), None)


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"


def _seen_rows(data: Mapping[str, Any]) -> Seen | None:
    if data["origin"]["seen"] is None:
        return None
    if data["origin"]["seen"]:
        return Seen(1.0, "yes", "These appear to be the rows that the model was fitted to.")
    return Seen(0.0, "no", "The rows were held out from the fit.")


def _accuracy(data: Mapping[str, Any]) -> Seen | None:
    own, base = (_measured(data, name) for name in ("accuracy", "majority baseline"))
    if own is None or base is None:
        return None
    return Seen(
        own["value"] - base["value"],
        own["shown"],
        f"The model is correct on {own['shown']} of the rows, always predicting the most frequent "
        f"class on {base['shown']}.",
    )


def _auc(data: Mapping[str, Any]) -> Seen | None:
    found = _measured(data, "AUC")
    if found is None:
        return None
    return Seen(
        found["value"], found["shown"], f"The area under the ROC curve is {found['shown']}."
    )


def _recall(data: Mapping[str, Any]) -> Seen | None:
    found = data["screening"]["recall"]
    if found is None:
        return None
    share = percent_text(found["value"])
    text = f"Of the {found['n_rows']:,} rows of “{found['label']}”, {share} are predicted as such."
    return Seen(found["value"], share, text, found["interval"][1])


def _calibration(data: Mapping[str, Any]) -> Seen | None:
    found = data["calibration"]
    if data["card"] is not None and data["tree"] is None and not data["screening"]["has_risks"]:
        return None  # predictions alone are no probabilities
    # of each bin, how far the stated probability lies outside the interval of the observed rate
    sure = sum(
        one["n_rows"]
        * max(one["interval"][0] - one["stated"], one["stated"] - one["interval"][1], 0)
        for one in found["bins"]
    ) / sum(one["n_rows"] for one in found["bins"])
    figure = _points(found["error"])
    text = f"Predicted probabilities and observed rates differ by {figure} on average."
    return Seen(found["error"], figure, text, sure)


def _leaf_rows(data: Mapping[str, Any]) -> Seen | None:
    n_rows = data["screening"]["leaf_rows"]
    if n_rows is None:
        return None
    many = "row" if n_rows == 1 else "rows"
    figure = f"{n_rows:,.4g} {many}"
    return Seen(n_rows, figure, f"The smallest leaf was made from {figure}.")


def _tiny_leaves(data: Mapping[str, Any]) -> Seen | None:
    share = data["screening"]["tiny_leaf_share"]
    if share is None:
        return None
    text = f"Leaves of fewer than {TINY} training rows decide on {percent_text(share)} of the rows."
    return Seen(share, percent_text(share), text)


def _retraining(data: Mapping[str, Any]) -> Seen | None:
    if data["stability"] is None:
        return None
    changed = data["stability"]["changed_decisions"]
    figure = f"{100 * changed:.1f} %"
    text = f"Retraining on nine tenths of the rows changes {figure} of their predictions."
    return Seen(changed, figure, text)


def _robustness(data: Mapping[str, Any]) -> Seen | None:
    found = data["screening"]["robustness"]
    if found is None:
        return None
    noise = "the stated perturbation" if data["robustness"]["stated"] else "changes of 2 %"
    start, worst = (f"{100 * found[key]:.1f} %" for key in ("accuracy", "worst"))
    by = [f"“{one['name']}” ({percent_text(one['share'])})" for one in found["columns"][:2]]
    text = f"Under {noise} accuracy falls from {start} to {worst} in the worst case"
    mostly = f", mostly by {' and '.join(by)}" if by else ""
    return Seen(found["value"], _points(found["value"]), f"{text}{mostly}.")


def _gap(metric: str, what: str) -> Callable[[Mapping[str, Any]], Seen | None]:
    def seen(data: Mapping[str, Any]) -> Seen | None:
        gaps = [
            (gap["is_clear"], gap["value"], one["column"], gap)
            for one in data["groups"]
            for gap in one["gaps"]
            if gap["name"] == metric
        ]
        if not gaps:
            return None
        is_clear, value, column, gap = max(gaps, key=lambda one: one[:2])
        chance = "" if is_clear else ", which may be chance"
        text = (
            f"By {column}, {what} differs by {_points(value)} between “{gap['high']}” "
            f"(higher) and “{gap['low']}”{chance}."
        )
        return Seen(value, _points(value), text, gap["interval"][0])

    return seen


def _protected(data: Mapping[str, Any]) -> Seen:
    names = data["screening"]["protected"]
    listed = ", ".join(f"“{name}”" for name in names)
    none = "No column that the model uses has a name that looks protected."
    text = f"The model uses {listed}, by name a protected attribute." if names else none
    return Seen(float(len(names)), f"{len(names)}", text)


def _leakage(data: Mapping[str, Any]) -> Seen | None:
    found = data["screening"]["leakage"]
    if found is None:
        return None
    figure = f"{found['value']:.3f}"
    text = f"By itself the best column, “{found['column']}”, ranks the classes with AUC {figure}."
    return Seen(found["value"], figure, text)


def _outliers(data: Mapping[str, Any]) -> Seen | None:
    found = data["screening"]["outliers"]
    if found is None:
        return None
    share = percent_text(found["value"])
    times = f"{found['value'] / NOISE_SHARE:,.1f}"
    name = found["column"]
    text = f"The range of “{name}” is {times} times as wide as the middle 90 % of its values."
    return Seen(found["value"], share, text)


def _drift(data: Mapping[str, Any]) -> Seen | None:
    found = data["screening"]["drift"]
    if found is None:
        return None
    figure = f"{found['value']:.3f}"
    what = found["what"] if found["what"] == "its leaves" else f"“{found['what']}”"
    text = f"Against the training rows, the stability index of {what} is {figure}."
    return Seen(found["value"], figure, text, found["low"])


FIGURES: dict[str, Callable[[Mapping[str, Any]], Seen | None]] = {
    "training rows": _seen_rows,
    "accuracy": _accuracy,
    "AUC": _auc,
    "recall": _recall,
    "calibration": _calibration,
    "leaf rows": _leaf_rows,
    "tiny leaves": _tiny_leaves,
    "retraining": _retraining,
    "robustness": _robustness,
    "group accuracy": _gap("accuracy", "accuracy"),
    "group recall": _gap("recall", "recall"),
    "group false positives": _gap("false-positive rate", "the false-positive rate"),
    "group calibration": _gap("calibration", "the observed rate less the predicted one"),
    "protected columns": _protected,
    "leakage": _leakage,
    "outliers": _outliers,
    "drift": _drift,
}
