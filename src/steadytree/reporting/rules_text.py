"""Rules text: a tree as indented lines, and as a list of if-then rules."""

from typing import Any

from steadytree.reporting.numbers import percent_text, rows_text


def indented_rules(tree: dict[str, Any]) -> str:
    """The tree as indented text, what follows from yes above what follows from no.

    Parameters
    ----------
    tree : dict
        What `collect_tree` returned.

    Returns
    -------
    text : str

    Examples
    --------
    >>> root = {"parent": None, "side": None, "question": "age ≤ 43", "missing": "no"}
    >>> leaf = {"parent": 0, "n_below": 1}
    >>> yes = leaf | {"side": "yes", "answer": 0, "counts": [9, 1], "n_rows": 10}
    >>> no = leaf | {"side": "no", "answer": 1, "counts": [0, 3], "n_rows": 3}
    >>> print(indented_rules({"classes": ["well", "ill"], "nodes": [root, yes, no]}))
    age ≤ 43? (missing: no)
    ├─ yes: well (90 % of 10 rows)
    └─ no: ill (100 % of 3 rows)
    """
    lines: list[str] = []
    stems = [""] * len(tree["nodes"])  # what stands before the lines below a node
    for place, node in enumerate(tree["nodes"]):
        line = _line(node, tree["classes"])
        if node["parent"] is None:
            lines.append(line)
            continue
        last = node["side"] == "no"
        stem = stems[node["parent"]]
        stems[place] = stem + ("   " if last else "│  ")
        lines.append(f"{stem}{'└─' if last else '├─'} {node['side']}: {line}")
    return "\n".join(lines)


def leaf_rules(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """One rule a leaf, most rows first: its conditions, answer, rows and share that is right."""
    leaves = [node for node in tree["nodes"] if "conditions" in node]
    return [
        {
            "conditions": node["conditions"],
            "answer": tree["classes"][node["answer"]],
            "n_rows": node["n_rows"],
            "share": node["share"],
            "n_right": node["counts"][node["answer"]],
            "place": node["place"],
        }
        for node in sorted(leaves, key=lambda node: -node["n_rows"])
    ]


def answer_text(node: dict[str, Any], classes: list[str]) -> str:
    """The answer of a leaf and how often it holds."""
    answer = classes[node["answer"]]
    more = f", {node['n_below']:,} leaves not shown" if node["n_below"] > 1 else ""
    if node["n_rows"] == 0:
        return f"{answer} (no rows{more})"
    right = percent_text(node["counts"][node["answer"]] / node["n_rows"])
    return f"{answer} ({right} of {rows_text(node['n_rows'])}{more})"


def _line(node: dict[str, Any], classes: list[str]) -> str:
    if "question" not in node:
        return answer_text(node, classes)
    return f"{node['question']}?" + (f" (missing: {node['missing']})" if node["missing"] else "")
