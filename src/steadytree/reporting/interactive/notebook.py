"""HTML of models and results for notebooks: their measurements, and the pictures of `plot`."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from steadytree.metrics.groups import Groups
from steadytree.metrics.measurement import Measurement
from steadytree.models.scorecard import as_scorecard
from steadytree.models.tree import Tree
from steadytree.reporting.formatting import label_text, one_line, percent_text, plain_measurements
from steadytree.reporting.plot import RESULTS, plot

MOST_NODES = 200  # of a tree that is drawn in a notebook
CELL = Markup('<td style="text-align:left">{}</td>')
HEAD = Markup('<th style="text-align:left">{}</th>')


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
