"""Compare pictures: learners as points and their certified accuracy as curves."""

from typing import Any

from steadytree.reporting.comparison_table import value_text
from steadytree.reporting.formatting import percent_text
from steadytree.reporting.svg.axes import Axis
from steadytree.reporting.svg.canvas import N_COLOURS, Picture
from steadytree.reporting.svg.charts import (
    Point,
    Series,
    Strip,
    draw_curve,
    draw_heat,
    draw_scatter,
    draw_strips,
)

PLACES = {"root": "first question", "left": "next, if yes", "right": "next, if no"}
FARTHEST = 4.0  # times the budget that a curve is drawn to
GREY = 7


def certified_curve(robustness: dict[str, Any], kind: str = "tree") -> Picture:
    """Certified accuracy by size of move, beside the most frequent answer."""
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
        Series("always the most frequent answer", (0.0, most), (baseline,) * 2, colour=GREY),
    ]
    label = "size of move" + (" (1 is the whole noise)" if budget == 1 and row else "")
    up = Axis.over([0.0, 1.0], "right, and stays so", percent=True)
    return draw_curve(series, Axis.over([0.0, most or 1.0], label), up, "Certified accuracy")


def separation_curve(separation: dict[str, Any]) -> Picture:
    """Share of rows whose nearest row of another class is at least so far away."""
    x, y = separation["nearest_other_class"], separation["share"]
    pairs = [(a, b) for a, b in zip(x, y, strict=True) if a is not None] or [(0.0, 0.0)]
    x, y = zip(*pairs, strict=True)
    across = Axis.over([0.0, max(x)], "distance to the nearest row of another class")
    up = Axis.over([0.0, 1.0], "share of rows", percent=True)
    line = Series("rows", x, y, steps=True)
    return draw_curve([line], across, up, "How far rows are from another class")


def distance_strip(stability: dict[str, Any]) -> Picture:
    """Distances of the trees learned again, each a line."""
    found = stability["distances"]
    most = max(*found, 1e-9)
    strip = Strip("trees learned again", found, 0.0, most, (), f"{len(found)} trees")
    shown = Strip(**{**vars(strip), "low_text": "0: same tree", "high_text": f"{most:.3g}"})
    return draw_strips([shown], "Distances of trees that were learned again")


def first_heat(stability: dict[str, Any]) -> Picture:
    """How often each feature is asked first."""
    first = stability["first"]
    heads = [PLACES[place] for place in first["places"]]
    return draw_heat(first["features"], heads, first["shares"], "Which features are asked first")


def cut_strips(stability: dict[str, Any], kind: str = "tree") -> Picture:
    """Where the trees or cards cut the features they ask about."""
    strips = [
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
        for one in stability["cuts"]
    ]
    return draw_strips(strips, "Where features are cut")


def epsilon_chart(privacy: dict[str, Any]) -> Picture:
    """Accuracy against epsilon, whiskers from the least to the greatest of several seeds."""
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
    return draw_curve([line], Axis.over_ratios(x, "epsilon"), up, "Accuracy against epsilon")


def calibration_chart(found: dict[str, Any], kind: str = "tree") -> Picture:
    """Observed against stated shares; on the diagonal they agree."""
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
    equal = Series("stated = observed", (0.0, 1.0), (0.0, 1.0), colour=GREY)
    across = Axis.over([0.0, 1.0], "stated share", percent=True)
    up = Axis.over([0.0, 1.0], "share that came true", percent=True)
    return draw_curve([line, equal], across, up, "Calibration")


NAMES = ("retraining distance", "changed answers")
FARTHEST_COMPARED = 3.0  # times the budget that a curve is drawn to


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
        measurements = one["readings"]
        if key not in measurements:
            continue
        right, size = measurements["accuracy"], measurements["size"]
        note = (
            f"{one['name']}: accuracy {value_text('accuracy', right['value'])}, {key} "
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
        [0.0, *(point.x * 1.08 for point in points)], key, percent=key == "changed answers"
    )
    up = Axis.over(ends, "accuracy", percent=True)
    return draw_scatter(points, across, up, f"Accuracy against {key}")


def _curves(learners: list[dict[str, Any]], budget: float) -> Picture:
    most = FARTHEST_COMPARED * budget
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
