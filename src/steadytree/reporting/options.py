"""ReportOptions: the one list of the options of a report, its limits and its sign-off."""

import datetime
import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from steadytree._base.progress import OnProgress
from steadytree.data.dataset import Dataset
from steadytree.data.parts import Parts
from steadytree.data.schema import Schema
from steadytree.models.tree import Tree
from steadytree.privacy.ledger import Ledger
from steadytree.reporting.data_set import Origin
from steadytree.robustness.perturbation import Perturbation

PASS, FAIL, UNMEASURED = "pass", "fail", "not measured"


class Rule(NamedTuple):
    """A limit that may be stated: its meaning, and the measurement it is about."""

    meaning: str
    section: str = ""  # empty where `_figures` has the value
    measurement: str = ""
    is_share: bool = True
    scale: float = 1.0  # of the measurement


RULES = {
    "min_accuracy": Rule("share of rows predicted correctly", "accuracy", "accuracy"),
    "min_balanced_accuracy": Rule("mean recall over the classes", "accuracy", "balanced accuracy"),
    "min_auc": Rule("area under the ROC curve", "accuracy", "AUC", False),
    "max_leaves": Rule("number of leaves", "complexity", "leaves", False),
    "max_depth": Rule("depth of the tree", "complexity", "depth", False),
    "max_sensitivity": Rule(
        "mean change of the tree when one row is left out",
        "stability",
        "average sensitivity",
        False,
    ),
    "max_changed_trees": Rule(
        "rows whose removal changes the tree", "stability", "changed trees", scale=0.01
    ),
    "max_retraining_distance": Rule(
        "mean path distance to retrained trees", "refits", "retraining distance", False
    ),
    "min_same_answers": Rule(
        "rows with the same prediction after retraining", "refits", "same answers", scale=0.01
    ),
    "max_flips": Rule("predictions that differ from the previous tree"),
    "max_change_distance": Rule("path distance to the previous tree", is_share=False),
    "min_worst_case_accuracy": Rule(
        "accuracy under the worst perturbation", "robustness", "worst-case accuracy"
    ),
    "min_separateness": Rule("highest accuracy any model can reach", "separation", "separateness"),
    "max_calibration_error": Rule(
        "mean difference of predicted probability and observed frequency",
        "calibration",
        "calibration error",
    ),
    "min_ks": Rule("largest difference of sensitivity and false-positive rate", "validation", "KS"),
    "min_gini": Rule("2 AUC - 1", "validation", "Gini", False),
    "min_calibration_slope": Rule(
        "slope of outcomes on risks; 1 is best", "validation", "calibration slope", False
    ),
    "max_calibration_slope": Rule(
        "slope of outcomes on risks; 1 is best", "validation", "calibration slope", False
    ),
    "min_group_accuracy": Rule("accuracy of the worst group"),
    "max_group_gap": Rule("difference in accuracy between groups"),
    "max_epsilon": Rule("privacy budget spent", is_share=False),
    "max_recall_gap": Rule("difference in recall between groups"),
    "max_false_positive_gap": Rule("difference in the false-positive rate between groups"),
    "max_precision_gap": Rule("difference in precision between groups"),
    "max_calibration_gap": Rule("difference in calibration between groups"),
    "min_recall": Rule("lowest recall of a class"),
    "min_leaf_rows": Rule("training rows of the smallest leaf", is_share=False),
    "max_tiny_leaf_share": Rule("rows decided by leaves of fewer than 5 training rows"),
    "max_changed_decisions": Rule("predictions changed by retraining"),
    "max_robustness_loss": Rule("accuracy lost under the worst perturbation"),
    "max_protected_columns": Rule("columns used that look protected", is_share=False),
    "max_single_column_auc": Rule("AUC of the best column by itself"),
    "max_outlier_noise": Rule("2 % of a column's range against its usual spread", is_share=False),
    "max_drift": Rule("population stability index against the training rows", is_share=False),
}


@dataclass(frozen=True)
class Limits:
    """Limits by name: numbers, or shares such as "5%"."""

    values: dict[str, float]

    @classmethod
    def of(cls, given: Any) -> "Limits | None":
        """From a mapping, a TOML file, or as they are; None stays None.

        A file has lines such as ``min_accuracy = "90%"``, perhaps in a table ``[limits]``.
        """
        if given is None or isinstance(given, Limits):
            return given
        found, source = _read(given, "limits")
        table = found.pop("limits", {})
        if not isinstance(table, dict):
            raise ValueError(f"{source}: limits must be a table of limits, got {table!r}.")
        return cls._checked(found | table, source)

    @classmethod
    def _checked(cls, given: Mapping[str, Any], source: str) -> "Limits":
        for name in given:
            if name not in RULES:
                close = difflib.get_close_matches(str(name), RULES, n=1, cutoff=0.6)
                known = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(RULES)}."
                raise ValueError(f"{source}: unknown limit {str(name)!r}: {known}")
        if not given:
            raise ValueError(f"{source}: no limit is stated; known are {', '.join(RULES)}.")
        return cls({name: _number(name, value, source) for name, value in given.items()})

    def check(self, data: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Whether the figures of a report meet the limits, one plain dict each."""
        return [_verdict(name, limit, data) for name, limit in self.values.items()]


def _number(name: str, value: Any, source: str) -> float:
    text = str(value).strip()
    bare = text.removesuffix("%")
    try:
        number = float(bare) / (100 if bare != text else 1)
    except ValueError:
        number = -1.0
    share = RULES[name].is_share
    if isinstance(value, bool) or not 0 <= number < float("inf") or (share and number > 1):
        kind = "a share such as 5% or 0.05" if share else "a number of at least 0"
        raise ValueError(f"{source}: {name} must be {kind}, got {value!r}.")
    return number


def _figures(data: Mapping[str, Any]) -> dict[str, float | None]:
    """Figures that are no measurement of a section, by their limit; None without the section."""
    change, privacy, groups = data["change"] or {}, data["privacy"] or {}, data["groups"]
    screened = data["screening"]
    rows = change.get("rows")
    return {
        "max_flips": None if rows is None else rows["n_flipped"] / rows["n_rows"],
        "max_change_distance": change.get("distance"),
        "max_epsilon": privacy.get("epsilon"),
        "min_group_accuracy": min((one["readings"][0]["value"] for one in groups), default=None),
        "max_group_gap": max((one["gap"] for one in groups), default=None),
        "max_recall_gap": _gap(groups, "recall"),
        "max_false_positive_gap": _gap(groups, "false-positive rate"),
        "max_precision_gap": _gap(groups, "precision"),
        "max_calibration_gap": _gap(groups, "calibration"),
        "min_recall": (screened["recall"] or {}).get("value"),
        "min_leaf_rows": screened["leaf_rows"],
        "max_tiny_leaf_share": screened["tiny_leaf_share"],
        "max_changed_decisions": (data["stability"] or {}).get("changed_decisions"),
        "max_robustness_loss": (screened["robustness"] or {}).get("value"),
        "max_protected_columns": len(screened["protected"]),
        "max_single_column_auc": (screened["leakage"] or {}).get("value"),
        "max_outlier_noise": (screened["outliers"] or {}).get("value"),
        "max_drift": (screened["drift"] or {}).get("value"),
    }


def _gap(groups: list[dict[str, Any]], metric: str) -> float | None:
    """The largest gap of a metric over all groupings; None where no two groups are large enough."""
    gaps = [gap["value"] for one in groups for gap in one["gaps"] if gap["name"] == metric]
    return max(gaps, default=None)


def _verdict(name: str, limit: float, data: Mapping[str, Any]) -> dict[str, Any]:
    rule, least = RULES[name], name.startswith("min_")
    listed = {one["name"]: one["value"] for one in data["readings"].get(rule.section, ())}
    value = listed.get(rule.measurement) if rule.section else _figures(data)[name]
    if value is None:
        verdict = UNMEASURED
    else:
        value *= rule.scale
        good = value >= limit - 1e-12 if least else value <= limit + 1e-12
        verdict = PASS if good else FAIL
    way = "at least" if least else "at most"
    return {
        "name": name,
        "meaning": rule.meaning,
        "way": way,
        "limit": limit,
        "value": value,
        "verdict": verdict,
        "shown_limit": f"{way} {_text(limit, rule)}",
        "shown": "–" if value is None else _text(value, rule),
    }


def _text(value: float, rule: Rule) -> str:
    return f"{100 * value:.1f} %" if rule.is_share else f"{value:.3g}"


@dataclass(frozen=True)
class Signature:
    """Who signs; the date is empty until it is signed."""

    name: str
    role: str = ""
    date: str = ""


@dataclass(frozen=True)
class SignOff:
    """What a committee writes on a report: for what the model is used, and who decided so."""

    title: str = ""
    owner: str = ""
    intended_use: str = ""
    version: str = ""
    decision: str = ""
    signatures: tuple[Signature, ...] = ()

    @classmethod
    def of(cls, given: Any) -> "SignOff | None":
        """From a mapping, a TOML file, or as it is; None stays None."""
        if given is None or isinstance(given, SignOff):
            return given
        return cls._checked(*_read(given, "sign_off"))

    @classmethod
    def _checked(cls, given: Mapping[str, Any], source: str) -> "SignOff":
        texts = _texts(given, cls, source, skip="signatures")
        listed = given.get("signatures", [])
        if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
            raise ValueError(f"{source}: signatures must be tables [[signatures]], got {listed!r}.")
        signed = [_texts(one, Signature, f"{source}: signatures") for one in listed]
        if any("name" not in one for one in signed):
            raise ValueError(f"{source}: each of the signatures needs a name.")
        return cls(**texts, signatures=tuple(Signature(**one) for one in signed))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def _texts(given: Mapping[str, Any], kind: Any, source: str, skip: str = "") -> dict[str, str]:
    """Texts and dates of a table, whose keys are checked."""
    known = [item.name for item in fields(kind)]
    for name, value in given.items():
        if name not in known:
            raise ValueError(f"{source}: unknown key {name!r}: known are {', '.join(known)}.")
        if name != skip and not isinstance(value, str | int | float | datetime.date):
            raise ValueError(f"{source}: {name} must be text, got {value!r}.")
    return {name: str(value).strip() for name, value in given.items() if name != skip}


def _read(given: Any, name: str) -> tuple[dict[str, Any], str]:
    """A mapping or the content of a TOML file, and what errors call it."""
    if isinstance(given, Mapping):
        return dict(given), name
    if not isinstance(given, str | PathLike):
        raise TypeError(f"{name} must be a mapping or a TOML file, got {type(given).__name__}.")
    try:
        return tomllib.loads(Path(given).read_text("utf-8-sig")), str(given)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{str(given)!r} is not a valid TOML file: {error}") from None


@dataclass(frozen=True, eq=False)
class ReportOptions:
    """Everything besides model and rows; made by `report` and the command, read by the sections.

    All of it may be absent: a section is left out where what it needs was not given.
    """

    title: str | None = None
    date: str | None = None  # today where it is not given
    origin: Origin = field(default_factory=Origin)  # where data and model came from
    previous: Any = None  # the tree in use so far
    learner: Any = None  # unfitted learner that gave the model, for retraining
    parts: Parts | None = None  # all rows, where those in memory are a sample of them
    sampled: str = ""  # which sample that is
    train: Dataset | None = None  # the rows that the model was fitted on
    whole: Tree | None = None  # what the learner fits to all of them, where it is known
    perturbation: Perturbation | None = None  # by default 2 % of each column's usual range
    limits: Limits | None = None
    positive: Any = None  # the class that is the event; by default the second of two
    groups: Mapping[str, Any] = field(default_factory=dict)  # labels of the rows, by name
    protected: Sequence[str] = ()  # groups that nobody asked for
    sign_off: "SignOff | None" = None
    scorecard: Any = None  # Scorecard or fitted RiskScoreClassifier, shown beside the tree
    ledger: Ledger | None = None
    schema: Schema | None = None  # declared columns, for accuracy against epsilon
    comparison: Mapping[str, Any] | None = None  # `Comparison.formatted`
    quick: bool = False  # leave out the slow sections
    seed: int = 0
    on_progress: OnProgress = field(default=lambda message, share=None: None)
    # for `report_file`, which fits what was not given
    learner_name: str | None = None  # "greedy", or a learner that `compare` knows
    max_leaf_nodes: int = 8  # of a steady tree
    max_depth: int | None = None  # 5 where the tree is not steady
    criterion: str = "gini"
    compared_learners: Sequence[str] = ()
    comparison_file: str | PathLike[str] | None = None  # a page that `compare` wrote
    n_jobs: int = 1
    command: str = ""
