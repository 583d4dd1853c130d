"""Diff text: the changes between two trees for a terminal."""

from typing import Any

from rich.text import Text

from steadytree.reporting.numbers import rows_text

STYLES = {
    "same": "dim",
    "moved": "yellow",
    "replaced": "red",
    "relabelled": "red",
    "grown": "green",
    "cut": "magenta",
}
SIGNS = {"same": " ", "moved": "~", "replaced": "!", "relabelled": "!", "grown": "+", "cut": "-"}
MOST_ROWS = 20


def diff_text(data: dict[str, Any]) -> Text:
    """The changes as coloured lines: signs tell what colours tell.

    Parameters
    ----------
    data : dict
        What `collect_diff` returned.

    Returns
    -------
    text : rich Text
        Its ``plain`` is the same without colours.
    """
    text = Text(data["headline"] + "\n")
    for said in data["classes_text"]:
        text.append(said + "\n", style="bold")
    text.append("\n")
    stems = [""] * len(data["nodes"])
    for node in data["nodes"]:
        stem, branch = "", ""
        if node["parent"] is not None:
            last = node["side"] == "no"
            stem = stems[node["parent"]]
            branch = f"{'└─' if last else '├─'} {node['side']}: "
            stems[node["place"]] = stem + ("   " if last else "│  ")
        sign = SIGNS[node["status"]]
        text.append(f"{sign} ", style=STYLES[node["status"]])
        text.append(stem + branch, style="dim")
        text.append(_said(node) + "\n", style=STYLES[node["status"]])
    text.append("\n  same   ~ moved   ! replaced or relabelled   + grown   - cut\n", style="dim")
    if data["rows"] is not None:
        text.append(_rows(data["rows"]))
    if data["distance"] is not None:
        text.append(f"Path distance {data['distance']:.3g}.\n")
    text.rstrip()
    return text


def _said(node: dict[str, Any]) -> str:
    old, new = (node[side]["text"] if node[side] else "" for side in ("old", "new"))
    if node["status"] in ("same", "moved", "replaced", "relabelled") and old != new:
        return f"{old} → {new}"
    if node["status"] == "grown":
        return f"{old} → {new}" if old else new
    if node["status"] == "cut":
        return f"{old} → {new}" if new else old
    return new


def _rows(rows: dict[str, Any]) -> str:
    lines = [f"{rows['n_flipped']:,} of {rows_text(rows['n_rows'])} get another decision."]
    if rows["n_flipped"]:
        listed = ", ".join(str(row) for row in rows["flipped"][:MOST_ROWS])
        more = rows["n_flipped"] - MOST_ROWS
        lines.append(f"Rows (from 0): {listed}{f' and {more:,} more' if more > 0 else ''}.")
    if rows["old_accuracy"] is not None:
        lines.append(
            f"Accuracy {rows['old_accuracy']:.1%} before, {rows['new_accuracy']:.1%} now: "
            f"{rows_text(rows['mended'])} put right, {rows['broken']:,} put wrong."
        )
    return "\n".join(lines) + "\n"
