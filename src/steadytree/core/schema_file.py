"""Schemas as TOML or JSON, and a template to fill in."""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from steadytree.core.cells import numeric_types

if TYPE_CHECKING:
    from steadytree.core.schema import Schema

FILL_IN = "fill in"
HEAD = (
    f'# Fill in every "{FILL_IN}" from what is generally known, never from the data.\n'
    "# `missing = true` where a missing or unknown value is worth asking about.\n"
)
KINDS_HEAD = (
    '# kind: "numeric", "integer" or "binary" with low and high, or "categorical" with\n'
    "# categories; delete the lines that do not belong to it.\n"
)


def to_dict(schema: "Schema") -> dict[str, Any]:
    """Plain values: the classes, and each column in order."""
    columns = {}
    for column in schema.space:
        described: dict[str, Any] = {"kind": column.kind}
        if column.is_categorical:
            described["categories"] = list(column.categories)
        else:
            described |= {"low": column.low, "high": column.high}
        columns[column.name] = described | {"missing": column.missing}
    return {"classes": list(schema.classes), "columns": columns}


def from_dict(found: Any, name: str) -> dict[str, Any]:
    """Arguments of `Schema`; refuses what a file must not hold."""
    columns = found.get("columns") if isinstance(found, Mapping) else None
    if not isinstance(columns, Mapping) or not isinstance(found.get("classes"), list):
        raise ValueError(f"{name!r} is no schema: it needs `classes` and a table `columns`.")
    bounds, categories, kinds, missing = {}, {}, {}, []
    for column, described in columns.items():
        if not isinstance(described, Mapping):
            raise ValueError(f"{name!r}: column {column!r} needs kind, and bounds or categories.")
        kind = described.get("kind", "numeric")
        if kind == FILL_IN:
            raise ValueError(f"{name!r}: fill in `kind` of column {column!r}.")
        if kind == "categorical":
            categories[column] = _categories(column, described, name)
        else:
            bounds[column] = (described.get("low"), described.get("high"))
            kinds[column] = kind
        if described.get("missing", False):
            missing.append(column)
    if FILL_IN in found["classes"]:
        raise ValueError(f"{name!r}: fill in `classes`: every label that may occur.")
    return {
        "bounds": bounds,
        "categories": categories,
        "classes": found["classes"],
        "kinds": kinds,
        "missing": missing,
        "names": list(columns),
    }


def to_toml(content: Mapping[str, Any]) -> str:
    """A schema's plain values as TOML."""
    lines = [f"classes = {_toml(content['classes'])}"]
    for name, described in content["columns"].items():
        lines += ["", f"[columns.{json.dumps(name, ensure_ascii=False)}]"]
        lines += [f"{key} = {_toml(value)}" for key, value in described.items()]
    return "\n".join(lines) + "\n"


def template(X: Any, target: str | None = None) -> str:
    """A schema to fill in, from column names and types only; no value is looked at.

    Parameters
    ----------
    X : array-like or frame
    target : str, optional
        The column that holds the labels; left out.

    Examples
    --------
    >>> import pandas
    >>> print(template(pandas.DataFrame({"age": [31.0], "ward": ["A"]})))
    # Fill in every "fill in" from what is generally known, never from the data.
    # `missing = true` where a missing or unknown value is worth asking about.
    classes = ["fill in"]
    <BLANKLINE>
    [columns."age"]
    kind = "numeric"
    low = "fill in"
    high = "fill in"
    missing = false
    <BLANKLINE>
    [columns."ward"]
    kind = "categorical"
    categories = ["fill in"]
    missing = false
    <BLANKLINE>
    """
    columns: dict[str, dict[str, Any]] = {}
    for name, is_numeric in numeric_types(X).items():
        if name == target:
            continue
        described: dict[str, Any]
        if is_numeric:
            described = {"kind": "numeric", "low": FILL_IN, "high": FILL_IN}
        else:
            described = {"kind": "categorical", "categories": [FILL_IN]}
        columns[name] = described | {"missing": False}
    return HEAD + to_toml({"classes": [FILL_IN], "columns": columns})


def template_of_names(names: Iterable[str]) -> str:
    """A schema to fill in where only names are known, as of a csv file: the kinds too."""
    described: dict[str, Any] = {"kind": FILL_IN}
    described |= {"low": FILL_IN, "high": FILL_IN, "categories": [FILL_IN]}
    columns = {name: described | {"missing": False} for name in names}
    return HEAD + KINDS_HEAD + to_toml({"classes": [FILL_IN], "columns": columns})


def _categories(column: str, described: Mapping[str, Any], name: str) -> list[Any]:
    listed = described.get("categories")
    if not isinstance(listed, list) or FILL_IN in listed:
        raise ValueError(f"{name!r}: fill in `categories` of column {column!r}.")
    return listed


def _toml(value: Any) -> str:
    """JSON's text, numbers, flags and lists of them are TOML too."""
    return json.dumps(value, ensure_ascii=False)
