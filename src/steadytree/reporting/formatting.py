"""Formatting: numbers, labels, measurements and comparisons as text and as plain values."""

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from steadytree.metrics.measurement import Measurement

SHARES = {  # read best in per cent
    "accuracy",
    "balanced accuracy",
    "calibration error",
    "calibration gap",
    "false-positive rate gap",
    "group gap",
    "least group accuracy",
    "linear separateness",
    "majority baseline",
    "precision gap",
    "recall gap",
    "separateness",
    "worst-case accuracy",
}


def number_text(value: float, tolerance: float) -> str:
    """A number with as few digits as stay within the tolerance."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    for digits in range(1, 18):  # 17 tell any two floats apart
        rounded = float(f"{value:.{digits}g}")
        if abs(rounded - value) <= tolerance:
            break
    return plain_text(rounded)


def percent_text(share: float) -> str:
    """A share in per cent, never rounded to 0 or 100 unless it is that."""
    rounded = f"{100 * share:.0f}"
    if rounded == "0" and share > 0:
        return "< 1 %"
    return "> 99 %" if rounded == "100" and share < 1 else f"{rounded} %"


def rows_text(count: int) -> str:
    """A number of rows."""
    return f"{count:,} row" if count == 1 else f"{count:,} rows"


def measurement_text(measurement: Measurement) -> str:
    """The value of a measurement, shares in per cent."""
    text = _value_text(measurement, measurement.value)
    return f"{text} {measurement.unit}" if measurement.unit else text


def interval_text(measurement: Measurement) -> str:
    """The interval of a measurement; empty where the value is exact."""
    if measurement.interval is None:
        return ""
    low, high = (_value_text(measurement, end) for end in measurement.interval)
    return f"{low} to {high}"


def _value_text(measurement: Measurement, value: float) -> str:
    if measurement.name in SHARES:
        return f"{100 * value:.1f} %"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def plain_text(value: float) -> str:
    """A number written out where it is short that way, else with an exponent."""
    if value.is_integer() and abs(value) < 1e15:
        return f"{int(value):,}" if abs(value) >= 10_000 else str(int(value))
    text = repr(value)
    if "e" in text and 1e-6 <= abs(value) < 1e15:
        text = f"{Decimal(text):f}"  # all its digits
    integer, point, part = text.partition(".")
    if point and "e" not in text and abs(value) >= 10_000:
        return f"{int(integer):,}.{part}"
    return text


def plain(value: Any) -> Any:
    """Arrays as lists, numpy numbers as Python's, infinity and nan as None."""
    if isinstance(value, Mapping):
        return {str(key): plain(inside) for key, inside in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(inside) for inside in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plain_measurements(listed: Iterable[Measurement]) -> list[dict[str, Any]]:
    """Measurements with their texts, as plain values."""
    return [
        plain(measurement.to_dict())
        | {
            "interval": None if measurement.interval is None else plain(measurement.interval),
            "shown": measurement_text(measurement),
            "shown_interval": interval_text(measurement),
        }
        for measurement in listed
    ]


def one_line(text: Any) -> str:
    r"""Text without line breaks and other characters that are not seen."""
    spaced = " ".join(str(text).split())
    return "".join(letter for letter in spaced if letter.isprintable())


def label_text(label: Any) -> str:
    """A class as it is shown; one without any letters too."""
    return one_line(label) or "(empty)"


def shorten(text: str, most: int) -> str:
    """Text of at most so many characters, the middle left out."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


HIGH, LOW, NEITHER = 1, -1, 0
COMPARED_SHARES = ("accuracy", "certified accuracy", "worst-case accuracy", "changed answers")
# heading, which direction is better, and the meaning
COLUMNS: dict[str, tuple[str, int, str]] = {
    "accuracy": ("accuracy", HIGH, "share of held-out rows predicted correctly"),
    "AUC": ("AUC", HIGH, "probability that rows of two classes are ranked in the right order"),
    "size": ("size", NEITHER, "leaves of a tree, bands of a risk score"),
    "sensitivity": ("sensitivity", LOW, "mean change of the tree when one row is left out, 0 to 1"),
    "changed answers": (
        "changed predictions",
        LOW,
        "rows whose prediction changes when the model is trained on other folds",
    ),
    "retraining distance": (
        "path distance",
        LOW,
        "mean path distance between trees trained on other folds",
    ),
    "certified accuracy": (
        "certified, half size",
        HIGH,
        "share correct, provably so under every perturbation of half the stated size",
    ),
    "worst-case accuracy": (
        "worst case",
        HIGH,
        "accuracy under the worst perturbation within the budget",
    ),
    "privacy": ("privacy", NEITHER, "epsilon of learners that are differentially private"),
    "fit time": ("fit time", LOW, "processor time of one fit"),
}


def format_comparison(data: dict[str, Any]) -> dict[str, Any]:
    """The figures with a table of texts."""
    learners = data["learners"]
    measured = {key for learner in learners for key in learner["readings"]} | {"privacy"}
    there = [key for key in COLUMNS if key in measured]
    best = {key: _best(learners, key) for key in there}
    rows = [
        {
            "name": one_line(learner["name"]),
            "description": one_line(learner["description"]),
            "cells": [_cell(learner, key, best[key]) for key in there],
            "notes": learner["notes"],
        }
        for learner in learners
    ]
    columns = [{"key": key, "head": COLUMNS[key][0], "meaning": COLUMNS[key][2]} for key in there]
    cautions = _comparison_cautions(learners)
    found = {"headline": _comparison_headline(data), "cautions": cautions}
    return data | found | {"columns": columns, "rows": rows}


def _comparison_cautions(learners: list[dict[str, Any]]) -> list[str]:
    """What the accuracies do not tell, and what a readable model gives up against an ensemble."""

    def interval(one: dict[str, Any]) -> tuple[float, float]:
        low, high = one["readings"]["accuracy"]["interval"]
        return low, high

    ranked = sorted(learners, key=lambda one: -one["readings"]["accuracy"]["value"])
    best = ranked[0]
    level = [one for one in ranked[1:] if interval(one)[1] >= interval(best)[0]]
    found = []
    if level:
        names = ", ".join(one_line(one["name"]) for one in level)
        found.append(
            f"The accuracy intervals of {one_line(best['name'])} and of {names} overlap: these "
            "rows do not tell which of them is more accurate."
        )
    readable = [one for one in ranked if "size" in one["readings"]]
    for ensemble in (one for one in ranked if "size" not in one["readings"] and readable):
        small = readable[0]
        more = ensemble["readings"]["accuracy"]["value"] - small["readings"]["accuracy"]["value"]
        way = "more" if more > 0 else "less"
        found.append(
            f"Price of being readable: {'' if more > 0 else 'none here, '}"
            f"{one_line(ensemble['name'])} is {100 * abs(more):.1f} points {way} accurate than "
            f"{one_line(small['name'])}, the most accurate readable model."
        )
    return found


def _best(learners: list[dict[str, Any]], key: str) -> float | None:
    values = [one["readings"][key]["value"] for one in learners if key in one["readings"]]
    way = COLUMNS[key][1]
    if len(values) < 2 or way == NEITHER or len(set(values)) == 1:
        return None
    return max(values) if way == HIGH else min(values)


def _cell(learner: dict[str, Any], key: str, best: float | None) -> dict[str, Any]:
    empty, measurement = {"shown": "–", "best": False, "interval": ""}, learner["readings"].get(key)
    if key == "privacy":
        epsilon = learner["epsilon"]
        return empty | {"shown": "none" if epsilon is None else f"ε = {epsilon:g}"}
    if measurement is None:
        return empty
    shown = f"{value_text(key, measurement['value'])} {measurement['unit']}".rstrip()
    if key == "sensitivity" and not learner["exact_sensitivity"]:
        shown = f"≈ {shown}"
    within = " to ".join(value_text(key, end) for end in measurement["interval"] or ())
    return {"shown": shown, "best": measurement["value"] == best, "interval": within}


def value_text(key: str, value: float) -> str:
    """A figure of the table as text."""
    if key in COMPARED_SHARES:
        return f"{100 * value:.1f} %"
    if key in ("size", "retraining distance"):
        return f"{value:.1f}".removesuffix(".0")
    return f"{value:.2g}" if key in ("fit time", "sensitivity") else f"{value:.3f}"


def _comparison_headline(data: dict[str, Any]) -> str:
    keys = ("accuracy", "worst-case accuracy", "changed answers")
    measured = {key: [one for one in data["learners"] if key in one["readings"]] for key in keys}

    def best_by(key: str, way: int) -> str:
        chosen = max(measured[key], key=lambda one: way * one["readings"][key]["value"])
        return f"{chosen['name']} ({value_text(key, chosen['readings'][key]['value'])})"

    parts = [f"Most accurate: {best_by('accuracy', HIGH)}"]
    if measured["worst-case accuracy"]:
        parts.append(f"most accurate in the worst case: {best_by('worst-case accuracy', HIGH)}")
    parts.append(f"fewest predictions change on retraining: {best_by('changed answers', LOW)}")
    return "; ".join(parts) + "."
