"""Figures: the charts of reports and comparisons, from their plain values."""

from typing import Any

from markupsafe import Markup

from steadytree.reporting.formatting import COLUMNS, percent_text, value_text
from steadytree.reporting.svg.canvas import N_COLOURS, Axis, frame_picture
from steadytree.reporting.svg.charts import Point, Series, Strip, curve, heat, scatter, strips

SPLITS = {"root": "first split", "left": "next, if yes", "right": "next, if no"}
FARTHEST = 4.0  # times the budget that a curve reaches to
GREY = 7
FEW_DOTS = 20  # points of a curve up to which each is marked
SMALL_RISKS = 0.4  # an axis of smaller probabilities ends with them, not at 1


def certified_curve(robustness: dict[str, Any], kind: str = "tree") -> Markup:
    """Certified accuracy by size of perturbation, beside the majority baseline."""
    budget = robustness["perturbation"].get("budget")
    row = robustness["perturbation"].get("scope", "row") == "row"
    most = FARTHEST * budget if budget and row else robustness["curve"]["size"][-1]
    baseline = next(r["value"] for r in robustness["readings"] if r["name"] == "majority baseline")
    series = [
        _certified(f"this {kind}", robustness["curve"], most),
        Series("majority class", (0.0, most), (baseline,) * 2, colour=GREY),
    ]
    label = "size of perturbation" + (" (1 is the stated one)" if budget == 1 and row else "")
    up = Axis.over([0.0, 1.0], "certified accuracy", percent=True)
    return frame_picture(
        curve(series, Axis.over([0.0, most or 1.0], label), up), "Certified accuracy"
    )


def _certified(name: str, found: dict[str, Any], most: float, colour: int = 0) -> Series:
    """Certified accuracy up to a size of perturbation."""
    pairs = zip(found["size"], found["certified_accuracy"], strict=True)
    kept = [(x, y) for x, y in pairs if x <= most] or [(0.0, 0.0)]
    x, y = zip(*kept, (most, kept[-1][1]), strict=True)
    return Series(name, x, y, steps=True, colour=colour)


def search_curve(search: dict[str, Any]) -> Markup:
    """What the best tree kept, and what no tree exceeds, over the seconds of a search."""
    seconds, most = search["seconds"], max(*search["seconds"], 1e-3)
    lines = [("best tree", search["kept"], 0), ("no tree keeps more", search["bound"], GREY)]
    series = [
        Series(name, (*seconds, most), (*values, values[-1]), steps=True, colour=colour)
        for name, values, colour in lines
    ]
    up = Axis.over([*search["kept"], *search["bound"]], "weight kept correct")
    return frame_picture(curve(series, Axis.over([0.0, most], "seconds"), up), "Search")


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
    heads = [SPLITS[node] for node in first["places"]]
    return frame_picture(
        heat(first["features"], heads, first["shares"]), "Features of the first splits"
    )


def threshold_chart(thresholds: list[dict[str, Any]], kind: str = "tree") -> Markup:
    """Thresholds of the features that retrained trees or risk scores use."""
    return frame_picture(strips(threshold_strips(thresholds, kind)), "Thresholds by feature")


def threshold_strips(thresholds: list[dict[str, Any]], kind: str = "tree") -> list[Strip]:
    """One strip a feature, with the share of models that use it."""
    found = []
    for one in thresholds:
        values, texts = (one["cuts"], one["low"], one["high"]), (one["low_text"], one["high_text"])
        note = f"{percent_text(one['share'])} of {kind}s"
        found.append(Strip(one["feature"], *values, one["own"], note, *texts))
    return found


def epsilon_chart(privacy: dict[str, Any]) -> Markup:
    """Accuracy against epsilon, whiskers from the lowest to the highest of several seeds."""
    keys = ("epsilon", "accuracy", "least", "greatest")
    x, y, low, high = ([point[key] for point in privacy["curve"]] for key in keys)
    line = Series("private tree", x, y, low, high, dots=True)
    up = Axis.over([*low, *high], "accuracy on held-out rows", percent=True)
    return frame_picture(
        curve([line], Axis.over_ratios(x, "epsilon"), up), "Accuracy against epsilon"
    )


def calibration_chart(found: dict[str, Any], kind: str = "tree") -> Markup:
    """Observed frequency against predicted probability; on the diagonal they agree."""
    bins = found["bins"]
    x, y = ([one[key] for one in bins] for key in ("stated", "observed"))
    low, high = ([one["interval"][end] for one in bins] for end in (0, 1))
    line = Series(f"this {kind}", x, y, low, high, dots=True, line=False)
    most = max(*x, *high)
    most = most if most < SMALL_RISKS else 1.0
    across = Axis.over([0.0, most], "predicted probability", percent=True)
    up = Axis.over([0.0, most], "observed frequency", percent=True)
    equal = Series("well calibrated", (0.0, up.high), (0.0, up.high), colour=GREY)
    return frame_picture(curve([line, equal], across, up), "Calibration")


def roc_chart(found: dict[str, Any], kind: str = "tree") -> Markup:
    """Sensitivity against false-positive rate."""
    x = [0.0, *found["curves"]["false_positive_rate"]]
    y = [0.0, *found["curves"]["sensitivity"]]
    series = [
        Series(f"this {kind}", x, y, dots=len(x) <= FEW_DOTS),
        Series("by chance", (0.0, 1.0), (0.0, 1.0), colour=GREY),
    ]
    across = Axis.over([0.0, 1.0], "false-positive rate", percent=True)
    up = Axis.over([0.0, 1.0], "sensitivity", percent=True)
    return frame_picture(curve(series, across, up), "ROC curve")


def precision_chart(found: dict[str, Any], kind: str = "tree") -> Markup:
    """Share of alerts with the event against share of events with an alert."""
    x, y = found["curves"]["sensitivity"], found["curves"]["precision"]
    share = found["n_events"] / found["n_rows"]
    series = [
        Series(f"this {kind}", x, y, dots=len(x) <= FEW_DOTS),
        Series("by chance", (0.0, 1.0), (share, share), colour=GREY),
    ]
    across = Axis.over([0.0, 1.0], "sensitivity (recall)", percent=True)
    up = Axis.over([0.0, 1.0], "PPV (precision)", percent=True)
    return frame_picture(curve(series, across, up), "Precision-recall curve")


def decision_chart(found: dict[str, Any], kind: str = "tree") -> Markup:
    """Net benefit against the risk from which one acts, beside acting on all rows or on none."""
    risks = found["decision_curve"]["threshold"]
    most = found["n_events"] / found["n_rows"]
    floor = -0.15 * most  # what lies below is not worth drawing
    series = []
    for name, key, colour in ((f"this {kind}", "model", 0), ("all rows", "all", 1)):
        pairs = zip(risks, found["decision_curve"][key], strict=True)
        kept = [(x, y) for x, y in pairs if y >= floor] or [(risks[0], floor)]
        x, y = zip(*kept, strict=True)
        series.append(Series(name, x, y, colour=colour))
    series.append(Series("no row", (0.0, risks[-1]), (0.0, 0.0), colour=GREY))
    across = Axis.over([0.0, risks[-1]], "risk from which one acts", percent=True)
    up = Axis.over([floor, most], "net benefit")
    return frame_picture(curve(series, across, up), "Decision curve")


CAPTIONS = {
    "retraining distance": "Trees: accurate and stable is up and to the left. "
    "A larger point is a larger model.",
    "changed answers": "All learners: how often predictions change on retraining.",
}
FARTHEST_COMPARED = 3.0  # times the budget that a curve reaches to


def comparison_pictures(formatted: dict[str, Any]) -> list[tuple[str, Markup]]:
    """Captions and pictures of a comparison."""
    learners = formatted["learners"]
    found = [
        (caption, _scatter(learners, key))
        for key, caption in CAPTIONS.items()
        if sum(key in one["readings"] for one in learners) > 1
    ]
    budget = formatted["perturbation"].get("budget")
    certified = [one for one in learners if one["curve"]["size"]]
    if budget and certified and len(certified) <= 8:
        found.append(("Certified accuracy by size of perturbation.", _curves(learners, budget)))
    return found


def _scatter(learners: list[dict[str, Any]], key: str) -> Markup:
    label = COLUMNS[key][0]
    points = []
    for index, one in enumerate(learners):
        if key not in one["readings"]:
            continue
        x, correct = one["readings"][key], one["readings"]["accuracy"]
        size = one["readings"].get("size", {"value": 1.0, "unit": "ensemble"})
        note = (
            f"{one['name']}: accuracy {value_text('accuracy', correct['value'])}, {label} "
            f"{value_text(key, x['value'])}, {size['value']:g} {size['unit']}"
        )
        values = x["value"], correct["value"], size["value"], tuple(correct["interval"])
        points.append(Point(one["name"], *values, index % N_COLOURS, note))
    ends = [end for point in points for end in point.y_interval or ()]
    widest = [0.0, *(point.x * 1.08 for point in points)]
    across = Axis.over(widest, label, percent=key == "changed answers")
    up = Axis.over(ends, "accuracy", percent=True)
    return frame_picture(scatter(points, across, up), f"Accuracy against {label}")


def _curves(learners: list[dict[str, Any]], budget: float) -> Markup:
    most = FARTHEST_COMPARED * budget
    series = [
        _certified(one["name"], one["curve"], most, index % N_COLOURS)
        for index, one in enumerate(learners)
        if one["curve"]["size"]
    ]
    values = [value for one in series for value in one.y]
    across = Axis.over([0.0, most], "size of perturbation (1 is the stated one)")
    up = Axis.over([min(values), max(values)], "certified accuracy", percent=True)
    return frame_picture(curve(series, across, up), "Certified accuracy by size of perturbation")
