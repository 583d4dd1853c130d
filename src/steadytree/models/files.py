"""Models in files: ``*.tree.json`` and ``*.card.json``, hashed; skops, pickle and joblib."""

import hashlib
import json
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import InconsistentVersionWarning

from steadytree._base.documents import canonical_json, parse_json
from steadytree._base.exceptions import TreeFileError
from steadytree._base.files import write_text_atomically
from steadytree._base.optional import require
from steadytree.data.readers import CSV_ENDINGS, PARQUET_ENDINGS
from steadytree.models.black_box import BlackBox
from steadytree.models.documents import (
    scorecard_from_dict,
    scorecard_to_dict,
    tree_from_dict,
    tree_to_dict,
)
from steadytree.models.scorecard import as_scorecard
from steadytree.models.sklearn import as_tree

VERSION = 2  # of trees that keep their bins and scorecards with more than points and risks
NEW_KEYS = {"bins", "decision", "title", "units", "groups", "profile", "provenance"}
MAX_BYTES = 64 * 2**20
SAVE_AGAIN = "Save the model again, or take an undamaged copy."
PICKLE_ENDINGS = (".pkl", ".pickle", ".joblib")
# hold numbers and settings alone and run nothing; not every version of skops trusts them. The
# nodes of a tree are checked after loading, since one beyond its end would crash the process.
HARMLESS = {
    "collections.OrderedDict",
    "numpy.dtype",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.model_selection._split.KFold",
    "sklearn.model_selection._split.StratifiedKFold",
    "sklearn.tree._tree.Tree",
}
RISK = (
    "a pickle, and reading one can run any code: pass --trust (in Python, load(path, trust=True)) "
    "if you know who made it, or have it saved with skops"
)


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write a tree to a file, usually named ``*.tree.json``, or a risk score, ``*.card.json``.

    The file is written beside its final place and then moved there, so a failure leaves what was
    there before. It holds numbers and text only, each number exactly.

    Parameters
    ----------
    model : Tree, Scorecard, fitted learner of steadytree, or what `as_tree` reads
    path : str or path-like

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier().fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/q2.tree.json")
    ...     load(f"{folder}/q2.tree.json") == as_tree(model)
    True
    """
    part, content = _part(model)
    version = VERSION if NEW_KEYS & set(content) else 1  # which older releases can read
    head = {"format": f"steadytree-{part}", "version": version, "sha256": _hash(content)}
    text = _tree_text(head, content) if part == "tree" else _text(head | {part: content}, indent=1)
    try:
        size = len(text.encode("utf-8")) + 1
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{error.object[error.start : error.end]!r} in a name or label cannot be written as "
            "text: rename it."
        ) from None
    if size > MAX_BYTES:
        raise ValueError(
            f"the model needs {size >> 20:,} MB, more than the {MAX_BYTES >> 20} MB of a model "
            "file: prune it first."
        )
    write_text_atomically(path, text + "\n")


def load(path: str | PathLike[str], trust: bool = False) -> Any:
    """Read a model that `save` wrote, or a fitted estimator from a skops, pickle or joblib file.

    Files of `save` and skops run no code, whatever they hold.

    Parameters
    ----------
    path : str or path-like
    trust : bool, default=False
        Read pickle and joblib files, which can run any code, and types that skops does not trust.

    Returns
    -------
    model : Tree, Scorecard, or fitted estimator

    Raises
    ------
    TreeFileError
        The file holds no model, was changed since it was written, comes from another version, or
        needs `trust`.
    OSError
        The file cannot be read.
    """
    path = Path(path)
    data = _read(path)
    if _is_skops(path):
        return _read_skops(path, trust)
    if _is_pickle(path, data):
        return _read_pickle(path, trust)
    if len(data) > MAX_BYTES:
        raise TreeFileError(
            f"{path}: larger than the {MAX_BYTES >> 20} MB of a model file. Pass a file that "
            "save() wrote."
        )
    try:
        return _model(parse_json(data.decode("utf-8-sig")))
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        fault = f"not whole JSON ({error.msg.lower()} at {where}). {SAVE_AGAIN}"
    except UnicodeDecodeError:
        fault = "not text. Pass a file that save(), skops, pickle or joblib wrote."
    except (ValueError, RecursionError) as error:
        fault = f"{str(error).rstrip('.')}. {SAVE_AGAIN}"
    if path.suffix.lower() == ".onnx":
        fault = (
            "an ONNX model, which is not read: ask for the fitted scikit-learn model, saved with "
            "skops or joblib."
        )
    if path.suffix.lower() in CSV_ENDINGS + PARQUET_ENDINGS:  # the most likely mistake of all
        fault = "a data file, where a saved model is expected. Pass one, as in 'q2.tree.json'."
    raise TreeFileError(f"{path}: {fault}") from None


def opened(model: Any) -> Any:
    """The model of a file where a path is given, else the model itself."""
    return load(model) if isinstance(model, str | PathLike) else model


def model_hash(model: Any) -> str:
    """SHA-256 of a model, as it stands in the file that `save` writes; empty for a black box."""
    return "" if isinstance(model, BlackBox) else _hash(_part(model)[1])


# ---- writing ----
def _part(model: Any) -> tuple[str, dict[str, Any]]:
    """What a file calls this kind of model, and the model as plain values."""
    scorecard = as_scorecard(model)
    return (
        ("tree", tree_to_dict(as_tree(model)))
        if scorecard is None
        else ("card", scorecard_to_dict(scorecard))
    )


def _hash(content: Any) -> str:
    return hashlib.sha256(canonical_json(content)).hexdigest()


def _text(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)


def _tree_text(head: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """The file's text: one line for each feature and node."""

    def lines(values: Iterable[Any]) -> str:
        return "[\n" + ",\n".join(f"      {_text(value)}" for value in values) + "\n    ]"

    parts = [
        f'    "{key}": {lines(value) if key in ("features", "nodes") else _text(value)}'
        for key, value in content.items()
    ]
    tree = "{\n" + ",\n".join(parts) + "\n  }"
    return _text(head, indent=2).removesuffix("\n}") + f',\n  "tree": {tree}\n}}'


# ---- reading ----
def _read(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise TreeFileError(f"{path}: not a file. Pass a file that save() wrote.")
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as error:
        fault = f"{error.strerror}, so no model was read; check the path"
        raise type(error)(error.errno, fault, str(path)) from None


def _model(content: Any) -> Any:
    form = content.get("format") if isinstance(content, dict) else None
    if form not in ("steadytree-tree", "steadytree-card"):
        raise ValueError(
            "not a model file of steadytree: pass one that save() wrote, as in 'q2.tree.json'"
        )
    version = content.get("version")
    if type(version) is int and version > VERSION:
        raise ValueError(
            f"written in version {version} of the format, and this steadytree reads up to "
            f"{VERSION}: upgrade it with 'pip install -U steadytree'"
        )
    part = form.removeprefix("steadytree-")
    known = type(version) is int and 1 <= version <= VERSION
    if not known or set(content) != {"format", "version", "sha256", part}:
        raise ValueError(
            f"must hold format, version 1 to {VERSION}, sha256 and {part}, and no more"
        )
    if _hash(content[part]) != content["sha256"]:
        raise ValueError(f"the {part} does not fit its hash, so it was changed after saving")
    return (tree_from_dict if part == "tree" else scorecard_from_dict)(content[part])


# ---- files of other packages ----
def _is_skops(path: Path) -> bool:
    """Whether a file is an archive that skops wrote."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return "schema.json" in archive.namelist()


def _is_pickle(path: Path, start: bytes) -> bool:
    """Whether a file is a pickle, by its first byte or its name; nothing of it is run."""
    return start[:1] == b"\x80" or path.suffix.lower() in PICKLE_ENDINGS


def _read_skops(path: Path, trust: bool) -> Any:
    """The estimator of a skops file; types that skops does not trust are refused by name."""
    io = require("skops.io", extra="skops", purpose="reading a skops file")
    try:
        unknown = io.get_untrusted_types(file=path)
        refused = sorted(set(unknown) - HARMLESS)
        if refused and not trust:
            listed = ", ".join(refused)
            raise TreeFileError(
                f"{path}: holds types that are not trusted: {listed}. Nothing was loaded: pass "
                "--trust (in Python, load(path, trust=True)) if you know who made it."
            )
        found = _read_estimator(path, lambda: io.load(path, trusted=unknown))
        if not trust and not all(map(_is_sound, _trees_in(found))):
            raise TreeFileError(f"{path}: holds a tree whose nodes are damaged: save it again.")
        return found
    except TreeFileError:
        raise
    except Exception as error:  # whatever a damaged archive makes skops raise
        raise _unreadable(path, error) from None


def _trees_in(found: Any) -> list[Any]:
    """scikit-learn's trees anywhere inside an estimator."""
    trees, waiting, known = [], [found], set()
    while waiting:
        one = waiting.pop()
        if id(one) in known:
            continue
        known.add(id(one))
        if isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list | tuple | set):
            waiting += one
        elif isinstance(one, np.ndarray):
            waiting += one.ravel().tolist() if one.dtype.hasobject else []
        elif hasattr(one, "children_left"):
            trees.append(one)
        elif hasattr(one, "__dict__") and not isinstance(one, type):
            waiting.append(vars(one))
    return trees


def _is_sound(tree: Any) -> bool:
    """Whether children come after their node and features exist, so that every walk ends."""
    left, right, feature = tree.children_left, tree.children_right, tree.feature
    n, index = tree.node_count, np.arange(tree.node_count)
    inner = left != -1
    children = all(
        ((side > index) & (side < n))[inner].all() and (side[~inner] == -1).all()
        for side in (left, right)
    )
    known = (feature[inner] >= 0) & (feature[inner] < tree.n_features)
    return bool(n > 0 and len(left) == len(tree.value) == n and children and known.all())


def _read_pickle(path: Path, trust: bool) -> Any:
    """The estimator of a pickle or joblib file; nothing is run unless the file is trusted."""
    if not trust:
        raise TreeFileError(f"{path}: {RISK}.")
    import joblib

    try:
        return _read_estimator(path, lambda: joblib.load(path))
    except TreeFileError:
        raise
    except Exception as error:  # a pickle may raise anything
        raise _unreadable(path, error) from None


def _read_estimator(path: Path, read: Any) -> Any:
    """What a file holds; another version of scikit-learn and what is no classifier are refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", InconsistentVersionWarning)
        try:
            found = read()
        except InconsistentVersionWarning as warning:
            wrote, runs = warning.original_sklearn_version, warning.current_sklearn_version
            raise TreeFileError(
                f"{path}: fitted with scikit-learn {wrote}, and this is {runs}, which may predict "
                f"otherwise. Install scikit-learn {wrote}, or fit the model again."
            ) from None
    if isinstance(found, type) or not hasattr(found, "predict"):
        kind = found.__name__ if isinstance(found, type) else type(found).__name__
        raise TreeFileError(
            f"{path}: holds {kind}, not a fitted classifier. Save the fitted model itself."
        )
    return found


def _unreadable(path: Path, error: Exception) -> TreeFileError:
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("steadytree."):
        return TreeFileError(
            f"{path}: pickled by another version of steadytree, with a module {error.name!r} "
            "that is not here: fit the model again, and keep it with save()."
        )
    if isinstance(error, ModuleNotFoundError):
        return TreeFileError(
            f"{path}: the model needs the package {error.name!r}, which is not installed: install "
            "it, in the version that the model was fitted with."
        )
    reason = " ".join(str(error).split())[:200]
    return TreeFileError(
        f"{path}: cannot be read ({type(error).__name__}: {reason}). Damaged, or written by other "
        "versions of its packages: save the model again."
    )
