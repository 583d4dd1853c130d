"""Render HTML: the collected dict as one offline page."""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from steadytree.reporting.compare_pictures import comparison_pictures
from steadytree.reporting.numbers import percent_text, rows_text
from steadytree.reporting.palette import N_COLOURS, class_colours, colour_style
from steadytree.reporting.rules_text import indented_rules, leaf_rules
from steadytree.reporting.tree_svg import answer_line, draw_tree, picture_size
from steadytree.reporting.wording import cut_text

LONGEST_NAME = 40
WIDEST_PRINTED, TALLEST_PRINTED = 1100, 1300  # up to which a picture is legible on paper


def render_html(data: dict[str, Any]) -> str:
    """One page with style, picture and data in it; it needs no scripts and fetches nothing.

    Parameters
    ----------
    data : dict
        What `collect` returned.

    Returns
    -------
    html : str
    """
    tree = data["tree"]
    width, height = picture_size(tree)
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            data=data,
            tree=tree,
            picture=draw_tree(tree),
            prints_picture=width <= WIDEST_PRINTED and height <= TALLEST_PRINTED,
            colours=class_colours(tree["nodes"][0]["counts"]),
            colour_style=Markup(colour_style("body")),
            legend=_legend(tree),
            rules=leaf_rules(tree),
            text=indented_rules(tree),
            confusion=_confusion_rows(data["confusion"]),
        )
    )


def render_comparison(data: dict[str, Any]) -> str:
    """A comparison as one page that needs no scripts and fetches nothing."""
    template = _environment().get_template("compare.html.j2")
    style = Markup(colour_style("body"))
    return template.render(data=data, comparison=data["comparison"], colour_style=style)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("steadytree.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "ensure_ascii": False}
    environment.filters |= {"percent": percent_text, "rows": rows_text, "short": _short}
    environment.globals |= {
        "answer_line": answer_line,
        "bar_parts": _bar_parts,
        "comparison_pictures": comparison_pictures,
    }
    return environment


def _short(name: str) -> Markup:
    """A name that may be cut; pointing at it shows all of it."""
    cut = cut_text(name, LONGEST_NAME)
    if cut == name:
        return escape(name)
    return Markup('<span title="{}">{}</span>').format(name, cut)


def _legend(tree: dict[str, Any]) -> list[tuple[int, str]]:
    """Colours and the classes they stand for."""
    colours = class_colours(tree["nodes"][0]["counts"])
    pairs = sorted(zip(colours, tree["classes"], strict=True))
    own = [(colour, name) for colour, name in pairs if colour < N_COLOURS]
    n_others = len(pairs) - len(own)
    return own + ([(N_COLOURS, f"{n_others} other classes")] if n_others else [])


def _bar_parts(counts: list[int], colours: list[int]) -> list[tuple[int, float]]:
    """Colour and width in per cent of each part of a bar."""
    total = sum(counts)
    widths: dict[int, int] = {}
    for count, colour in zip(counts, colours, strict=True):
        widths[colour] = widths.get(colour, 0) + count
    return [(colour, 100 * count / total) for colour, count in widths.items() if count]


def _confusion_rows(confusion: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the confusion table, with the share of each cell for its shade."""
    rows = []
    for place, (label, counts) in enumerate(
        zip(confusion["labels"], confusion["counts"], strict=True)
    ):
        total = sum(counts)
        cells = [
            {"count": count, "share": count / total if total else 0.0, "right": other == place}
            for other, count in enumerate(counts)
        ]
        rows.append({"label": label, "cells": cells, "total": total})
    return rows
