"""HTML: reports, comparisons and studies as offline pages."""

import base64
import contextlib
import hashlib
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined
from jinja2.bccache import Bucket
from markupsafe import Markup, escape

from steadytree.models.documents import scorecard_from_dict
from steadytree.reporting.formatting import percent_text, rows_text, shorten
from steadytree.reporting.svg import figures
from steadytree.reporting.svg.canvas import (
    N_COLOURS,
    bar_parts,
    class_colours,
    colour_style,
    read_style,
)
from steadytree.reporting.svg.diff import plot_diff
from steadytree.reporting.svg.scorecard import plot_scorecard
from steadytree.reporting.svg.tree import leaf_line, picture_size, plot_tree
from steadytree.reporting.text import indented_rules, leaf_rules

COMPILED = Path(__file__).parent / "templates" / "__pycache__"
LONGEST_NAME = 40
NOUNS = {"tree": "tree", "card": "risk score", "black_box": "model"}
UNMEASURED = {
    "stability": "how much the {noun} changes when it is retrained on slightly different data "
    "(this needs the learner and its training rows).",
    "robustness": "whether small changes of a row change its prediction.",
    "separation": "whether similar rows belong to different classes.",
    "groups": "whether the {noun} performs equally well in all groups (name a column with --by).",
    "change": "what changed since the previous {noun} (pass it with --previous).",
    "comparison": "what other learners achieve (name some with --learners).",
    "privacy": "what the {noun} reveals about single rows; it gives no privacy guarantee.",
}
OF_A_BLACK_BOX = {  # what is not measured of it, whatever is passed
    "stability": "how much the model changes when it is retrained: that is measured for single "
    "trees and for risk scores.",
    "robustness": "whether small changes of a row change its prediction: certificates need a "
    "single tree or a risk score.",
    "change": "what changed since the previous model: changes are shown between trees.",
}
WIDEST_PRINTED, TALLEST_PRINTED = 1100, 1300  # up to which a picture is legible on paper


def render_html(data: dict[str, Any]) -> str:
    """One page with style, pictures, data and a script in it; it fetches nothing.

    Without the script the page reads whole; the policy in its head lets no other one run.
    """
    classes = data["data"]["classes"]
    scorecard = scorecard_from_dict(data["card"]["card"]) if data["card"] else None
    counts = [one["n_rows"] for one in classes]
    return _render(
        "report",
        data=data,
        noun=NOUNS[data["kind"]],
        colours=class_colours(counts),
        colour_style=Markup(colour_style("body")),
        legend=_legend(counts, [one["label"] for one in classes]),
        **({} if data["tree"] is None else _tree_parts(data["tree"])),
        confusion=_confusion_rows(data["confusion"]),
        change_picture=plot_diff(data["change"]) if data["change"] else "",
        card_picture=plot_scorecard(scorecard) if scorecard else "",
        narrow_card=plot_scorecard(scorecard, narrow=True) if scorecard else "",
        unmeasured=unmeasured(data),
        example=_example(data["cases"]),
        script=Markup(_script()),
        policy=content_policy(_script()),
    )


@cache
def _script() -> str:
    return read_style("report.js")


def content_policy(script: str = "") -> str:
    """What a page may load: this script, styles and pictures within it, and nothing else."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    allowed = f"script-src 'sha256-{digest}'; " if script else ""
    return (
        f"default-src 'none'; {allowed}style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _example(cases: dict[str, Any] | None) -> Markup:
    found = (cases or {}).get("example")
    return Markup("" if found is None else render_explanation(found))


def headings(sections: str) -> list[tuple[str, str]]:
    """Ids and titles of the sections of a page, for its contents."""
    found = re.findall(r'<section id="([a-z-]+)"[^>]*>\s*<h2>(.*?)</h2>', str(sections))
    return [(name, Markup(title)) for name, title in found]


def render_comparison(data: dict[str, Any]) -> str:
    """A comparison as one page that needs no scripts and fetches nothing."""
    style = Markup(colour_style("body"))
    return _render("compare", data=data, comparison=data["comparison"], colour_style=style)


def render_study(
    data: dict[str, Any], blocks: list[dict[str, Any]], pictures: list[dict[str, Any]], kept: str
) -> str:
    """Output and figures of a study as one page that needs no scripts and fetches nothing."""
    return _render("study", data=data, blocks=blocks, pictures=pictures, kept=kept)


def render_picture(
    svg: str, title: str, narrow: str = "", below: Sequence[tuple[str, str]] = ()
) -> str:
    """A picture as one page, `narrow` where the screen is; printed, it fills the sheet."""
    return _render("picture", svg=Markup(svg), title=title, narrow=Markup(narrow), below=below)


def render_explanation(data: dict[str, Any]) -> str:
    """The explanation of one row, for a notebook and for the page of a report."""
    return _render("explanation", found=data)


def _render(template: str, **values: Any) -> str:
    return _environment().get_template(f"{template}.html.j2").render(**values)


def framed(page: str, title: str) -> str:
    """A page in a frame of its own, so that its styles and those of a notebook do not mix."""
    return (
        f'<iframe srcdoc="{escape(page)}" sandbox="allow-scripts" title="{title}" '
        'style="width:100%;height:760px;border:0"></iframe>'
    )


def unmeasured(data: dict[str, Any]) -> list[str]:
    """Sentences on the sections that were not measured, and what they need."""
    noun = NOUNS[data["kind"]]
    texts = UNMEASURED | (OF_A_BLACK_BOX if data["kind"] == "black_box" else {})
    return [text.format(noun=noun) for name, text in texts.items() if not data[name]]


def _tree_parts(tree: dict[str, Any]) -> dict[str, Any]:
    """Picture and rules of a tree."""
    width, height = picture_size(tree)
    return {
        "tree": tree,
        "picture": plot_tree(tree),
        "prints_picture": width <= WIDEST_PRINTED and height <= TALLEST_PRINTED,
        "rules": leaf_rules(tree),
        "text": indented_rules(tree),
    }


class _Compiled(FileSystemBytecodeCache):
    """Compiled templates beside the templates, as Python keeps modules; where that is possible."""

    def load_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            COMPILED.mkdir(exist_ok=True)
            super().dump_bytecode(bucket)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("steadytree.reporting"),
        bytecode_cache=None if sys.dont_write_bytecode else _Compiled(str(COMPILED)),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "ensure_ascii": False}
    environment.filters |= {"percent": percent_text, "rows": rows_text, "short": _short}
    environment.globals |= {
        "content_policy": content_policy,
        "leaf_line": leaf_line,
        "bar_parts": bar_parts,
        "plot_tree": plot_tree,
        "figures": figures,
        "headings": headings,
        "indented_rules": indented_rules,
    }
    return environment


def _short(name: str) -> Markup:
    """A name that may be shortened; its tooltip is the whole name."""
    shortened = shorten(name, LONGEST_NAME)
    if shortened == name:
        return escape(name)
    return Markup('<span title="{}">{}</span>').format(name, shortened)


def _legend(counts: list[int], labels: list[str]) -> list[tuple[int, str]]:
    """Colours and the classes they stand for."""
    pairs = sorted(zip(class_colours(counts), labels, strict=True))
    own = [(colour, name) for colour, name in pairs if colour < N_COLOURS]
    n_others = len(pairs) - len(own)
    return own + ([(N_COLOURS, f"{n_others} other classes")] if n_others else [])


def _confusion_rows(confusion: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the confusion table, with the share of each cell for its shade."""
    rows = []
    for index, label in enumerate(confusion["labels"]):
        counts = confusion["counts"][index]
        total = sum(counts)
        cells = [
            {"count": count, "share": count / total if total else 0.0, "correct": other == index}
            for other, count in enumerate(counts)
        ]
        rows.append({"label": label, "cells": cells, "total": total})
    return rows
