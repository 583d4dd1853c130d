"""Limits: stated requirements on a model, and whether it meets them."""

import difflib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

AT_LEAST, AT_MOST = "at least", "at most"
PASS, FAIL, UNMEASURED = "pass", "fail", "not measured"


@dataclass(frozen=True)
class Rule:
    """A limit that may be stated: its direction, how its figure is found, and its meaning."""

    way: str
    find: Callable[[Mapping[str, Any]], float | None]
    meaning: str
    is_share: bool = True


def _measured(section: str, name: str, scale: float = 1.0) -> Callable[[Any], float | None]:
    def find(data: Mapping[str, Any]) -> float | None:
        listed = data["readings"].get(section, ())
        found = [one["value"] for one in listed if one["name"] == name]
        return found[0] * scale if found and found[0] is not None else None

    return find


def _flips(data: Mapping[str, Any]) -> float | None:
    change = data["change"]
    rows = None if change is None else change["rows"]
    return None if rows is None else rows["n_flipped"] / rows["n_rows"]


def _change_distance(data: Mapping[str, Any]) -> float | None:
    return None if data["change"] is None else data["change"]["distance"]


def _epsilon(data: Mapping[str, Any]) -> float | None:
    privacy = data["privacy"]
    return None if privacy is None else privacy["epsilon"]


def _least_group(data: Mapping[str, Any]) -> float | None:
    values = [one["readings"][0]["value"] for one in data["groups"]]
    return min(values) if values else None


def _gap(data: Mapping[str, Any]) -> float | None:
    return max((one["gap"] for one in data["groups"]), default=None)


RULES: dict[str, Rule] = {
    "min_accuracy": Rule(
        AT_LEAST, _measured("accuracy", "accuracy"), "share of rows predicted correctly"
    ),
    "min_balanced_accuracy": Rule(
        AT_LEAST, _measured("accuracy", "balanced accuracy"), "mean recall over the classes"
    ),
    "min_auc": Rule(AT_LEAST, _measured("accuracy", "AUC"), "area under the ROC curve", False),
    "max_leaves": Rule(AT_MOST, _measured("complexity", "leaves"), "number of leaves", False),
    "max_depth": Rule(AT_MOST, _measured("complexity", "depth"), "depth of the tree", False),
    "max_sensitivity": Rule(
        AT_MOST,
        _measured("stability", "average sensitivity"),
        "mean change of the tree when one row is left out",
        False,
    ),
    "max_changed_trees": Rule(
        AT_MOST,
        _measured("stability", "changed trees", 0.01),
        "rows whose removal changes the tree",
    ),
    "max_retraining_distance": Rule(
        AT_MOST,
        _measured("refits", "retraining distance"),
        "mean path distance to retrained trees",
        False,
    ),
    "min_same_answers": Rule(
        AT_LEAST,
        _measured("refits", "same answers", 0.01),
        "rows with the same prediction after retraining",
    ),
    "max_flips": Rule(AT_MOST, _flips, "predictions that differ from the previous tree"),
    "max_change_distance": Rule(
        AT_MOST, _change_distance, "path distance to the previous tree", False
    ),
    "min_worst_case_accuracy": Rule(
        AT_LEAST,
        _measured("robustness", "worst-case accuracy"),
        "accuracy under the worst perturbation",
    ),
    "min_separateness": Rule(
        AT_LEAST, _measured("separation", "separateness"), "highest accuracy any model can reach"
    ),
    "max_calibration_error": Rule(
        AT_MOST,
        _measured("calibration", "calibration error"),
        "mean difference of predicted probability and observed frequency",
    ),
    "min_group_accuracy": Rule(AT_LEAST, _least_group, "accuracy of the worst group"),
    "max_group_gap": Rule(AT_MOST, _gap, "difference in accuracy between groups"),
    "max_epsilon": Rule(AT_MOST, _epsilon, "privacy budget spent", False),
}


@dataclass(frozen=True)
class Limits:
    """Limits by name: numbers, or shares such as "5%"."""

    values: dict[str, float]

    @classmethod
    def of(cls, given: Any) -> "Limits | None":
        """From a mapping, a TOML file, or as they are; None stays None."""
        if given is None or isinstance(given, Limits):
            return given
        if isinstance(given, Mapping):
            return cls._checked(given, "limits")
        if isinstance(given, str | PathLike):
            return cls.from_toml(given)
        raise TypeError(f"limits must be a mapping or a TOML file, got {type(given).__name__}.")

    @classmethod
    def from_toml(cls, path: str | PathLike[str]) -> "Limits":
        """Read a file of lines such as ``min_accuracy = "90%"``."""
        try:
            text = Path(path).read_text("utf-8-sig")
            given = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"{str(path)!r} is not a valid TOML file: {error}") from None
        table = given.pop("limits", {})
        if not isinstance(table, dict):
            raise ValueError(f"{path}: limits must be a table of limits, got {table!r}.")
        return cls._checked(given | table, str(path))

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


def _verdict(name: str, limit: float, data: Mapping[str, Any]) -> dict[str, Any]:
    rule = RULES[name]
    value = rule.find(data)
    if value is None:
        verdict = UNMEASURED
    else:
        good = value >= limit - 1e-12 if rule.way == AT_LEAST else value <= limit + 1e-12
        verdict = PASS if good else FAIL
    return {
        "name": name,
        "meaning": rule.meaning,
        "way": rule.way,
        "limit": limit,
        "value": value,
        "verdict": verdict,
        "shown_limit": f"{rule.way} {_text(limit, rule)}",
        "shown": "–" if value is None else _text(value, rule),
    }


def _text(value: float, rule: Rule) -> str:
    return f"{100 * value:.1f} %" if rule.is_share else f"{value:.3g}"
