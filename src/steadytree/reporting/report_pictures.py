"""Report pictures: the charts of a report, drawn from its plain values."""

from typing import Any

from steadytree.reporting.axes import Axis
from steadytree.reporting.curve_svg import Series, draw_curve
from steadytree.reporting.heat_svg import draw_heat
from steadytree.reporting.numbers import percent_text
from steadytree.reporting.picture import Picture
from steadytree.reporting.strip_svg import Strip, draw_strips

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
    x, y = separation["nearest_enemy"], separation["share"]
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
