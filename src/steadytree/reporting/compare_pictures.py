"""Compare pictures: learners as points and their certified accuracy as curves."""

from typing import Any

from steadytree.reporting.axes import Axis
from steadytree.reporting.compare_words import value_text
from steadytree.reporting.curve_svg import Series, draw_curve
from steadytree.reporting.palette import N_COLOURS
from steadytree.reporting.picture import Picture
from steadytree.reporting.scatter_svg import Point, draw_scatter

NAMES = ("retraining distance", "changed answers")
FARTHEST = 3.0  # times the budget that a curve is drawn to


def comparison_pictures(words: dict[str, Any]) -> list[tuple[str, Picture]]:
    """Captions and pictures of a comparison."""
    learners = words["learners"]
    captions = {
        "retraining distance": "Trees: right and steady is up and to the left. "
        "A larger point is a larger model.",
        "changed answers": "All learners: how often answers change on retraining.",
    }
    found = []
    for key in NAMES:
        shown = [one for one in learners if key in one["readings"]]
        if len(shown) > 1:
            found.append((captions[key], _scatter(learners, key)))
    budget = words["perturbation"].get("budget")
    if budget and len(learners) <= 8:
        found.append(("Right and provably stays so, by size of move.", _curves(learners, budget)))
    return found


def _scatter(learners: list[dict[str, Any]], key: str) -> Picture:
    points = []
    for place, one in enumerate(learners):
        readings = one["readings"]
        if key not in readings:
            continue
        right, size = readings["accuracy"], readings["size"]
        note = (
            f"{one['name']}: accuracy {value_text('accuracy', right['value'])}, {key} "
            f"{value_text(key, readings[key]['value'])}, {size['value']:g} {size['unit']}"
        )
        interval = tuple(right["interval"])
        points.append(
            Point(
                one["name"],
                readings[key]["value"],
                right["value"],
                size["value"],
                y_interval=interval,
                colour=place % N_COLOURS,
                note=note,
            )
        )
    ends = [end for point in points for end in point.y_interval or ()]
    across = Axis.over(
        [0.0, *(point.x * 1.08 for point in points)], key, percent=key == "changed answers"
    )
    up = Axis.over(ends, "accuracy", percent=True)
    return draw_scatter(points, across, up, f"Accuracy against {key}")


def _curves(learners: list[dict[str, Any]], budget: float) -> Picture:
    most = FARTHEST * budget
    series = []
    for place, one in enumerate(learners):
        pairs = zip(one["curve"]["size"], one["curve"]["certified_accuracy"], strict=True)
        kept = [(x, y) for x, y in pairs if x <= most] or [(0.0, 0.0)]
        kept.append((most, kept[-1][1]))
        x, y = zip(*kept, strict=True)
        series.append(Series(one["name"], x, y, steps=True, colour=place % N_COLOURS))
    values = [value for one in series for value in one.y]
    across = Axis.over([0.0, most], "size of move (1 is the whole noise)")
    up = Axis.over([min(values), max(values)], "certified accuracy", percent=True)
    return draw_curve(series, across, up, "Certified accuracy by size of move")
