"""The table of a comparison: its figures as text, ready to be shown."""

from typing import Any

from steadytree.reporting.wording import one_line

HIGH, LOW, NEITHER = 1, -1, 0
SHARES = ("accuracy", "certified accuracy", "worst-case accuracy", "changed answers")
# heading, which direction is better, and the meaning
COLUMNS: dict[str, tuple[str, int, str]] = {
    "accuracy": ("accuracy", HIGH, "share of held-out rows predicted correctly"),
    "AUC": ("AUC", HIGH, "probability that rows of two classes are ranked in the right order"),
    "size": ("size", NEITHER, "leaves of a tree, conditions of a risk score"),
    "sensitivity": (
        "sensitivity",
        LOW,
        "mean change of the tree when one row is left out, 0 to 1",
    ),
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


def comparison_words(data: dict[str, Any]) -> dict[str, Any]:
    """The figures with a table of texts.

    Parameters
    ----------
    data : dict
        What ``Results.to_dict`` returned.

    Returns
    -------
    dict with headline, columns, rows, and all of `data`
    """
    learners = data["learners"]
    there = [key for key in COLUMNS if key == "privacy" or _any(learners, key)]
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
    return data | {"headline": _headline(data), "columns": columns, "rows": rows}


def _any(learners: list[dict[str, Any]], key: str) -> bool:
    return any(key in learner["readings"] for learner in learners)


def _best(learners: list[dict[str, Any]], key: str) -> float | None:
    values = [one["readings"][key]["value"] for one in learners if key in one["readings"]]
    way = COLUMNS[key][1]
    if len(values) < 2 or way == NEITHER or len(set(values)) == 1:
        return None
    return max(values) if way == HIGH else min(values)


def _cell(learner: dict[str, Any], key: str, best: float | None) -> dict[str, Any]:
    if key == "privacy":
        epsilon = learner["epsilon"]
        return {
            "shown": "none" if epsilon is None else f"ε = {epsilon:g}",
            "best": False,
            "interval": "",
        }
    reading = learner["readings"].get(key)
    if reading is None:
        return {"shown": "–", "best": False, "interval": ""}
    shown = value_text(key, reading["value"]) + _unit(reading)
    if key == "sensitivity" and not learner["exact_sensitivity"]:
        shown = f"≈ {shown}"
    interval = reading["interval"]
    within = " to ".join(value_text(key, end) for end in interval or ())
    return {"shown": shown, "best": reading["value"] == best, "interval": within}


def value_text(key: str, value: float) -> str:
    """A figure of the table as text.

    Examples
    --------
    >>> value_text("accuracy", 0.93456), value_text("fit time", 0.0123)
    ('93.5 %', '0.012')
    """
    if key in SHARES:
        return f"{100 * value:.1f} %"
    if key in ("size", "retraining distance"):
        return f"{value:.1f}".removesuffix(".0")
    return f"{value:.2g}" if key in ("fit time", "sensitivity") else f"{value:.3f}"


def _unit(reading: dict[str, Any]) -> str:
    return f" {reading['unit']}" if reading["unit"] else ""


def _headline(data: dict[str, Any]) -> str:
    learners = data["learners"]

    def best_by(key: str, way: int) -> str:
        there = [one for one in learners if key in one["readings"]]
        chosen = max(there, key=lambda one: way * one["readings"][key]["value"])
        return f"{chosen['name']} ({value_text(key, chosen['readings'][key]['value'])})"

    parts = [f"Most accurate: {best_by('accuracy', HIGH)}"]
    if _any(learners, "worst-case accuracy"):
        parts.append(f"most accurate in the worst case: {best_by('worst-case accuracy', HIGH)}")
    parts.append(f"fewest predictions change on retraining: {best_by('changed answers', LOW)}")
    return "; ".join(parts) + "."
