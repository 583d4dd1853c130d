"""Schema: what is declared of data without looking at them; as TOML or JSON, and a template."""

import json
import logging
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadytree._base.files import write_text_atomically
from steadytree.data import cell_reader
from steadytree.data.column import Bounds, ByKey, Column, Kind
from steadytree.data.feature_space import Categories, FeatureSpace
from steadytree.data.table import check_unique, quote

_LOG = logging.getLogger(__name__)
NO_CLASS = -1


@dataclass(frozen=True, eq=False)
class Schema(ByKey):
    """Names, kinds, bounds, categories and classes, declared without looking at the data.

    Private learning starts from a schema, because bounds, categories or classes read off the data
    would tell who is in it. Reading rows through a schema never fails on a value: numbers outside
    the bounds are clipped, unknown categories and missing values go to a bin of their own behind
    the last one, and rows with an undeclared class are left out. Each value is read by itself, so
    no row changes how another is read.

    Parameters
    ----------
    bounds : mapping of column name to (low, high)
        Numeric columns. Take them from general knowledge, such as an age of 0 to 120.
    categories : mapping of column name to list of categories
    classes : list of labels, two or more
    kinds : mapping of column name to "numeric", "integer" or "binary", optional
        Numeric unless said otherwise.
    missing : list of column names, optional
        Columns in which a missing or unknown value is common enough to be asked about.
    names : list of column names, optional
        The order of the columns, where data come without names; bounds first by default.

    Examples
    --------
    >>> schema = Schema(bounds={"age": (0, 120)}, categories={"ward": ["A", "B"]},
    ...                 classes=["home", "stays"], kinds={"age": "integer"})
    >>> schema.names
    ('age', 'ward')
    >>> schema.encode([[130, "A"], [None, "Z"]])
    array([[120.,   0.],
           [ nan,  nan]])
    """

    bounds: Bounds
    categories: Categories = field(default_factory=dict)
    classes: Sequence[Any] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    missing: Sequence[str] = ()
    names: Sequence[str] = ()

    def __post_init__(self) -> None:
        try:
            self._settle()
        except (TypeError, ValueError) as error:
            _LOG.warning("refused a schema: %s", error)
            raise

    def _settle(self) -> None:
        bounds = dict(self.bounds or {})
        categories = {name: tuple(listed) for name, listed in (self.categories or {}).items()}
        names = tuple(self.names) or (*bounds, *categories)
        check_unique((*bounds, *categories))
        _check_names(self, names)
        classes = tuple(_plain(label) for label in self.classes)
        if len(classes) < 2 or len(_indices(classes)) < len(classes):
            raise ValueError(
                f"Schema: classes must list two or more labels that differ, got {len(classes)}."
            )
        if len({isinstance(label, str) for label in classes}) > 1:
            raise ValueError("Schema: classes mixes text and numbers: use one of them.")
        _check_texts((*names, *classes, *(one for own in categories.values() for one in own)))
        limits = {name: _limits(name, pair) for name, pair in bounds.items()}
        made = {"bounds": limits, "categories": categories, "classes": classes, "names": names}
        made |= {"kinds": dict(self.kinds), "missing": tuple(self.missing)}
        for name, value in made.items():
            object.__setattr__(self, name, value)
        self.space  # noqa: B018 - made here so that a wrong column is refused here

    @cached_property
    def space(self) -> FeatureSpace:
        """The columns as a feature space, in order."""
        columns: list[Column] = []
        for name in self.names:
            missing = name in self.missing
            if name in self.bounds:
                kind: Kind = self.kinds.get(name, "numeric")
                columns.append(Column(name, kind, *self.bounds[name], missing=missing))
                continue
            listed = {name: self.categories[name]}
            columns += FeatureSpace.declare(categories=listed, missing=missing)
            if len(_indices(columns[-1].categories)) < len(columns[-1].categories):
                raise ValueError(
                    f"Schema: categories of {name!r} hold one value in two forms, such as 1 and "
                    "1.0: keep one."
                )
        return FeatureSpace(tuple(columns))

    # ---- reading data ----
    def encode(self, X: Any) -> NDArray[np.float64]:
        """Rows as numbers (n, p) within the bounds; a category as its index; nan behind all bins.

        Fails on a wrong number or name of columns, never on a value. What a program did to
        values before, such as writing numbers as text because one of them was, cannot be undone
        here: give columns a type of your own choice, or hand over lists.
        """
        columns, n_rows = cell_reader.read_columns(X, self.names)
        values = np.empty((n_rows, len(self.names)))
        for index, (column, cells) in enumerate(zip(self.space, columns, strict=True)):
            if column.is_categorical:
                known = _indices(column.categories)
                values[:, index] = cell_reader.indices(cells, known, np.nan)
            else:
                values[:, index] = np.clip(cell_reader.numbers(cells), column.low, column.high)
        return values

    def encode_labels(self, y: Any) -> NDArray[np.int32]:
        """Index of each label in `classes`; -1 for labels that were not declared.

        Labels are compared as text: 1, 1.0, True and "1" are one class.
        """
        labels = cell_reader.read_labels(y)
        return cell_reader.indices(labels, _indices(self.classes), NO_CLASS).astype(np.int32)

    # ---- files ----
    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Schema":
        """Read a ``.toml`` or ``.json`` file; `save` writes one."""
        text = Path(path).read_text(encoding="utf-8")
        try:
            found = json.loads(text) if Path(path).suffix == ".json" else tomllib.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{Path(path).name!r} cannot be read as a schema: {error}.") from None
        return cls(**from_dict(found, Path(path).name))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the schema as TOML, or as JSON where the name ends in ``.json``."""
        content = to_dict(self)
        if Path(path).suffix == ".json":
            write_text_atomically(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        else:
            write_text_atomically(path, to_toml(content))

    def key(self) -> str:
        """Text that is equal for equal schemas."""
        return json.dumps(to_dict(self), sort_keys=True)


def check_schema(schema: Any) -> Schema:
    """The schema, read from a file where a path was given; refuses to go on without one."""
    if isinstance(schema, str | PathLike):
        return Schema.load(schema)
    if not isinstance(schema, Schema):
        _LOG.warning("refused: no schema")
        raise TypeError(
            f"schema must be a Schema or the path of a schema file, got {type(schema).__name__}: "
            "private learning needs bounds, categories and classes that were not read off the "
            "data. `steadytree private schema` writes a template."
        )
    return schema


def _check_names(schema: Schema, names: Sequence[str]) -> None:
    categories, kinds = schema.categories or {}, schema.kinds
    known = {*(schema.bounds or {}), *categories}
    if set(names) != known or len(names) != len(known):
        raise ValueError(
            f"Schema: names must list the columns of bounds and categories, got {quote(names)}."
        )
    for parameter, listed in (("kinds", kinds), ("missing", schema.missing)):
        unknown = [name for name in listed if name not in known]
        if unknown:
            raise ValueError(f"Schema: {parameter} names {quote(unknown)}, which is not a column.")
    wrong = [name for name in kinds if (kinds[name] == "categorical") != (name in categories)]
    if wrong:
        raise ValueError(f"Schema: kinds disagrees with bounds and categories on {quote(wrong)}.")


def _check_texts(values: Sequence[Any]) -> None:
    """Refuse text that no file can hold."""
    for value in values:
        try:
            str(value).encode()
        except UnicodeEncodeError:
            raise ValueError(
                f"Schema: {value!r} holds half a character (a lone surrogate), which cannot be "
                "written: declare the whole character, or leave it out."
            ) from None


def _limits(name: str, pair: Any) -> tuple[float, float]:
    try:
        low, high = (float(value) for value in pair)
    except (TypeError, ValueError):
        raise ValueError(
            f"Schema: bounds of {name!r} must be two numbers, got {pair!r}: fill them in."
        ) from None
    if not -np.inf < low < high < np.inf:
        raise ValueError(
            f"Schema: bounds of {name!r} must be finite with low < high, got ({low:g}, {high:g})."
        )
    return low, high


def _plain(label: Any) -> Any:
    """A label that compares and prints the same however it was stored."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, float) and label.is_integer():
        return int(label)
    return int(label) if isinstance(label, bool) else label


def _indices(listed: Sequence[Any]) -> dict[str, int]:
    """Index of each declared value by its canonical text."""
    texts = [cell_reader.canonical(value) for value in listed]
    return {text: index for index, text in enumerate(texts) if text is not None}


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
        raise ValueError(f"{name!r} is not a schema: it needs `classes` and a table `columns`.")
    bounds, categories, kinds, missing = {}, {}, {}, []
    for column, described in columns.items():
        if not isinstance(described, Mapping):
            raise ValueError(f"{name!r}: column {column!r} needs kind, and bounds or categories.")
        kind = described.get("kind", "numeric")
        if kind == FILL_IN:
            raise ValueError(f"{name!r}: fill in `kind` of column {column!r}.")
        if kind == "categorical":
            listed = categories[column] = described.get("categories")
            if not isinstance(listed, list) or FILL_IN in listed:
                raise ValueError(f"{name!r}: fill in `categories` of column {column!r}.")
        else:
            bounds[column] = (described.get("low"), described.get("high"))
            kinds[column] = kind
        if described.get("missing", False):
            missing.append(column)
    if FILL_IN in found["classes"]:
        raise ValueError(f"{name!r}: fill in `classes`: every label that may occur.")
    given = {"bounds": bounds, "categories": categories, "kinds": kinds, "missing": missing}
    return given | {"classes": found["classes"], "names": list(columns)}


def to_toml(content: Mapping[str, Any]) -> str:
    """A schema's plain values as TOML."""
    lines = [f"classes = {_toml(content['classes'])}"]
    for name, described in content["columns"].items():
        lines += ["", f"[columns.{json.dumps(name, ensure_ascii=False)}]"]
        lines += [f"{key} = {_toml(value)}" for key, value in described.items()]
    return "\n".join(lines) + "\n"


def template(X: Any, target: str | None = None) -> str:
    """A schema to fill in, from column names and types only; no value is looked at.

    The column `target` holds the labels and is left out.
    """
    columns: dict[str, dict[str, Any]] = {}
    for name, is_numeric in cell_reader.numeric_types(X).items():
        if name != target:
            numeric = {"kind": "numeric", "low": FILL_IN, "high": FILL_IN}
            kind: Any = numeric if is_numeric else {"kind": "categorical", "categories": [FILL_IN]}
            columns[name] = {**kind, "missing": False}
    return HEAD + to_toml({"classes": [FILL_IN], "columns": columns})


def template_of_names(names: Iterable[str]) -> str:
    """A schema to fill in where only names are known, as of a csv file: the kinds too."""
    described: dict[str, Any] = {"kind": FILL_IN}
    described |= {"low": FILL_IN, "high": FILL_IN, "categories": [FILL_IN]}
    columns = {name: described | {"missing": False} for name in names}
    return HEAD + KINDS_HEAD + to_toml({"classes": [FILL_IN], "columns": columns})


def _toml(value: Any) -> str:
    """JSON's text, numbers, flags and lists of them are TOML too."""
    return json.dumps(value, ensure_ascii=False)
