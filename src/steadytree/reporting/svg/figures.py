"""Figures: the charts of reports and comparisons, from their plain values."""

from typing import Any

from markupsafe import Markup

from steadytree.reporting.formatting import COLUMNS, percent_text, value_text
from steadytree.reporting.svg.canvas import N_COLOURS, Axis, frame_picture
from steadytree.reporting.svg.charts import (
    Point,
    Series,
    Strip,
    curve,
    heat,
    scatter,
    strips,
)

SPLITS = {"root": "first split", "left": "next, if yes", "right": "next, if no"}
FARTHEST = 4.0  # times the budget that a curve is drawn to
GREY = 7


def certified_curve(robustness: dict[str, Any], kind: str = "tree") -> Markup:
    """Certified accuracy by size of perturbation, beside the majority baseline."""
    sizes, shares = robustness["curve"]["size"], robustness["curve"]["certified_accuracy"]
    budget = robustness["perturbation"].get("budget")
    row = robustness["perturbation"].get("scope", "row") == "row"
    most = FARTHEST * budget if budget and row else sizes[-1]
    kept = [(x, y) for x, y in zip(sizes, shares, strict=True) if x <= most]
    kept.append((most, kept[-1][1]))
    x, y = zip(*kept, strict=True)
    baseline = next(r["value"] for r in robustness["readings"] if r["name"] == "majority baseline")
    series = [
        Series(f"this {kind}", x, y, steps=True),
        Series("majority class", (0.0, most), (baseline,) * 2, colour=GREY),
    ]
    label = "size of perturbation" + (" (1 is the stated one)" if budget == 1 and row else "")
    up = Axis.over([0.0, 1.0], "certified accuracy", percent=True)
    return frame_picture(
        curve(series, Axis.over([0.0, most or 1.0], label), up), "Certified accuracy"
    )


def separation_curve(separation: dict[str, Any]) -> Markup:
    """Share of rows whose nearest row of another class is at least so far away."""
    x, y = separation["nearest_other_class"], separation["share"]
    pairs = [(a, b) for a, b in zip(x, y, strict=True) if a is not None] or [(0.0, 0.0)]
    x, y = zip(*pairs, strict=True)
    across = Axis.over([0.0, max(x)], "distance to the nearest row of another class")
    up = Axis.over([0.0, 1.0], "share of rows", percent=True)
    line = Series("rows", x, y, steps=True)
    return frame_picture(curve([line], across, up), "Distance of rows to another class")


def distance_strip(stability: dict[str, Any]) -> Markup:
    """Path distances of retrained trees, each a line."""
    found = stability["distances"]
    most = max(*found, 1e-9)
    ends = "0: same tree", f"{most:.3g}"
    strip = Strip("retrained trees", found, 0.0, most, (), f"{len(found)} trees", *ends)
    return frame_picture(strips([strip]), "Path distances of retrained trees")


def first_splits(stability: dict[str, Any]) -> Markup:
    """How often each feature is used in the first splits."""
    first = stability["first"]
    heads = [SPLITS[place] for place in first["places"]]
    return frame_picture(
        heat(first["features"], heads, first["shares"]), "Features of the first splits"
    )


def threshold_chart(thresholds: list[dict[str, Any]], kind: str = "tree") -> Markup:
    """Thresholds of the features that retrained trees or risk scores use."""
    return frame_picture(strips(threshold_strips(thresholds, kind)), "Thresholds by feature")


def threshold_strips(thresholds: list[dict[str, Any]], kind: str = "tree") -> list[Strip]:
    """One strip a feature, with the share of models that use it."""
    return [
        Strip(
            one["feature"],
            one["cuts"],
            one["low"],
            one["high"],
            one["own"],
            f"{percent_text(one['share'])} of {kind}s",
            one["low_text"],
            one["high_text"],
        )
        for one in thresholds
    ]


def epsilon_chart(privacy: dict[str, Any]) -> Markup:
    """Accuracy against epsilon, whiskers from the lowest to the highest of several seeds."""
    points = privacy["curve"]
    x = [point["epsilon"] for point in points]
    line = Series(
        "private tree",
        x,
        [point["accuracy"] for point in points],
        [point["least"] for point in points],
        [point["greatest"] for point in points],
        dots=True,
    )
    ends = [*line.low, *line.high]  # type: ignore[misc]
    up = Axis.over(ends, "accuracy on held-out rows", percent=True)
    return frame_picture(
        curve([line], Axis.over_ratios(x, "epsilon"), up), "Accuracy against epsilon"
    )


def calibration_chart(found: dict[str, Any], kind: str = "tree") -> Markup:
    """Observed frequency against predicted probability; on the diagonal they agree."""
    bins = found["bins"]
    line = Series(
        f"this {kind}",
        [one["stated"] for one in bins],
        [one["observed"] for one in bins],
        [one["interval"][0] for one in bins],
        [one["interval"][1] for one in bins],
        dots=True,
        line=False,
    )
    equal = Series("well calibrated", (0.0, 1.0), (0.0, 1.0), colour=GREY)
    across = Axis.over([0.0, 1.0], "predicted probability", percent=True)
    up = Axis.over([0.0, 1.0], "observed frequency", percent=True)
    return frame_picture(curve([line, equal], across, up), "Calibration")


NAMES = ("retraining distance", "changed answers")
FARTHEST_COMPARED = 3.0  # times the budget that a curve is drawn to


def comparison_pictures(formatted: dict[str, Any]) -> list[tuple[str, Markup]]:
    """Captions and pictures of a comparison."""
    learners = formatted["learners"]
    captions = {
        "retraining distance": "Trees: accurate and stable is up and to the left. "
        "A larger point is a larger model.",
        "changed answers": "All learners: how often predictions change on retraining.",
    }
    found = []
    for key in NAMES:
        shown = [one for one in learners if key in one["readings"]]
        if len(shown) > 1:
            found.append((captions[key], _scatter(learners, key)))
    budget = formatted["perturbation"].get("budget")
    if budget and len(learners) <= 8:
        found.append(("Certified accuracy by size of perturbation.", _curves(learners, budget)))
    return found


def _scatter(learners: list[dict[str, Any]], key: str) -> Markup:
    label = COLUMNS[key][0]
    points = []
    for place, one in enumerate(learners):
        measurements = one["readings"]
        if key not in measurements:
            continue
        right, size = measurements["accuracy"], measurements["size"]
        note = (
            f"{one['name']}: accuracy {value_text('accuracy', right['value'])}, {label} "
            f"{value_text(key, measurements[key]['value'])}, {size['value']:g} {size['unit']}"
        )
        interval = tuple(right["interval"])
        points.append(
            Point(
                one["name"],
                measurements[key]["value"],
                right["value"],
                size["value"],
                y_interval=interval,
                colour=place % N_COLOURS,
                note=note,
            )
        )
    ends = [end for point in points for end in point.y_interval or ()]
    across = Axis.over(
        [0.0, *(point.x * 1.08 for point in points)], label, percent=key == "changed answers"
    )
    up = Axis.over(ends, "accuracy", percent=True)
    return frame_picture(scatter(points, across, up), f"Accuracy against {label}")


def _curves(learners: list[dict[str, Any]], budget: float) -> Markup:
    most = FARTHEST_COMPARED * budget
    series = []
    for place, one in enumerate(learners):
        pairs = zip(one["curve"]["size"], one["curve"]["certified_accuracy"], strict=True)
        kept = [(x, y) for x, y in pairs if x <= most] or [(0.0, 0.0)]
        kept.append((most, kept[-1][1]))
        x, y = zip(*kept, strict=True)
        series.append(Series(one["name"], x, y, steps=True, colour=place % N_COLOURS))
    values = [value for one in series for value in one.y]
    across = Axis.over([0.0, most], "size of perturbation (1 is the stated one)")
    up = Axis.over([min(values), max(values)], "certified accuracy", percent=True)
    return frame_picture(curve(series, across, up), "Certified accuracy by size of perturbation")
