"""Text: rules, risk scores, reports and comparisons for a terminal."""

import io
from collections.abc import Collection, Sequence
from itertools import compress
from textwrap import wrap
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from steadytree.models.scorecard import Scorecard
from steadytree.reporting.formatting import percent_text, rows_text
from steadytree.reporting.svg.sheet import RiskLine, Sheet, risk_text


def branch_stems(nodes: list[dict[str, Any]]) -> list[str]:
    """What is written before each node of an indented tree."""
    below, found = [""] * len(nodes), [""] * len(nodes)
    for index, node in enumerate(nodes):
        if node["parent"] is not None:
            last, stem = node["side"] == "no", below[node["parent"]]
            below[index] = stem + ("   " if last else "│  ")
            found[index] = f"{stem}{'└─' if last else '├─'} {node['side']}: "
    return found


def indented_rules(tree: dict[str, Any]) -> str:
    """The tree as indented text, the yes branch above the no branch."""
    lines = []
    for stem, node in zip(branch_stems(tree["nodes"]), tree["nodes"], strict=True):
        if "question" in node:
            missing = f" (missing: {node['missing']})" if node["missing"] else ""
            lines.append(f"{stem}{node['question']}?{missing}")
        else:
            lines.append(stem + leaf_text(node, tree["classes"]))
    return "\n".join(lines)


def leaf_rules(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """One rule a leaf, most rows first: conditions, prediction, and counts of rows."""
    leaves = [node for node in tree["nodes"] if "conditions" in node]
    return [
        {
            "conditions": node["conditions"],
            "prediction": tree["classes"][node["answer"]],
            "n_rows": node["n_rows"],
            "share": node["share"],
            "n_correct": node["counts"][node["answer"]],
        }
        for node in sorted(leaves, key=lambda node: -node["n_rows"])
    ]


def leaf_text(node: dict[str, Any], classes: list[str]) -> str:
    """The prediction of a leaf and how often it is correct."""
    prediction = classes[node["answer"]]
    more = f", {node['n_below']:,} leaves not shown" if node["n_below"] > 1 else ""
    if node["n_rows"] == 0:
        return f"{prediction} (no rows{more})"
    correct = percent_text(node["counts"][node["answer"]] / node["n_rows"])
    return f"{prediction} ({correct} of {rows_text(node['n_rows'])} correct{more})"


def scorecard_text(scorecard: Scorecard) -> str:
    """A risk score as aligned text, with the risk of each total where it is known."""
    sheet = Sheet.of(scorecard)
    rows = [] if sheet.is_binary else [["points for", *sheet.labels]]
    if any(sheet.start):
        rows.append(["start with", *map(str, sheet.start)])
    for block in sheet.blocks:
        unit = f" ({block.unit})" if block.unit else ""
        rows.append([block.name + unit, *[""] * len(sheet.start)])
        for text, points in block.bands:
            first, *others = wrap(text, BAND_WIDTH, break_long_words=False) or [text]
            rows.append([f"  {first}", *(f"{value:+d}" if value else "0" for value in points)])
            rows += [[f"    {line}", *[""] * len(points)] for line in others]
    lines = [sheet.title] if scorecard.title else []
    lines += [*(_aligned(rows) if rows else ()), sheet.rule]
    for label, listed in sheet.risks:
        lines += ["", *([] if sheet.is_binary else [label]), *_aligned(_risk_lines(sheet, listed))]
    return "\n".join(lines)


def _risk_lines(sheet: Sheet, listed: Sequence[RiskLine]) -> list[list[str]]:
    """Totals, risks, shares and counts as rows of text, headings first."""
    rows = [["total", "risk", "observed", "95 % interval", "rows"]]
    names = [name.partition(":")[0] for name in sheet.groups]
    if names:
        rows[0].append("group")
    for line in listed:
        share = risk_text(line.n_label / line.n_rows) if line.n_rows else "–"
        rows.append([line.totals, line.risk, share, line.interval_text, f"{line.n_rows:,.6g}"])
        if names and line.group is not None:
            rows[-1].append(names[line.group])
    return rows


def _aligned(rows: list[list[str]]) -> list[str]:
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        numbers = [cell.rjust(width + 2) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([first.ljust(max(widths[0], 12)), *numbers]).rstrip())
    return lines


BAND_WIDTH = 60  # of a group of categories in a risk score
MOST_CLASSES = 8  # more make the confusion matrix too wide for a terminal
WIDTH = 100
NARROW = ("accuracy", "size", "changed answers", "retraining distance", "worst-case accuracy")
SECTIONS = {
    "calibration": "Calibration",
    "validation": "Validation",
    "stability": "Stability when one row is left out",
    "refits": "Stability when a tenth of the rows is left out",
    "robustness": "Robustness",
    "separation": "Separability of the classes",
}


BRIEF = {"accuracy": "Accuracy", "calibration": "Calibration", "complexity": "Size"} | {
    "stability": "One row left out",
    "refits": "A tenth left out",
    "robustness": "Robustness",
    "separation": "Separability",
}
MOST_LINES = 38  # of the command's output, besides the line that names the page
MOST_UNMET, MOST_FOUND = 6, 6  # limits and findings that are listed


def terminal_view(data: dict[str, Any]) -> RenderableType:
    """What a rich console shows for a report."""
    parts: list[RenderableType] = [Text(data["title"], style="bold"), Text(data["headline"])]
    if data["origin"]["seen"]:
        noun = {"tree": "tree", "card": "risk score"}.get(data["kind"], "model")
        seen = f"These appear to be the rows the {noun} was fitted to."
        parts.append(Text(seen, style="yellow"))
    parts += _titled("Findings", _findings(data["findings"]))
    if data["verdict"]:
        parts += _titled("Limits", _verdict(data["verdict"]))
    parts += _titled("Accuracy", _measurements(data["readings"]["accuracy"]))
    if len(data["confusion"]["labels"]) <= MOST_CLASSES:
        title = "Confusion matrix, actual (down) and predicted (across)"
        parts += _titled(title, _confusion(data["confusion"]))
    if data["readings"]["complexity"]:
        parts += _titled("Complexity", _measurements(data["readings"]["complexity"]))
    for section, title in SECTIONS.items():
        if data["readings"].get(section):
            parts += _titled(title, _measurements(data["readings"][section]))
            note = (data.get(section) or {}).get("note")
            parts += [Text(note, style="dim")] if note else []
    if data["change"] is not None:
        lines = [data["change"]["headline"], *data["change"]["classes_text"]]
        parts += _titled("Changes since the previous tree", Text("\n".join(lines)))
    if data["comparison"] is not None:
        view = comparison_view(data["comparison"], NARROW)
        parts += _titled("Comparison with other learners", view)
    return Group(*parts, *_model_parts(data))


def _model_parts(data: dict[str, Any]) -> list[RenderableType]:
    """Rules of a tree, points of a risk score, or why neither is shown."""
    if data["kind"] == "black_box":
        return _titled("The model is not shown", Text(data["model"]["reason"]))
    if data["tree"] is None:
        return _titled("Risk score", Text(data["card"]["text"], no_wrap=True))
    rules = Text(indented_rules(data["tree"]), no_wrap=True, overflow="ellipsis")
    parts = _titled("Rules", rules)
    if data["model"]["learned"]:
        parts += [Text(f"How it was learned: {data['model']['learned']}", style="dim")]
    if data["tree"]["note"]:
        parts += [Text(data["tree"]["note"], style="bold")]
    return parts


def brief_view(data: dict[str, Any], width: int = WIDTH) -> RenderableType:
    """A report in at most 38 lines: the figures without their meanings, and the first rules."""
    parts: list[RenderableType] = [Text(data["title"], style="bold"), Text(data["headline"])]
    if data["origin"]["seen"]:
        parts.append(Text("These appear to be the rows it was fitted to.", style="yellow"))
    if data["verdict"]:
        unmet = [one for one in data["verdict"] if one["verdict"] != "pass"]
        n_met = len(data["verdict"]) - len(unmet)
        parts.append(Text(f"Limits: {n_met} of {len(data['verdict'])} passed."))
        parts += [_verdict(unmet[:MOST_UNMET])] if unmet else []
    raised = [one for one in data["findings"] if one["level"] != "green"]
    for one in raised[:MOST_FOUND]:
        style = "bold red" if one["level"] == "red" else "yellow"
        parts.append(Text(f"{one['level']}: {one['sentence']}", style=style))
    if len(raised) > MOST_FOUND:
        more = len(raised) - MOST_FOUND
        noun = "finding" if more == 1 else "findings"
        parts.append(Text(f"and {more} more {noun} in the page"))
    figures = _table()
    figures.show_header = False
    for section, title in BRIEF.items():
        listed = data["readings"].get(section) or []
        shown = ", ".join(f"{one['name']} {one['shown']}" for one in listed)
        if shown:
            figures.add_row(Text(title, style="dim"), Text(shown))
    parts += [Text(), figures]
    if data["change"] is not None:
        parts += [Text(), Text(data["change"]["headline"])]
    if data["comparison"] is not None:
        parts += [Text(), _comparison_table(data["comparison"], NARROW)]
    left = MOST_LINES - len(_plain(Group(*parts), width).splitlines())
    lines = _plain(Group(*_model_parts(data)), width).splitlines()
    if len(lines) > left:
        kept = max(left - 1, 0)
        lines = [*lines[:kept], f"... {len(lines) - kept} more lines in the page"]
    return Group(*parts, Text("\n".join(lines), no_wrap=True, overflow="ellipsis"))


def render_brief(data: dict[str, Any]) -> str:
    """The same as plain text."""
    return _plain(brief_view(data), WIDTH)


def render_text(data: dict[str, Any], width: int = WIDTH) -> str:
    """The same as plain text."""
    return _plain(terminal_view(data), width)


def _plain(view: RenderableType, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    console.print(view)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return "\n".join(line.rstrip() for line in text.splitlines())


def comparison_view(formatted: dict[str, Any], keys: Collection[str] = ()) -> RenderableType:
    """What a rich console shows for a comparison; some columns of it, or all."""
    table = _comparison_table(formatted, keys)
    folds = f"{formatted['n_folds']}-fold cross-validation on {rows_text(formatted['n_rows'])}."
    notes = [
        Text(f"{row['name']}: {note}.", style="dim")
        for row in formatted["rows"]
        for note in row["notes"]
    ]
    noise = "" if formatted["perturbation_stated"] else " Perturbation: 2 % of usual ranges."
    below = f"{folds} {formatted['note']}".strip() + f"{noise} * best of the column, ≈ sampled."
    cautions = [Text(caution) for caution in formatted.get("cautions", ())]
    headline = Text(formatted["headline"])
    return Group(table, Text(), headline, *cautions, Text(below, style="dim"), *notes)


def _comparison_table(formatted: dict[str, Any], keys: Collection[str]) -> Table:
    table = _table(gap=2)
    table.add_column("learner", no_wrap=True)
    shown = [not keys or column["key"] in keys for column in formatted["columns"]]
    for column in compress(formatted["columns"], shown):
        table.add_column(column["head"], justify="right")
    for row in formatted["rows"]:
        texts = [
            Text(cell["shown"] + "*", style="bold green") if cell["best"] else Text(cell["shown"])
            for cell in compress(row["cells"], shown)
        ]
        table.add_row(Text(row["name"], style="bold"), *texts)
    return table


def comparison_text(formatted: dict[str, Any], width: int = 140) -> str:
    """A comparison as plain text."""
    return _plain(comparison_view(formatted), width)


def _titled(title: str, body: RenderableType) -> list[RenderableType]:
    return [Text(), Text(title, style="italic"), body]


def _table(*heads: str, gap: int = 3) -> Table:
    return Table(*heads, box=None, pad_edge=False, padding=(0, gap, 0, 0))


def _measurements(measurements: list[dict[str, Any]]) -> Table:
    table = _table("")
    table.add_column("value", justify="right", no_wrap=True)
    with_interval = any(measurement["interval"] for measurement in measurements)
    if with_interval:
        table.add_column("95 % interval", no_wrap=True)
    table.add_column("meaning", style="dim")
    for measurement in measurements:
        cells = [measurement["name"], measurement["shown"], measurement["meaning"]]
        if with_interval:
            cells.insert(2, measurement["shown_interval"])
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _findings(findings: list[dict[str, Any]]) -> RenderableType:
    """Red and amber findings with what to do; green ones by their names."""
    styles = {"red": "bold red", "amber": "yellow"}
    table = _table(gap=2)
    table.show_header = False
    for one in findings:
        if one["level"] in styles:
            text = Text(one["sentence"]).append(f" {one['why']} {one['do']}", style="dim")
            table.add_row(Text(one["level"], style=styles[one["level"]]), text)
    green = [one["name"] for one in findings if one["level"] == "green"]
    if green:
        table.add_row(Text("green", style="green"), Text(", ".join(green)))
    return table


def _verdict(verdict: list[dict[str, Any]]) -> Table:
    table = _table("verdict", "limit", "required", "measured")
    styles = {"pass": "green", "fail": "bold red"}
    for one in verdict:
        flag = Text(one["verdict"], style=styles.get(one["verdict"], "yellow"))
        table.add_row(flag, Text(one["meaning"]), Text(one["shown_limit"]), Text(one["shown"]))
    return table


def _confusion(confusion: dict[str, Any]) -> Table:
    table = _table("")
    for label in confusion["labels"]:
        table.add_column(Text(label), justify="right")
    for label, counts in zip(confusion["labels"], confusion["counts"], strict=True):
        table.add_row(Text(label), *(f"{count:,}" for count in counts))
    return table
