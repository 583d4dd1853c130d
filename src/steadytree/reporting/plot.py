"""plot: a picture of any model or measurement; render: what a notebook shows of one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from steadytree._base.files import write_text_atomically
from steadytree.comparison.compare import Results
from steadytree.data.table import Table
from steadytree.distance.diff import TreeChanges
from steadytree.distance.tree_distance import POSITIONS, CollectionFacts
from steadytree.metrics.accuracy import label_indices
from steadytree.metrics.calibration import Calibration
from steadytree.metrics.groups import Groups
from steadytree.metrics.measurement import Measurement
from steadytree.metrics.validation import Validation
from steadytree.models.scorecard import as_scorecard
from steadytree.models.sklearn import as_tree
from steadytree.models.tree import Tree
from steadytree.privacy.simulation import Simulation
from steadytree.reporting.diff import build_diff, diff_text
from steadytree.reporting.formatting import (
    format_comparison,
    label_text,
    one_line,
    percent_text,
    plain,
    plain_measurements,
)
from steadytree.reporting.html import render_picture
from steadytree.reporting.stability import (
    collection_thresholds,
    scorecard_thresholds,
    tree_thresholds,
)
from steadytree.reporting.svg import figures
from steadytree.reporting.svg.canvas import Axis, frame_picture, stack
from steadytree.reporting.svg.charts import Series, curve, heat, strips
from steadytree.reporting.svg.diff import plot_diff
from steadytree.reporting.svg.figures import GREY
from steadytree.reporting.svg.scorecard import long_groups, plot_scorecard
from steadytree.reporting.svg.tree import plot_tree
from steadytree.reporting.text import comparison_text, indented_rules, scorecard_text
from steadytree.reporting.wording import build_nodes
from steadytree.robustness.certificate import Certificate, thin_curve
from steadytree.stability.curve import StabilityCurve
from steadytree.stability.pareto_tree import ParetoTreeClassifier
from steadytree.stability.refits import Refits, ScorecardRefits

NAMESPACE = "http://www.w3.org/2000/svg"
MOST_FEATURES = 8
SUFFIXES = (".svg", ".html", ".txt")
KINDS = ("model", "frontier")
MOST_NODES = 200  # of a tree that is plotted in a notebook
CELL = Markup('<td style="text-align:left">{}</td>')
HEAD = Markup('<th style="text-align:left">{}</th>')


@dataclass(frozen=True)
class Picture:
    """A drawing as SVG that needs nothing else; shows itself in a notebook.

    Parameters
    ----------
    svg : str
        One ``<svg>`` element.
    text : str
        The same for a terminal, which `str` returns; empty where there is no text form.
    title : str
        Title of the HTML page.
    narrow : str
        The same for a narrow screen; empty where one form does for all.
    below : tuple of (str, str), optional
        What the page lists below the drawing: groups whose names a sheet cannot hold.
    """

    svg: str
    text: str = ""
    title: str = "steadytree"
    narrow: str = ""
    below: tuple[tuple[str, str], ...] = ()

    @property
    def html(self) -> str:
        """A page with the picture; printed, it fills the sheet."""
        return render_picture(self.svg, self.title, self.narrow, self.below)

    def write(self, path: str | PathLike[str]) -> None:
        """Write a file, whole or not at all: ``.svg``, ``.html``, or ``.txt`` for the text form."""
        suffix = Path(path).suffix.lower()
        if suffix not in SUFFIXES:
            raise ValueError(f"path must end in one of {', '.join(SUFFIXES)}, got {str(path)!r}.")
        if suffix == ".txt" and not self.text:
            raise ValueError(f"{str(path)!r}: this picture has no text form: write .svg or .html.")
        content = {".svg": self.svg, ".html": self.html, ".txt": f"{self.text}\n"}[suffix]
        write_text_atomically(path, content)

    def __str__(self) -> str:
        return self.text or repr(self)

    def __repr__(self) -> str:
        return f"Picture({self.title!r})"

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg


def plot(
    thing: Any, X: Any = None, y: Any = None, *, kind: str = "model", title: str = ""
) -> Picture:
    """Plot a model or what was measured about one, as SVG that needs nothing else.

    Parameters
    ----------
    thing : model or result
        A tree, a fitted learner, a scikit-learn tree or a scorecard; or what `certify`,
        `calibration`, `validate`, `compare`, `diff`, `refits`, `stability_curve`,
        `collection_facts` or `simulate` returned.
    X, y : rows and their classes, optional
        For a tree: the rows it shows; without them, those it was fitted on.
    kind : {"model", "frontier"}, default="model"
        "frontier" shows score against distance of all candidates of a `ParetoTreeClassifier`.
    title : str, optional
        Heading of a scorecard, and title of the HTML page.

    Returns
    -------
    picture : Picture
        Shows itself in a notebook; ``print`` shows its text form, ``write("tree.svg")`` makes a
        file.

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier().fit([[0.0], [1.0]], ["no", "yes"])
    >>> print(plot(model, [[0.0], [1.0]], ["no", "yes"]))
    x0 = 0?
    ├─ yes: no (100 % of 1 row correct)
    └─ no: yes (100 % of 1 row correct)
    """
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}.")
    if kind == "frontier":
        if not hasattr(thing, "frontier_"):
            raise TypeError(
                f"kind='frontier' needs a fitted ParetoTreeClassifier, got {type(thing).__name__}."
            )
        shown, text, name = _plot_frontier(thing), "", "Pareto frontier"
    else:
        shown, text, name = _plotted(thing, X, y, title)
    svg = str(shown)  # Markup would escape what is replaced
    if "xmlns=" not in svg[: svg.index(">")]:  # a file needs it, a part of a page does not
        svg = svg.replace("<svg ", f'<svg xmlns="{NAMESPACE}" ', 1)
    scorecard = as_scorecard(thing)
    if scorecard is None:
        return Picture(svg, text, one_line(title) or name)
    narrow = str(plot_scorecard(scorecard, title, narrow=True))
    return Picture(svg, text, one_line(title) or name, narrow, long_groups(scorecard))


def _plotted(thing: Any, X: Any, y: Any, title: str) -> tuple[Markup, str, str]:
    """SVG, text form and name of what is plotted."""
    result = next((one for one in RESULTS if isinstance(thing, one)), None)
    scorecard = as_scorecard(thing) if result is None else None
    if (X is not None or y is not None) and (result or scorecard):
        raise ValueError(f"X and y are for trees only, got {type(thing).__name__}: omit them.")
    if result is not None:
        name, plot_one = RESULTS[result]
        return plot_one(thing), TEXTS[result](thing) if result in TEXTS else "", name
    if scorecard is not None:
        return plot_scorecard(scorecard, title=title), scorecard_text(scorecard), "Risk score"
    nodes = _tree_nodes(thing, X, y)
    return plot_tree(nodes), indented_rules(nodes), "Decision tree"


def _tree_nodes(model: Any, X: Any, y: Any) -> dict[str, Any]:
    if (X is None) != (y is None):
        raise ValueError("a tree is plotted with rows and their classes: pass both X and y.")
    tree = as_tree(model, X)
    if X is not None:
        return build_nodes(tree, Table.read(X), label_indices(tree.classes, y))
    # the rows the tree was fitted on, by the weights of its nodes
    empty = np.zeros((0, len(tree.space)))
    found = build_nodes(tree, empty, np.zeros(0, np.int64))
    total = max(found["nodes"][0]["fitted_weight"], 1e-12)
    for node in found["nodes"]:
        weight = node["fitted_weight"]
        node["counts"] = [round(weight * share) for share in node["fitted_shares"]]
        node["n_rows"], node["share"] = round(weight), weight / total
    return found


def _plot_certificate(found: Certificate) -> Markup:
    sizes, shares = thin_curve(found.right, found.distance)
    return figures.certified_curve(
        {
            "curve": {"size": plain(sizes), "certified_accuracy": plain(shares)},
            "perturbation": plain(found.perturbation.to_dict()),
            "readings": plain_measurements(found.measurements()),
        }
    )


def _plot_stability(found: StabilityCurve) -> Markup:
    """Sensitivity and accuracy over epsilon; the greedy tree, epsilon 0, as horizontal lines."""
    stable = [point for point in found.points if point.epsilon > 0]
    if not stable:
        raise ValueError("the curve has no point with epsilon above 0: there is nothing to plot.")
    x = [point.epsilon for point in stable]
    ends = (x[0], x[-1])
    low, high = zip(*(point.sensitivity_interval for point in stable), strict=True)
    above = [max(value, 0.0) for value in low]
    changes = [Series("stable", x, [p.sensitivity for p in stable], above, high, dots=True)]
    low, high = zip(*(point.test_accuracy_interval for point in stable), strict=True)
    shares = [
        Series("stable, held out", x, [p.test_accuracy for p in stable], low, high, dots=True),
        Series("stable, training", x, [p.train_accuracy for p in stable], colour=1, dots=True),
    ]
    for greedy in (point for point in found.points if point.epsilon == 0):
        changes.append(Series("greedy", ends, (greedy.sensitivity,) * 2, colour=GREY))
        shares.append(Series("greedy, held out", ends, (greedy.test_accuracy,) * 2))
        shares.append(Series("greedy, training", ends, (greedy.train_accuracy,) * 2, colour=1))
    rows = (
        f"{found.removed:,} rows" if found.removed > 1 else f"{100 * found.removed:g} % of the rows"
    )
    label = f"sensitivity, without {'one row' if found.removed == 1 else rows}"
    across = Axis.over_ratios(x, "epsilon")
    parts = [
        curve(changes, across, Axis.over(_ends(changes), label, zero=True)),
        curve(shares, across, Axis.over(_ends(shares), "accuracy", percent=True)),
    ]
    return frame_picture(stack(parts), "Sensitivity and accuracy over epsilon")


def _ends(series: list[Series]) -> list[float]:
    return [value for one in series for value in (*one.y, *(one.low or ()), *(one.high or ()))]


def _plot_collection(facts: CollectionFacts) -> Markup:
    """Importances, first splits and thresholds of the most important features."""
    columns = {name: column[:MOST_FEATURES] for name, column in facts.columns().items()}
    names = [one_line(name) for name in columns["feature"].tolist()]
    shares = np.stack([columns[key] for key in ("importance", *POSITIONS)], axis=1)
    texts = [[f"{100 * share:.0f} %" if share else "–" for share in row] for row in shares]
    for row, deviation in zip(texts, columns["deviation"], strict=True):
        row[0] = f"{row[0].removesuffix(' %')} ± {100 * deviation:.0f} %"
    heads = ["importance", *figures.SPLITS.values()]
    parts = [heat(names, heads, shares.tolist(), texts)]
    found = collection_thresholds(facts, (facts.importances > 0).mean(axis=0))
    if found:
        parts.append(strips(figures.threshold_strips(found)))
    return frame_picture(stack(parts), f"What {facts.n_trees} trees have in common")


def _plot_frontier(model: ParetoTreeClassifier) -> Markup:
    """Score against distance of all candidates, the frontier, and the chosen tree."""
    distance, score = (model.candidates_[key].tolist() for key in ("distance", "score"))
    others = np.flatnonzero(~model.candidates_["on_frontier"]).tolist()

    def series(name: str, indices: list[int], **style: Any) -> Series:
        return Series(name, [distance[k] for k in indices], [score[k] for k in indices], **style)

    shown = [
        series("frontier", model.frontier_.tolist(), dots=True),
        series("chosen", [model.chosen_], colour=5, dots=True, line=False),
    ]
    if others:
        shown.insert(0, series("dominated", others, colour=GREY, dots=True, line=False))
    across = Axis.over(distance, f"path distance {model.distance_to} (less is more stable)")
    chart = curve(shown, across, Axis.over(score, "score on validation rows"))
    return frame_picture(chart, "Pareto frontier of score and distance")


def _plot_simulation(found: Simulation) -> Markup:
    """Accuracy over epsilon, whiskers around 90 % of the fits."""
    keys = ("epsilon", "accuracy", "low", "high")
    x, mean, low, high = ([fit[key] for fit in found.to_dict()["fits"]] for key in keys)
    series = [
        Series("mean, with 90 % of fits", x, mean, low, high, dots=True),
        Series("majority class", (min(x), max(x)), (found.baseline,) * 2, colour=GREY),
    ]
    across = Axis.over_ratios(x, "epsilon (less is more private)")
    up = Axis.over(_ends(series), "test accuracy", percent=True)
    return frame_picture(curve(series, across, up), "Accuracy against epsilon")


RESULTS: dict[type, tuple[str, Callable[[Any], Markup]]] = {
    Certificate: ("Certified accuracy", _plot_certificate),
    Validation: ("ROC curve", lambda found: figures.roc_chart(plain(found.to_dict()), "model")),
    Calibration: ("Calibration", lambda found: figures.calibration_chart(plain(found.to_dict()))),
    Results: (
        "Comparison of learners",
        lambda found: figures.comparison_pictures(format_comparison(found.to_dict()))[0][1],
    ),
    TreeChanges: ("Changes of a tree", lambda found: plot_diff(build_diff(found))),
    Refits: (
        "Thresholds after retraining",
        lambda found: figures.threshold_chart(tree_thresholds(found)),
    ),
    ScorecardRefits: (
        "Thresholds after retraining",
        lambda found: figures.threshold_chart(scorecard_thresholds(found), "fit"),
    ),
    StabilityCurve: ("Stability curve", _plot_stability),
    CollectionFacts: ("Collection of trees", _plot_collection),
    Simulation: ("Accuracy against epsilon", _plot_simulation),
}
TEXTS: dict[type, Callable[[Any], str]] = {
    Results: lambda found: comparison_text(format_comparison(found.to_dict())),
    TreeChanges: lambda found: diff_text(build_diff(found)).plain,
    Simulation: str,
}


# ---- notebooks ----
def render(thing: Any) -> str | None:
    """HTML with a result's measurements and picture; None where there are neither."""
    if isinstance(thing, Measurement):
        return str(_measurements([thing]))
    parts = [_groups(thing)] if isinstance(thing, Groups) else []
    found = getattr(thing, "measurements", None)
    listed = found() if callable(found) else found
    if listed:
        parts.insert(0, _measurements(list(listed)))
    picture = _picture(thing)
    if picture:
        parts.append(Markup('<div style="overflow-x:auto">{}</div>').format(Markup(picture)))
    return str(Markup("").join(parts)) if parts else None


def _picture(thing: Any) -> str:
    tree = thing if isinstance(thing, Tree) else getattr(thing, "tree_", None)
    if isinstance(tree, Tree):
        return plot(tree).svg if tree.n_nodes <= MOST_NODES else ""
    if as_scorecard(thing) is not None or isinstance(thing, tuple(RESULTS)):
        return plot(thing).svg
    return ""


def _measurements(listed: list[Measurement]) -> Markup:
    rows = [
        (one_line(one["name"]), one["shown"], one["shown_interval"], one_line(one["meaning"]))
        for one in plain_measurements(listed)
    ]
    return _table(("", "value", "interval", "meaning"), rows)


def _groups(found: Groups) -> Markup:
    rows = [
        (label_text(one.name), f"{one.n_rows:,}", percent_text(one.accuracy))
        for one in found.groups
    ]
    return _table((one_line(found.column), "rows", "accuracy"), rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """A table of texts, which are escaped."""
    head = Markup("").join(HEAD.format(text) for text in heads)
    lines = [Markup("").join(CELL.format(text) for text in row) for row in rows]
    body = Markup("").join(Markup("<tr>{}</tr>").format(line) for line in lines)
    return Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>").format(head, body)
